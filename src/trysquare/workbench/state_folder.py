"""The state folder of a workspace: made by us before any command could make one in its place."""

from __future__ import annotations

from pathlib import Path

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.store.location import FOLDER, prepare_folder


def own_state_folder(root: Path) -> Path:
    """The folder, ready for use. What a command left in its place is refused."""
    folder = root / FOLDER
    try:
        if folder.is_symlink() or (folder / "undo").is_symlink():
            raise ConfigurationError("It is a link.", where=str(folder), hint="Make it a folder.")
        prepare_folder(folder)
    except ConfigurationError as error:
        raise ToolError(
            f"The workspace's state folder cannot be used, so nothing was done: {error}",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Tell the person; once they mended it, the same call can be sent again.",
        ) from error
    return folder

"""The id by which a project is known in a database that many projects share.

It is made once and kept in the project's own folder, so that it moves with the folder, and two projects that lie at the
same path of two machines stay two. Whoever wants several checkouts to share their runs names the project instead.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.store.location import FOLDER, prepare_folder

FILE = "project-id"
_LONGEST = 200


def known_id(project: Path) -> str | None:
    """The id of a project, if it has one yet."""
    try:
        text = (project / FOLDER / FILE).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unusable(project, str(error)) from error
    return text.strip()[:_LONGEST] or None


def made_id(project: Path) -> str:
    """The id of a project, which is made if it has none; of several processes that make one, all get the same."""
    if (known := known_id(project)) is not None:
        return known
    place = project / FOLDER / FILE
    temporary = place.with_name(f".{FILE}.{secrets.token_hex(8)}.tmp")
    try:
        prepare_folder(place.parent)
        temporary.write_text(f"{secrets.token_hex(16)}\n", encoding="utf-8")
        try:
            # Whole or not at all, and never over the id that another process made meanwhile.
            os.link(temporary, place)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    except (OSError, ConfigurationError) as error:
        raise _unusable(project, str(error)) from error
    return known_id(project) or made_id(project)


def _unusable(project: Path, why: str) -> ToolError:
    return ToolError(
        f"The id of the project cannot be kept in {project / FOLDER} ({why}).",
        code=ErrorCode.STATE_UNAVAILABLE,
        instruction="Tell the person to make the folder writable, or to name the project in the setting `project_id`.",
    )

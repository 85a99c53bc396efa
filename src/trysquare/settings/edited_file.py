"""Change a configuration file so that nothing can be lost: read whole, backed up, replaced in one step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from trysquare.core.errors import ConfigurationError
from trysquare.settings.text_edits import TextError

T = TypeVar("T")


def read_file(path: Path) -> str:
    """The text of a file with its line ends and byte order mark as they are; empty if there is no file."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigurationError(
            "The file is not UTF-8 text.", where=f"{path}, line {line}", hint="Save it as UTF-8, then try again."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"The file cannot be read: {error.strerror}.", where=str(path)) from None


def edited(path: Path, text: str, edit: Callable[[str], T]) -> T:
    """What a function makes of a file's text; what is wrong with the text is told with the file's name and line."""
    try:
        return edit(text)
    except TextError as error:
        raise ConfigurationError(
            f"{error.problem[:1].upper()}{error.problem[1:]}.",
            where=f"{path}, line {error.line}, column {error.column}",
            hint="Mend the file, then try again. Nothing was written.",
        ) from None


def replace_file(path: Path, before: str, after: str, *, new_mode: int = 0o600) -> Path | None:
    """Write the file in one step and keep a copy of what was there. Returns the copy's path."""
    target = path.resolve()
    try:
        content = after.encode()
        target.parent.mkdir(parents=True, exist_ok=True)
        if read_file(target) != before:
            raise ConfigurationError("The file changed meanwhile.", where=str(path), hint="Try again.")
        backup = _backed_up(target) if target.exists() else None
        _replaced(target, content, new_mode)
    except UnicodeEncodeError:
        raise ConfigurationError("The entry has characters that are no text.", where=str(path)) from None
    except OSError as error:
        raise ConfigurationError(
            f"The file cannot be written: {error.strerror}.", where=str(path), hint="It is as it was."
        ) from None
    return backup


def _backed_up(target: Path) -> Path:
    """A copy beside the file, named after the moment; never over another one."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    backup = target.with_name(f"{target.name}.{moment}.bak")
    descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(target.read_bytes())
        os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
    return backup


def _replaced(target: Path, content: bytes, new_mode: int) -> None:
    """Write beside the file and rename over it, so that a reader sees the old content or the new, never a part."""
    mode = target.stat().st_mode & 0o777 if target.exists() else new_mode
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

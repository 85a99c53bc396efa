"""Text edits; atomic replacement of a file with a backup; locks among processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from trysquare.core.errors import ConfigurationError, TrysquareError


class TextError(TrysquareError):
    """A text cannot be parsed or edited, with the position."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.line = text.count("\n", 0, position) + 1
        self.column = position - (text.rfind("\n", 0, position) + 1) + 1
        self.problem = problem
        super().__init__(f"line {self.line}, column {self.column}: {problem}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Replacement of the text between two positions."""

    start: int
    end: int
    text: str = ""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap."""
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += (text[position : edit.start], edit.text)
        position = edit.end
    return "".join(parts) + text[position:]


def line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def indent_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


T = TypeVar("T")


@contextmanager
def exclusive_lock(path: Path, *, directory: bool = False) -> Generator[None]:
    """Hold a lock among processes on a lock file, which is created, or on a directory.

    The system releases it when its holder dies, so that no dead process blocks a living one.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY if directory else os.O_RDWR | os.O_CREAT
    lock = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def read_file(path: Path) -> str:
    """Read a file, with its line endings and byte order mark; empty if there is none."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigurationError(
            "The file is not UTF-8 text.", where=f"{path}, line {line}", hint="Save it as UTF-8."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"Cannot read the file: {error.strerror}.", where=str(path)) from None


def edit_text(path: Path, text: str, edit: Callable[[str], T]) -> T:
    """Apply a function to the text of a file; a `TextError` is reported with the file and line."""
    try:
        return edit(text)
    except TextError as error:
        raise ConfigurationError(
            f"{error.problem[:1].upper()}{error.problem[1:]}.",
            where=f"{path}, line {error.line}, column {error.column}",
            hint="Nothing was written. Fix the file, then try again.",
        ) from None


def replace_file(
    path: Path, before: str, after: str, *, new_mode: int = 0o600, keep_backup: bool = True
) -> Path | None:
    """Replace a file atomically; return the path of the backup, if one is kept."""
    target = path.resolve()
    try:
        content = after.encode()
        target.parent.mkdir(parents=True, exist_ok=True)
        if read_file(target) != before:
            raise ConfigurationError("The file was changed by another program.", where=str(path), hint="Try again.")
        backup = _back_up(target) if keep_backup and target.exists() else None
        _write_atomically(target, content, new_mode)
    except UnicodeEncodeError:
        raise ConfigurationError("The entry has characters that are not valid Unicode.", where=str(path)) from None
    except OSError as error:
        raise ConfigurationError(
            f"Cannot write the file: {error.strerror}.", where=str(path), hint="It was not changed."
        ) from None
    return backup


def _back_up(target: Path) -> Path:
    timestamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    backup = target.with_name(f"{target.name}.{timestamp}.bak")
    descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(target.read_bytes())
        os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
    return backup


def _write_atomically(target: Path, content: bytes, new_mode: int) -> None:
    # The databases import this module for its lock; only a write needs a temporary file.
    import tempfile

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

"""Locations: `file:line` and `file:line:column` as a person or a model writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from trysquare.core.errors import ErrorCode, InvalidArguments

_LOCATION = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A place in a file that exists."""

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


def read_location(text: str, root: Path, *, column: int | None = None) -> Location:
    """A place from its text, relative to the workspace; a line that the file does not have is refused."""
    found = _LOCATION.fullmatch(text.strip())
    if found is None:
        raise InvalidArguments(f"`{text}` is no location.", instruction="Write it as file:line, such as src/app.py:42.")
    file = (root / found["file"]).expanduser().resolve()
    line = int(found["line"])
    return Location(file=_checked(file, line, text), line=line, column=int(found["column"] or 0) or column)


def _checked(file: Path, line: int, text: str) -> str:
    try:
        count = len(file.read_bytes().splitlines())
    except OSError as error:
        raise InvalidArguments(
            f"`{text}`: {file} cannot be read ({error.strerror}).",
            instruction="Give the path relative to workspace_root, or the whole path.",
        ) from None
    if not 1 <= line <= count:
        raise InvalidArguments(f"`{text}`: the file has {count} lines.", code=ErrorCode.VALIDATION_INVALID_PARAM)
    return str(file)

"""Environment files: lines of `NAME=value`, with comments and quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from trysquare.core.errors import TrysquareError

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*?)\s*")
_COMMENT = re.compile(r"\s+#.*")


class UnusableFile(TrysquareError):
    """An environment file cannot be read; says why, without any of its values."""


def read_environment(path: Path) -> Mapping[str, str]:
    """The variables of a file."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UnusableFile(f"{path}: {error.strerror or type(error).__name__}.") from None
    except UnicodeDecodeError:
        raise UnusableFile(f"{path} is not UTF-8 text.") from None
    try:
        return parse_environment(text)
    except UnusableFile as error:
        raise UnusableFile(f"{path}, {error}") from None


def parse_environment(text: str) -> Mapping[str, str]:
    """The variables of a text. Of two of the same name the last counts."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise UnusableFile(f"line {number} is not of the form NAME=value.")
        found[match.group(1)] = _unquoted(match.group(2))
    return found


def _unquoted(value: str) -> str:
    for quote in ('"', "'"):
        end = value.find(quote, 1)
        if value.startswith(quote) and end > 0:
            return value[1:end]
    return _COMMENT.sub("", value)

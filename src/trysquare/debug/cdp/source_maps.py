"""Source maps: from a place in what runs to the place in what was written, and back."""

from __future__ import annotations

import base64
import bisect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urljoin, urlsplit

_DIGITS = {character: value for value, character in enumerate(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
)}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Mapping:
    """One entry: a place in the generated file (both counts from 0), and where it came from."""

    line: int
    column: int
    source: str
    source_line: int
    source_column: int


class SourceMap:
    """The map of one generated file."""

    def __init__(self, mappings: list[Mapping]) -> None:
        self._generated = sorted(mappings, key=lambda each: (each.line, each.column))
        self._keys = [(each.line, each.column) for each in self._generated]
        self.sources = frozenset(each.source for each in mappings)

    def original(self, line: int, column: int) -> tuple[str, int, int] | None:
        """The file, line and column that a generated place came from."""
        index = bisect.bisect_right(self._keys, (line, column)) - 1
        if index < 0 or self._generated[index].line != line:
            return None
        found = self._generated[index]
        return found.source, found.source_line, found.source_column

    def generated(self, source: str, line: int) -> tuple[int, int] | None:
        """The first generated place of a source line, or of the nearest line after it that has one."""
        after = [each for each in self._generated if each.source == source and each.source_line >= line]
        if not after:
            return None
        nearest = min(after, key=lambda each: (each.source_line, each.line, each.column))
        return nearest.line, nearest.column


def read_source_map(script_url: str, map_url: str) -> SourceMap | None:
    """The map that a script names, inside it or beside it. None where it cannot be read: the script is then shown."""
    try:
        text, base = _text_of(script_url, map_url)
        found = json.loads(text)
        return SourceMap(list(_mappings(found, base)))
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def _text_of(script_url: str, map_url: str) -> tuple[str, str]:
    if map_url.startswith("data:"):
        head, _, body = map_url.partition(",")
        return (base64.b64decode(body).decode() if head.endswith(";base64") else unquote(body)), script_url
    address = urljoin(script_url, map_url)
    return Path(_path_of(address)).read_text(encoding="utf-8"), address


def _path_of(url: str) -> str:
    return unquote(urlsplit(url).path) if url.startswith("file:") else url


def _mappings(found: dict[str, Any], base: str) -> Iterator[Mapping]:
    root = str(found.get("sourceRoot") or "")
    root = root + "/" if root and not root.endswith("/") else root
    sources = [_path_of(urljoin(base, root + str(name))) for name in cast(list[Any], found["sources"])]
    source = source_line = source_column = 0
    for line, group in enumerate(str(found["mappings"]).split(";")):
        column = 0
        for segment in group.split(","):
            numbers = list(_numbers(segment))
            if len(numbers) < 4:
                column += numbers[0] if numbers else 0
                continue
            column += numbers[0]
            source += numbers[1]
            source_line += numbers[2]
            source_column += numbers[3]
            yield Mapping(
                line=line, column=column, source=sources[source], source_line=source_line, source_column=source_column
            )


def _numbers(segment: str) -> Iterator[int]:
    """Numbers in base 64, five bits a digit, the lowest bit of the first for the sign."""
    value = shift = 0
    for character in segment:
        digit = _DIGITS[character]
        value |= (digit & 31) << shift
        if digit & 32:
            shift += 5
            continue
        yield -(value >> 1) if value & 1 else value >> 1
        value = shift = 0

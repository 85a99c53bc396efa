"""Scripts of Node's inspector and their source maps."""

from __future__ import annotations

import base64
import bisect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from trysquare.core.json import JsonObject, as_list

_DIGITS = {character: value for value, character in enumerate(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
)}  # fmt: skip


class _Mapping(NamedTuple):
    """One entry: a location in the generated file (counted from 0) and its source."""

    line: int
    column: int
    source: str
    source_line: int
    source_column: int

    def place(self) -> tuple[int, int]:
        return self.line, self.column


class SourceMap:
    def __init__(self, mappings: list[_Mapping]) -> None:
        self._generated = sorted(mappings, key=_Mapping.place)
        self.sources = frozenset(each.source for each in mappings)

    def original(self, line: int, column: int) -> tuple[str, int, int] | None:
        index = bisect.bisect_right(self._generated, (line, column), key=_Mapping.place) - 1
        if index < 0 or self._generated[index].line != line:
            return None
        return self._generated[index][2:]

    def generated(self, source: str, line: int) -> tuple[int, int] | None:
        """The first generated location of a source line, or of the nearest line after it that has one."""
        if source not in self.sources:
            return None
        after = [each for each in self._generated if each.source == source and each.source_line >= line]
        if not after:
            return None
        nearest = min(after, key=lambda each: (each.source_line, each.line, each.column))
        return nearest.line, nearest.column


def read_source_map(script_url: str, map_url: str) -> SourceMap | None:
    """The source map of a script, inline or in a file; None where it cannot be read."""
    try:
        text, base = _read_map(script_url, map_url)
        return SourceMap(list(_mappings(json.loads(text), base)))
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def _read_map(script_url: str, map_url: str) -> tuple[str, str]:
    if map_url.startswith("data:"):
        head, _, body = map_url.partition(",")
        return (base64.b64decode(body).decode() if head.endswith(";base64") else unquote(body)), script_url
    address = urljoin(script_url, map_url)
    return Path(_path_of(address)).read_text(encoding="utf-8"), address


def _path_of(url: str) -> str:
    return unquote(urlsplit(url).path) if url.startswith("file:") else url


def _mappings(found: JsonObject, base: str) -> Iterator[_Mapping]:
    root = str(found.get("sourceRoot") or "")
    root = root + "/" if root and not root.endswith("/") else root
    sources = [_path_of(urljoin(base, root + str(name))) for name in as_list(found["sources"])]
    source = source_line = source_column = 0
    for line, group in enumerate(str(found["mappings"]).split(";")):
        column = 0
        for segment in group.split(","):
            numbers = list(_numbers(segment))
            column += numbers[0] if numbers else 0
            if len(numbers) < 4:
                continue
            source += numbers[1]
            source_line += numbers[2]
            source_column += numbers[3]
            yield _Mapping(line, column, sources[source], source_line, source_column)


def _numbers(segment: str) -> Iterator[int]:
    """Base 64 VLQ numbers: five bits per digit, the lowest bit of the first is the sign."""
    value = shift = 0
    for character in segment:
        digit = _DIGITS[character]
        value |= (digit & 31) << shift
        if digit & 32:
            shift += 5
            continue
        yield -(value >> 1) if value & 1 else value >> 1
        value = shift = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    url: str
    map: SourceMap | None

    @property
    def file(self) -> str:
        return _path_of(self.url)


class Scripts:
    def __init__(self) -> None:
        self._by_id: dict[str, Script] = {}

    def add(self, script_id: str, url: str, map_url: str) -> Script:
        found = read_source_map(url, map_url) if map_url and url.startswith("file:") else None
        script = self._by_id[script_id] = Script(url=url, map=found)
        return script

    def source_location(self, location: JsonObject) -> tuple[str, int, int]:
        """The source file, line and column (counted from 1) of an inspector's location."""
        line, column = int(location["lineNumber"]), int(location.get("columnNumber") or 0)
        script = self._by_id.get(str(location["scriptId"]))
        if script is None:
            return "", line + 1, column + 1
        if script.map is not None and (found := script.map.original(line, column)) is not None:
            file, source_line, source_column = found
            return file, source_line + 1, source_column + 1
        return script.file, line + 1, column + 1

    def script_location(self, file: str, line: int) -> tuple[str, int, int] | None:
        """The URL, line and column (counted from 0) in a loaded script of a line (from 1) of one of its sources."""
        for script in self._by_id.values():
            if script.map is not None and (found := script.map.generated(file, line - 1)) is not None:
                return script.url, *found
        return None

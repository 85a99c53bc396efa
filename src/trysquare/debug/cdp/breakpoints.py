"""Scripts of Node's inspector with their source maps, and breakpoints in them: conditions, hit counts, log points."""

from __future__ import annotations

import base64
import bisect
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.json import JsonObject, as_list
from trysquare.debug.cdp.client import CdpClient
from trysquare.debug.debugger import Bound, BreakpointMoved, BreakpointSpec, Listener, RequestFailed
from trysquare.debug.expressions import parse_log_message
from trysquare.net.rpc import ConnectionLost

_DIGITS = {character: value for value, character in enumerate(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
)}  # fmt: skip


class _Mapping(NamedTuple):
    """One entry: a location in the generated file (counted from 0) and its source."""

    line: int
    column: int
    source: str
    source_line: int

    def place(self) -> tuple[int, int]:
        return self.line, self.column


class SourceMap:
    def __init__(self, mappings: list[_Mapping]) -> None:
        self._generated = sorted(mappings, key=_Mapping.place)
        self.sources = frozenset(each.source for each in mappings)

    def original(self, line: int, column: int) -> tuple[str, int] | None:
        """The source file and line of a generated location."""
        index = bisect.bisect_right(self._generated, (line, column), key=_Mapping.place) - 1
        if index < 0 or self._generated[index].line != line:
            return None
        return self._generated[index][2:]

    def originals(self, begin: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[str, int]]:
        """The source files and lines, counted from 1, of what lies between two generated locations."""
        first = bisect.bisect_left(self._generated, begin, key=_Mapping.place)
        for each in itertools.islice(self._generated, first, None):
            if each.place() >= end:
                return
            yield each.source, each.source_line + 1

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
    source = source_line = 0
    for line, group in enumerate(str(found["mappings"]).split(";")):
        column = 0
        for segment in group.split(","):
            numbers = list(_numbers(segment))
            column += numbers[0] if numbers else 0
            if len(numbers) < 4:
                continue
            source += numbers[1]
            source_line += numbers[2]
            yield _Mapping(line, column, sources[source], source_line)


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

    def source_location(self, location: JsonObject) -> tuple[str, int]:
        """The source file and line (counted from 1) of an inspector's location."""
        line, column = int(location["lineNumber"]), int(location.get("columnNumber") or 0)
        script = self._by_id.get(str(location["scriptId"]))
        found = ("" if script is None else script.file, line)
        if script is not None and script.map is not None:
            found = script.map.original(line, column) or found
        return found[0], found[1] + 1

    def script_location(self, file: str, line: int) -> tuple[str, int, int] | None:
        """The URL, line and column (counted from 0) in a loaded script of a line (from 1) of one of its sources."""
        for script in self._by_id.values():
            if script.map is not None and (found := script.map.generated(file, line - 1)) is not None:
                return script.url, *found
        return None


_HIT = re.compile(r"\s*(?P<sign>>=|<=|==|>|<|%)?\s*(?P<count>\d+)\s*")


def condition_of(spec: BreakpointSpec, number: int) -> str:
    """A JavaScript condition for all parts of a breakpoint; empty for a plain one."""
    parts: list[str] = []
    if spec.condition:
        parts.append(f"({spec.condition})")
    if spec.hit_condition:
        parts.append(_hit_condition(spec.hit_condition, number))
    if spec.log_message:
        # Its texts as string literals, its expressions as they are.
        message = parse_log_message(spec.log_message)
        values = [
            text if is_expression else json.dumps(text.strip()) for is_expression, text in message if text.strip()
        ]
        parts.append(f"(console.log({', '.join(values)}), false)")
    return " && ".join(parts)


def _hit_condition(text: str, number: int) -> str:
    found = _HIT.fullmatch(text)
    if found is None:
        raise RequestFailed("setBreakpoints", f"Invalid hit condition `{text}`: write 5, >=3 or %2.")
    name = f"globalThis.__trysquare_hits_{number}"
    counted = f"({name} = ({name} || 0) + 1)"
    sign, count = found["sign"] or "==", found["count"]
    return f"{counted} % {count} === 0" if sign == "%" else f"{counted} {'===' if sign == '==' else sign} {count}"


_OWN_SCRIPTS = r"^(?!node:)(?!.*/node_modules/)."
"""Scripts that may be paused at their first line; those of packages are too many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _SetBreakpoint:
    """A breakpoint as the inspector set it, with its locations in the running scripts."""

    id: str
    spec: BreakpointSpec
    locations: tuple[JsonObject, ...] = ()


class Breakpoints:
    """The breakpoints of one program. One in a file that is not loaded yet is pending."""

    def __init__(self, client: CdpClient, scripts: Scripts, listener: Listener) -> None:
        self._client = client
        self._scripts = scripts
        self._listener = listener
        self._numbers = itertools.count(1)
        self._set: dict[str, list[_SetBreakpoint]] = {}
        self._pending: dict[str, list[tuple[int, BreakpointSpec]]] = {}
        self._background = BackgroundTasks()
        self._first_lines: str | None = None
        """The id of the breakpoint at the first line of every new script."""

    async def replace(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        for each in self._set.pop(file, []):
            await self._remove(each.id)
        self._pending.pop(file, None)
        bound = [await self._set_one(spec, next(self._numbers)) for spec in specs]
        await self.pause_new_scripts()
        return bound

    async def pause_new_scripts(self) -> None:
        """Pause new scripts at their first line while breakpoints are pending: the source map locates them."""
        if self._pending and self._first_lines is None:
            wanted = {"lineNumber": 0, "urlRegex": _OWN_SCRIPTS}
            body = await self._client.request("Debugger.setBreakpointByUrl", wanted)
            self._first_lines = str(body["breakpointId"])

    async def run_new_scripts(self) -> None:
        if self._first_lines is not None:
            breakpoint_id, self._first_lines = self._first_lines, None
            await self._remove(breakpoint_id)

    def is_new_script(self, pause: JsonObject) -> bool:
        """Whether the program is paused only because a script was loaded."""
        return self._first_lines is not None and pause.get("hitBreakpoints") == [self._first_lines]

    async def stops_at(self, pause: JsonObject) -> bool:
        """Bind the breakpoints of a paused new script; return whether an unconditional one is at its first line."""
        await self._background.wait()
        if not self._pending:
            await self.run_new_scripts()
        location = pause["callFrames"][0]["location"]
        there = (each.spec for file in self._set.values() for each in file if location in each.locations)
        return any(spec.condition is spec.hit_condition is spec.log_message is None for spec in there)

    def on_script(self, script: Script) -> None:
        for file in (script.file, *(script.map.sources if script.map else ())):
            for number, spec in self._pending.pop(file, []):
                self._background.start(self._bind(spec, number))

    async def _bind(self, spec: BreakpointSpec, number: int) -> None:
        if self._scripts.script_location(spec.file, spec.line) is None:
            self._listener(BreakpointMoved(bound=Bound(verified=True, id=number, line=spec.line)))
            return
        with suppress(ConnectionLost):  # the program ended meanwhile
            # It was set at the source line, which is another line of the running script.
            for early in [each for each in self._set.get(spec.file, []) if each.spec == spec]:
                self._set[spec.file].remove(early)
                await self._remove(early.id)
            self._listener(BreakpointMoved(bound=await self._set_one(spec, number)))

    async def _set_one(self, spec: BreakpointSpec, number: int) -> Bound:
        known = self._scripts.script_location(spec.file, spec.line)
        url, line, column = known or (spec.file, spec.line - 1, (spec.column or 1) - 1)
        # Node names a file by its URL or, where it stripped types, by its path.
        urls = f"^(file://)?{re.escape(url.removeprefix('file://'))}$"
        wanted: JsonObject = {"lineNumber": line, "urlRegex": urls, "columnNumber": column}
        if condition := condition_of(spec, number):
            wanted["condition"] = condition
        body = await self._client.request("Debugger.setBreakpointByUrl", wanted)
        locations = as_list(body.get("locations"))
        made = _SetBreakpoint(id=str(body["breakpointId"]), spec=spec, locations=tuple(locations))
        self._set.setdefault(spec.file, []).append(made)
        if not locations:
            self._pending.setdefault(spec.file, []).append((number, spec))
            return Bound(verified=False, id=number, message="no loaded script has this line yet")
        return Bound(verified=True, id=number, line=self._scripts.source_location(locations[0])[1])

    async def _remove(self, breakpoint_id: str) -> None:
        await self._client.request("Debugger.removeBreakpoint", {"breakpointId": breakpoint_id})

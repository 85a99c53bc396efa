"""Breakpoints of Node's inspector: conditions, hit counts, log points."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.json import JsonObject, as_list
from trysquare.debug.cdp.client import CdpClient
from trysquare.debug.cdp.sources import Script, Scripts
from trysquare.debug.debugger import Bound, BreakpointMoved, BreakpointSpec, Listener, RequestFailed
from trysquare.debug.expressions import parse_log_message
from trysquare.net.rpc import ConnectionLost

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
        try:
            # It was set at the source line, which is another line of the running script.
            for early in [each for each in self._set.get(spec.file, []) if each.spec == spec]:
                self._set[spec.file].remove(early)
                await self._remove(early.id)
            self._listener(BreakpointMoved(bound=await self._set_one(spec, number)))
        except ConnectionLost:
            # The program ended meanwhile.
            return

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

"""Breakpoints of a Node program: set where a line runs, which for a script made from others its source map tells."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from trysquare.core.types import JsonObject
from trysquare.debug.cdp.client import CdpClient
from trysquare.debug.cdp.hits import condition_of
from trysquare.debug.cdp.scripts import Script, Scripts, Spot
from trysquare.debug.dap.client import ConnectionLost
from trysquare.debug.debugger import Bound, BreakpointMoved, BreakpointSpec, Listener

_OWN_SCRIPTS = r"^(?!node:)(?!.*/node_modules/)."
"""Scripts that may be held at their first line. Those of packages are too many, and are not what is debugged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Set:
    """A breakpoint as the inspector has it: its name for it, and where it is in what runs."""

    identity: str
    spec: BreakpointSpec
    places: tuple[JsonObject, ...] = ()


class Breakpoints:
    """The breakpoints of one program. One in a file that is not loaded yet waits for it."""

    def __init__(self, client: CdpClient, scripts: Scripts, listener: Listener) -> None:
        self._client = client
        self._scripts = scripts
        self._listener = listener
        self._numbers = itertools.count(1)
        self._set: dict[str, list[_Set]] = {}
        self._waiting: dict[str, list[tuple[int, BreakpointSpec]]] = {}
        self._binding: set[asyncio.Task[None]] = set()
        self._hold: str | None = None

    async def replace(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        """Put these breakpoints into a file, in place of all that were in it."""
        for each in self._set.pop(file, []):
            await self._remove(each.identity)
        self._waiting.pop(file, None)
        bound = [await self._set_one(spec, next(self._numbers)) for spec in specs]
        await self.hold_new_scripts()
        return bound

    async def hold_new_scripts(self) -> None:
        """While breakpoints wait for their script, have each stand at its first line: its map tells where they go."""
        if self._waiting and self._hold is None:
            wanted = {"lineNumber": 0, "urlRegex": _OWN_SCRIPTS}
            body = await self._client.request("Debugger.setBreakpointByUrl", wanted)
            self._hold = str(body["breakpointId"])

    async def hold_no_more(self) -> None:
        """Let scripts run as they are loaded."""
        if self._hold is not None:
            identity, self._hold = self._hold, None
            await self._remove(identity)

    def is_held(self, pause: JsonObject) -> bool:
        """Whether the program stands only because a script was loaded."""
        return self._hold is not None and pause.get("hitBreakpoints") == [self._hold]

    async def stops_at(self, pause: JsonObject) -> bool:
        """Put the breakpoints of a script that is held into it, and tell whether one is where it stands."""
        if self._binding:
            await asyncio.wait(self._binding)
        if not self._waiting:
            await self.hold_no_more()
        place = cast(list[JsonObject], pause["callFrames"])[0]["location"]
        there = (each.spec for file in self._set.values() for each in file if place in each.places)
        return any(_is_plain(spec) for spec in there)

    def hear_script(self, script: Script) -> None:
        """A script was loaded: those that waited for it are put into it."""
        for file in (script.file, *(script.map.sources if script.map else ())):
            for number, spec in self._waiting.pop(file, []):
                binding = asyncio.ensure_future(self._bind(spec, number))
                self._binding.add(binding)
                binding.add_done_callback(self._binding.discard)

    async def _bind(self, spec: BreakpointSpec, number: int) -> None:
        if self._scripts.runs_at(spec.file, spec.line) is None:
            self._listener(BreakpointMoved(bound=Bound(verified=True, id=number, line=spec.line)))
            return
        try:
            # It was set at the line as it is written, which is another line of what runs.
            for early in [each for each in self._set.get(spec.file, []) if each.spec == spec]:
                self._set[spec.file].remove(early)
                await self._remove(early.identity)
            self._listener(BreakpointMoved(bound=await self._set_one(spec, number)))
        except ConnectionLost:
            # The program ended meanwhile, which is told elsewhere.
            return

    async def _set_one(self, spec: BreakpointSpec, number: int) -> Bound:
        """Set a breakpoint where the line runs; one in a file that is not loaded yet waits for it."""
        spot = self._scripts.runs_at(spec.file, spec.line)
        place = spot or Spot(url=f"file://{spec.file}", line=spec.line - 1, column=(spec.column or 1) - 1)
        # Node names a file by its address or, where it took types out of it, by its bare path.
        names = f"^(file://)?{re.escape(place.url.removeprefix('file://'))}$"
        wanted: JsonObject = {"lineNumber": place.line, "urlRegex": names, "columnNumber": place.column}
        if condition := condition_of(spec, number):
            wanted["condition"] = condition
        body = await self._client.request("Debugger.setBreakpointByUrl", wanted)
        places = cast(list[JsonObject], body.get("locations") or [])
        made = _Set(identity=str(body["breakpointId"]), spec=spec, places=tuple(places))
        self._set.setdefault(spec.file, []).append(made)
        if not places:
            self._waiting.setdefault(spec.file, []).append((number, spec))
            return Bound(verified=False, id=number, message="no loaded script has this line yet")
        return self._bound_at(number, places[0])

    async def _remove(self, identity: str) -> None:
        await self._client.request("Debugger.removeBreakpoint", {"breakpointId": identity})

    def _bound_at(self, number: int, place: JsonObject) -> Bound:
        line, column = int(place["lineNumber"]), int(place.get("columnNumber") or 0)
        _, written, _ = self._scripts.written_at(str(place["scriptId"]), line, column)
        return Bound(verified=True, id=number, line=written)


def _is_plain(spec: BreakpointSpec) -> bool:
    """Whether a breakpoint always stops, so that nothing has to be asked."""
    return spec.condition is None and spec.hit_condition is None and spec.log_message is None

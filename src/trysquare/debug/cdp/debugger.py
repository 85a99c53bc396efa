"""NodeDebugger: Node's inspector as a `Debugger`, without an adapter between."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Sequence
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.cdp.client import CdpClient
from trysquare.debug.cdp.hits import condition_of
from trysquare.debug.cdp.scripts import Scripts, Spot
from trysquare.debug.cdp.values import value_text, value_type
from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.debugger import (
    Abilities,
    Bound,
    BreakpointMoved,
    BreakpointSpec,
    DataBreakpoint,
    EvaluateFor,
    ExceptionInfo,
    Exited,
    Frame,
    FunctionBreakpoint,
    Listener,
    Lost,
    Resumed,
    Scope,
    StepKind,
    Stopped,
    Thread,
    Variable,
)

MAIN_THREAD = 1
_STEPS: dict[StepKind, str] = {"over": "stepOver", "into": "stepInto", "out": "stepOut"}
_ABILITIES = Abilities(
    conditions=True,
    hit_conditions=True,
    log_points=True,
    exception_filters=("uncaught", "all"),
    set_variable=True,
    set_expression=True,
    exception_info=True,
)
_SCOPES = {"local": "locals", "block": "locals", "catch": "locals", "global": "globals"}


class NodeDebugger:
    """A debugger on one Node program."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._client = CdpClient(on_event=self._hear, on_lost=self._lose)
        self._scripts = Scripts()
        self._frames: list[JsonObject] = []
        self._pause: JsonObject = {}
        self._objects: dict[int, JsonObject] = {}
        self._numbers = itertools.count(1)
        self._set: dict[str, list[tuple[str, BreakpointSpec]]] = {}
        self._waiting: dict[str, list[tuple[int, BreakpointSpec]]] = {}
        self._stepping = False
        self._started = False
        self._ended = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.at_entry: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heard = {
            "Debugger.paused": self._hear_paused,
            "Debugger.resumed": self._hear_resumed,
            "Debugger.scriptParsed": self._hear_script,
            "Runtime.executionContextDestroyed": self._hear_end,
        }

    @property
    def abilities(self) -> Abilities:
        return _ABILITIES

    async def connect(self, url: str, *, timeout: float, is_waiting: bool = True) -> None:
        """Connect to a program, and bring one that waits to be started to its first line."""
        await self._client.connect(url, timeout=timeout)
        await self._client.request("Runtime.enable")
        await self._client.request("Debugger.enable")
        await self._client.request("Debugger.setAsyncCallStackDepth", {"maxDepth": 8})
        if not is_waiting:
            self._started = True
            return
        await self._client.request("Runtime.runIfWaitingForDebugger")
        async with asyncio.timeout(timeout):
            await asyncio.shield(self.at_entry)

    async def start(self) -> None:
        if self._started:
            return
        self._started = True
        await self._client.request("Debugger.resume")

    def stay_at_entry(self) -> None:
        """Instead of `start`: tell that the program stands before its first line, so that it can be stepped."""
        self._started = True
        self._listener(Stopped(reason="entry", thread=MAIN_THREAD))

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        for identity, _ in self._set.pop(file, []):
            await self._client.request("Debugger.removeBreakpoint", {"breakpointId": identity})
        self._waiting.pop(file, None)
        return [await self._set_one(spec, next(self._numbers)) for spec in specs]

    async def set_function_breakpoints(self, wanted: Sequence[FunctionBreakpoint]) -> list[Bound]:
        raise RequestFailed("setFunctionBreakpoints", "Node's inspector has none; set one at the function's line.", {})

    async def set_data_breakpoints(self, wanted: Sequence[DataBreakpoint]) -> list[Bound]:
        raise RequestFailed("setDataBreakpoints", "Node's inspector has none; use a conditional breakpoint.", {})

    async def data_id(self, name: str, *, reference: int, frame: int | None) -> str | None:
        return None

    async def set_exception_breakpoints(self, filters: Sequence[str]) -> None:
        state = "all" if "all" in filters else "uncaught" if "uncaught" in filters else "none"
        await self._client.request("Debugger.setPauseOnExceptions", {"state": state})

    async def resume(self, thread: int) -> None:
        await self._client.request("Debugger.resume")

    async def step(self, kind: StepKind, thread: int) -> None:
        if kind not in _STEPS:
            raise RequestFailed("step", "Node's inspector cannot step back.", {})
        self._stepping = True
        await self._client.request(f"Debugger.{_STEPS[kind]}")

    async def pause(self, thread: int) -> None:
        await self._client.request("Debugger.pause")

    async def goto(self, file: str, line: int, thread: int) -> None:
        raise RequestFailed("goto", "Node's inspector cannot go on elsewhere.", {})

    async def threads(self) -> list[Thread]:
        return [Thread(id=MAIN_THREAD, name="main")]

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        chosen = self._frames[start : start + count] if count else self._frames[start:]
        return [self._frame(start + index, each) for index, each in enumerate(chosen)], len(self._frames)

    async def scopes(self, frame: int) -> list[Scope]:
        found: list[Scope] = []
        for each in cast(list[JsonObject], self._frame_data(frame)["scopeChain"]):
            kind = str(each["type"])
            reference = self._keep(cast(JsonObject, each["object"]))
            mapped = _SCOPES.get(kind, "other")
            known = cast(Any, mapped)
            found.append(Scope(name=kind, kind=known, reference=reference, expensive=kind == "global"))
        return found

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]:
        remote = self._objects.get(reference)
        if remote is None or "objectId" not in remote:
            raise RequestFailed("variables", "That value is from an earlier stop.", {})
        wanted = {"objectId": remote["objectId"], "ownProperties": True, "generatePreview": True}
        body = await self._client.request("Runtime.getProperties", wanted)
        found = [self._property(each) for each in cast(list[JsonObject], body.get("result") or []) if "value" in each]
        return found[start : start + count] if count else found[start:]

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        wanted: JsonObject = {
            "expression": expression,
            "generatePreview": True,
            "throwOnSideEffect": purpose == "hover",
        }
        if frame is None or not self._frames:
            body = await self._client.request("Runtime.evaluate", wanted)
        else:
            identity = self._frame_data(frame)["callFrameId"]
            body = await self._client.request("Debugger.evaluateOnCallFrame", {**wanted, "callFrameId": identity})
        remote = cast(JsonObject, body.get("result") or {})
        if "exceptionDetails" in body:
            raise RequestFailed("evaluate", str(remote.get("description") or "It failed.").splitlines()[0], {})
        return self._variable(expression, remote, expression)

    async def assign(self, expression: str, value: str, frame: int) -> Variable:
        return await self.evaluate(f"{expression} = ({value})", frame, "repl")

    async def exception(self, thread: int) -> ExceptionInfo | None:
        data = cast(JsonObject, self._pause.get("data") or {})
        if self._pause.get("reason") not in ("exception", "promiseRejection"):
            return None
        text = str(data.get("description") or data.get("value") or "")
        first, _, rest = text.partition("\n")
        kind, _, message = first.partition(": ")
        return ExceptionInfo(type=kind or "Error", message=message or first, stack=rest)

    async def source(self, file: str) -> str | None:
        return None

    async def disconnect(self, *, kill: bool) -> None:
        self._ended = True
        self._client.close()

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
        self._set.setdefault(spec.file, []).append((str(body["breakpointId"]), spec))
        places = cast(list[JsonObject], body.get("locations") or [])
        if not places:
            self._waiting.setdefault(spec.file, []).append((number, spec))
            return Bound(verified=False, id=number, message="no loaded script has this line yet")
        return self._bound_at(number, places[0])

    def _bound_at(self, number: int, place: JsonObject) -> Bound:
        line, column = int(place["lineNumber"]), int(place.get("columnNumber") or 0)
        _, written, _ = self._scripts.written_at(str(place["scriptId"]), line, column)
        return Bound(verified=True, id=number, line=written)

    def _hear(self, method: str, params: JsonObject) -> None:
        hear = self._heard.get(method)
        if hear is not None:
            hear(params)

    def _hear_paused(self, params: JsonObject) -> None:
        self._pause, self._frames = params, cast(list[JsonObject], params.get("callFrames") or [])
        if not self.at_entry.done():
            self.at_entry.set_result(None)
        if self._started:
            self._listener(Stopped(reason=self._reason(params), thread=MAIN_THREAD, text=_text(params)))
        self._stepping = False

    def _reason(self, params: JsonObject) -> str:
        if params.get("reason") in ("exception", "promiseRejection"):
            return "exception"
        if params.get("hitBreakpoints"):
            return "breakpoint"
        return "step" if self._stepping else "pause" if params.get("reason") == "other" else str(params.get("reason"))

    def _hear_resumed(self, params: JsonObject) -> None:
        self._frames, self._objects = [], {}
        if self._started:
            self._listener(Resumed(thread=MAIN_THREAD))

    def _hear_script(self, params: JsonObject) -> None:
        script = self._scripts.add(
            str(params["scriptId"]), str(params.get("url") or ""), str(params.get("sourceMapURL") or "")
        )
        files = [script.file, *(script.map.sources if script.map else ())]
        for file in files:
            for number, spec in self._waiting.pop(file, []):
                self._keep_task(self._bind_late(spec, number))

    async def _bind_late(self, spec: BreakpointSpec, number: int) -> None:
        """A script was loaded that a breakpoint waited for."""
        if self._scripts.runs_at(spec.file, spec.line) is None:
            self._listener(BreakpointMoved(bound=Bound(verified=True, id=number, line=spec.line)))
            return
        self._listener(BreakpointMoved(bound=await self._set_one(spec, number)))

    def _hear_end(self, params: JsonObject) -> None:
        # The program is over, but its process waits for us to let go.
        if not self._ended:
            self._ended = True
            self._listener(Exited())
            self._client.close()

    def _lose(self, reason: str) -> None:
        if not self.at_entry.done():
            self.at_entry.set_exception(RequestFailed("launch", reason, {}))
            self.at_entry.exception()
        if not self._ended:
            self._ended = True
            self._listener(Lost(reason=reason))

    def _keep_task(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _frame_data(self, frame: int) -> JsonObject:
        if not 0 <= frame < len(self._frames):
            raise RequestFailed("stack", "That frame is from an earlier stop.", {})
        return self._frames[frame]

    def _frame(self, index: int, each: JsonObject) -> Frame:
        place = cast(JsonObject, each["location"])
        line, column = int(place["lineNumber"]), int(place.get("columnNumber") or 0)
        file, written_line, written_column = self._scripts.written_at(str(place["scriptId"]), line, column)
        known = file or str(each.get("url") or "")
        return Frame(
            id=index,
            name=str(each.get("functionName") or "(top)"),
            file=known or None,
            line=written_line,
            column=written_column,
            is_library=known.startswith("node:") or "/node_modules/" in known,
        )

    def _keep(self, remote: JsonObject) -> int:
        if "objectId" not in remote:
            return 0
        number = next(self._numbers)
        self._objects[number] = remote
        return number

    def _property(self, each: JsonObject) -> Variable:
        name = str(each["name"])
        return self._variable(name, cast(JsonObject, each["value"]), None)

    def _variable(self, name: str, remote: JsonObject, path: str | None) -> Variable:
        return Variable(
            name=name, value=value_text(remote), type=value_type(remote), reference=self._keep(remote), path=path
        )


def _text(params: JsonObject) -> str:
    data = cast(JsonObject, params.get("data") or {})
    return str(data.get("description") or "").partition("\n")[0]

"""NodeDebugger: Node's inspector as a `Debugger`, without an adapter between."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Sequence
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.cdp.breakpoints import Breakpoints
from trysquare.debug.cdp.client import CdpClient
from trysquare.debug.cdp.scripts import Scripts
from trysquare.debug.cdp.values import value_text, value_type
from trysquare.debug.cdp.workers import Workers
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import (
    Abilities,
    Bound,
    BreakpointSpec,
    ChildStarted,
    DataBreakpoint,
    EvaluateFor,
    ExceptionInfo,
    Exited,
    Frame,
    FunctionBreakpoint,
    Listener,
    Lost,
    NotReadable,
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


# An inspector that ends while somebody is still connected can crash the program with it, so it ends a while after we
# left; two waits, as a program that was halted meanwhile finds the first one over before it hears that we are gone.
_ENDING = 'globalThis[Symbol.for("trysquare.ending")]'
_LATER = "{ending} = setTimeout(() => {{ {act}; }}, 500).unref(); 0"
_END_LATER = _LATER.format(ending=_ENDING, act=_LATER.format(ending=_ENDING, act="process._debugEnd()"))
_STAY_OPEN = f"clearTimeout({_ENDING}); delete {_ENDING}; 0"


class NodeDebugger:
    """A debugger on one Node program."""

    def __init__(self, listener: Listener, *, closes_inspector: bool = False) -> None:
        self._listener = listener
        self.shows_secrets = False
        self._closes_inspector = closes_inspector
        self._client = CdpClient(on_event=self._hear, on_lost=self._lose)
        self._workers = Workers(self._client)
        self._main_context: int | None = None
        self._is_worker = False
        self._scripts = Scripts()
        self._frames: list[JsonObject] = []
        self._pause: JsonObject = {}
        self._objects: dict[int, JsonObject] = {}
        self._numbers = itertools.count(1)
        self._breakpoints = Breakpoints(self._client, self._scripts, listener)
        self._stepping = False
        self._started = False
        self._ended = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.at_entry: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heard = {
            "Debugger.paused": self._hear_paused,
            "Debugger.resumed": self._hear_resumed,
            "Debugger.scriptParsed": self._hear_script,
            "Runtime.executionContextCreated": self._hear_context,
            "Runtime.executionContextDestroyed": self._hear_end,
            "NodeWorker.attachedToWorker": self._hear_worker,
            "NodeWorker.receivedMessageFromWorker": self._workers.hear,
            "NodeWorker.detachedFromWorker": self._workers.hear_end,
        }

    @property
    def abilities(self) -> Abilities:
        return _ABILITIES

    async def connect(self, url: str, *, timeout: float, is_waiting: bool = True) -> None:
        """Connect to a program, and bring one that waits to be started to its first line."""
        await self._client.connect(url, timeout=timeout)
        await self._enable()
        await self._workers.watch()
        if not is_waiting:
            self._started = True
            await self._client.request("Runtime.evaluate", {"expression": _STAY_OPEN})
            return
        await self._client.request("Runtime.runIfWaitingForDebugger")
        async with asyncio.timeout(timeout):
            await asyncio.shield(self.at_entry)

    async def worker(self, name: str, listener: Listener) -> NodeDebugger:
        """A debugger on a thread that waits to be started."""
        debugger = NodeDebugger(listener)
        debugger._is_worker = True
        self._workers.open(name, debugger._client)
        await debugger._enable()
        return debugger

    async def _enable(self) -> None:
        await self._client.request("Runtime.enable")
        await self._client.request("Debugger.enable")
        await self._client.request("Debugger.setAsyncCallStackDepth", {"maxDepth": 8})

    async def start(self) -> None:
        if self._started:
            return
        self._started = True
        await self._client.request("Runtime.runIfWaitingForDebugger" if self._is_worker else "Debugger.resume")

    def stay_at_entry(self) -> None:
        """Instead of `start`: tell that the program stands before its first line, so that it can be stepped."""
        self._started = True
        self._listener(Stopped(reason="entry", thread=MAIN_THREAD))

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        return await self._breakpoints.replace(file, specs)

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
        await self._breakpoints.hold_new_scripts()
        await self._client.request("Debugger.resume")

    async def step(self, kind: StepKind, thread: int) -> None:
        if kind not in _STEPS:
            raise RequestFailed("step", "Node's inspector cannot step back.", {})
        # A script that is held would end the step.
        await self._breakpoints.hold_no_more()
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

    def locals_reference(self, frame: int) -> int | None:
        return None

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]:
        remote = self._objects.get(reference)
        if remote is None or "objectId" not in remote:
            raise RequestFailed("variables", "That value is from an earlier stop.", {})
        wanted = {"objectId": remote["objectId"], "ownProperties": True, "generatePreview": True}
        body = await self._client.request("Runtime.getProperties", wanted)
        found = [self._property(each) for each in cast(list[JsonObject], body.get("result") or []) if "value" in each]
        return found[start : start + count] if count else found[start:]

    async def read(self, expression: str, frame: int) -> Variable:
        try:
            return await self.evaluate(expression, frame, "hover")
        except RequestFailed as error:
            if "side-effect" in error.message:
                raise NotReadable("the engine found that it could change something") from None
            raise

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
        if self._closes_inspector and not self._ended:
            await self._close_inspector()
        self._ended = True
        self._client.close()

    async def _close_inspector(self) -> None:
        """Leave the program as it was found: its inspector was opened for us, at a port that others may need."""
        try:
            await self._client.request("Debugger.disable", timeout=3.0)
            await self._client.request("Runtime.evaluate", {"expression": _END_LATER}, timeout=3.0)
        except (ConnectionLost, RequestFailed, TimeoutError):
            # The program is gone, or busy: its inspector stays as it is.
            return

    def _hear(self, method: str, params: JsonObject) -> None:
        hear = self._heard.get(method)
        if hear is not None:
            hear(params)

    def _hear_paused(self, params: JsonObject) -> None:
        is_first = self._is_worker and params.get("reason") == "Break on start"
        if is_first or self._breakpoints.is_held(params):
            self._keep_task(self._let_in(params))
        else:
            self._stand(params)

    def _stand(self, params: JsonObject) -> None:
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
        self._breakpoints.hear_script(script)

    async def _let_in(self, params: JsonObject) -> None:
        """A script is held at its first line: let it run once its breakpoints are in it, unless one is at that line."""
        if await self._breakpoints.stops_at(params):
            self._stand({**params, "hitBreakpoints": ["its own"]})
            return
        try:
            await self._client.request("Debugger.resume")
        except ConnectionLost:
            # The program ended meanwhile, which is told elsewhere.
            return

    def _hear_context(self, params: JsonObject) -> None:
        context = cast(JsonObject, params["context"])
        if self._main_context is None and cast(JsonObject, context.get("auxData") or {}).get("isDefault"):
            self._main_context = int(context["id"])

    def _hear_worker(self, params: JsonObject) -> None:
        self._listener(ChildStarted(arguments={"sessionId": params["sessionId"]}))

    def _hear_end(self, params: JsonObject) -> None:
        # The program is over, but its process waits for us to let go. Contexts that it made itself come and go.
        if not self._ended and params.get("executionContextId") == self._main_context:
            self._ended = True
            self._listener(Exited())
            self._client.close()

    def _lose(self, reason: str) -> None:
        self._workers.lose(reason)
        if not self.at_entry.done():
            self.at_entry.set_exception(RequestFailed("launch", reason, {}))
            self.at_entry.exception()
        if not self._ended:
            self._ended = True
            self._listener(Lost(reason=reason))

    def _keep_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
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
            name=name,
            value=value_text(remote),
            type=value_type(remote),
            reference=self._keep(remote),
            path=path,
            shows_all=self.shows_secrets,
        )


def _text(params: JsonObject) -> str:
    data = cast(JsonObject, params.get("data") or {})
    return str(data.get("description") or "").partition("\n")[0]

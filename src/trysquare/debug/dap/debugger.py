"""DapDebugger: an adapter of the Debug Adapter Protocol as a `Debugger`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.debug.dap.client import DapClient
from trysquare.debug.debugger import (
    DEBUGGER_ERRORS,
    Bound,
    BreakpointMoved,
    BreakpointSpec,
    Capabilities,
    ChildStarted,
    DataBreakpoint,
    Debugger,
    Disconnected,
    EvaluateFor,
    ExceptionInfo,
    Exited,
    Frame,
    FunctionBreakpoint,
    Listener,
    NotReadable,
    Output,
    OutputStream,
    RequestFailed,
    Resumed,
    Scope,
    StepKind,
    Stopped,
    Thread,
    Variable,
)
from trysquare.debug.expressions import ExpressionRules, is_plain, path_of

_STEPS: dict[StepKind, str] = {"over": "next", "into": "stepIn", "out": "stepOut", "back": "stepBack"}
_STREAMS: dict[str, OutputStream] = {"stdout": "stdout", "stderr": "stderr"}
_SUPPORTS = {
    "conditions": "ConditionalBreakpoints", "hit_conditions": "HitConditionalBreakpoints", "log_points": "LogPoints",
    "function_breakpoints": "FunctionBreakpoints", "data_breakpoints": "DataBreakpoints",
    "goto": "GotoTargetsRequest", "step_back": "StepBack", "terminate": "TerminateRequest",
    "exception_info": "ExceptionInfoRequest",
}  # fmt: skip
_CLIENT = {
    "clientID": "trysquare", "clientName": "Trysquare", "linesStartAt1": True, "columnsStartAt1": True,
    "pathFormat": "path", "supportsVariableType": True, "supportsVariablePaging": True,
    "supportsRunInTerminalRequest": False, "supportsStartDebuggingRequest": True, "supportsInvalidatedEvent": True,
}  # fmt: skip


class DapDebugger(Debugger):
    """A debugger behind the Debug Adapter Protocol: connect its `client`, then `initialize` and `begin`."""

    def __init__(self, listener: Listener, *, adapter_id: str, expressions: Sequence[ExpressionRules] = ()) -> None:
        self._listener = listener
        self.shows_secrets = False
        self._expressions = expressions
        self._files: dict[int, str] = {}
        """The files of the frames of the last stack, by frame id."""
        self._adapter_id = adapter_id
        self._ready = asyncio.get_running_loop().create_future()
        self._begun: asyncio.Future[JsonObject] | None = None
        self._ended = False
        self._functions: Sequence[FunctionBreakpoint] = ()
        self._own_functions: dict[str, str] = {}
        """Functions at which it stops for a reason of its own, such as those that the runtime enters at a panic."""
        self._own_ids: dict[int, str] = {}
        self._function_ids: dict[int, str] = {}
        self._advertised: JsonObject = {}
        self._handlers: dict[str, Callable[[JsonObject], object]] = {
            "initialized": lambda body: self._ready.done() or self._ready.set_result(None),
            "stopped": self._on_stopped,
            "continued": lambda body: listener(Resumed()),
            "output": self._on_output,
            "exited": self._on_exited,
            "terminated": self._on_exited,
            "breakpoint": lambda body: listener(BreakpointMoved(bound=_bound(as_object(body.get("breakpoint"))))),
            "capabilities": lambda body: self._advertised.update(as_object(body.get("capabilities"))),
            "debugpyAttach": lambda body: listener(ChildStarted(arguments=body)),
            "pydevdSubprocess": lambda body: listener(ChildStarted(arguments=body)),
        }
        self.client = DapClient(on_event=self._on_event, on_lost=self._on_lost, on_request=self._serve)

    @property
    def capabilities(self) -> Capabilities:
        filters = self._advertised.get("exceptionBreakpointFilters") or ()
        supported = {name: bool(self._advertised.get(f"supports{key}")) for name, key in _SUPPORTS.items()}
        return Capabilities(exception_filters=tuple(str(each["filter"]) for each in filters), **supported)

    async def initialize(self, *, timeout: float = 20.0) -> None:
        await asyncio.wait_for(asyncio.shield(self.client.connected), timeout)
        arguments = {**_CLIENT, "adapterID": self._adapter_id}
        self._advertised = await self.client.request("initialize", arguments, timeout=timeout)

    async def begin(
        self, command: Literal["launch", "attach"], arguments: JsonObject, *, timeout: float = 30.0
    ) -> None:
        """Launch or attach, up to the point where breakpoints can be set; `start` runs the program."""
        _, self._begun = self.client.send(command, arguments)
        # Some adapters answer now, some only after `configurationDone`; a refusal must be raised at once.
        await asyncio.wait({self._ready, self._begun}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if self._begun.done():
            self._begun.result()
        async with asyncio.timeout(timeout):
            await asyncio.shield(self._ready)

    async def start(self) -> None:
        if self._advertised.get("supportsConfigurationDoneRequest"):
            await self.client.request("configurationDone", {})
        if self._begun is not None:
            async with asyncio.timeout(30):
                await self._begun

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        breakpoints = [
            _given(
                line=spec.line, column=spec.column, condition=spec.condition, hitCondition=spec.hit_condition,
                logMessage=spec.log_message,
            )
            for spec in specs
        ]  # fmt: skip
        wanted = {"source": {"path": file}, "breakpoints": breakpoints, "sourceModified": False}
        return _bound_all(await self.client.request("setBreakpoints", wanted))

    async def set_function_breakpoints(self, wanted: Sequence[FunctionBreakpoint]) -> list[Bound]:
        self._functions = tuple(wanted)
        breakpoints = [
            _given(name=each.name, condition=each.condition, hitCondition=each.hit_condition) for each in wanted
        ]
        breakpoints += [{"name": name} for name in self._own_functions]
        made = _bound_all(await self.client.request("setFunctionBreakpoints", {"breakpoints": breakpoints}))
        bound = self._by_name([str(each["name"]) for each in breakpoints], made)
        own = zip(bound[len(wanted) :], self._own_functions.values(), strict=True)
        self._own_ids = {made.id: reason for made, reason in own if made.id is not None}
        return bound[: len(wanted)]

    def _by_name(self, names: Sequence[str], made: Sequence[Bound]) -> list[Bound]:
        """The function breakpoints in the order of their names: lldb-dap answers with known ones first."""
        before = {each.id: each for each in made if each.id in self._function_ids}
        kept = {name: before[number] for number, name in self._function_ids.items() if number in before}
        fresh = iter([each for each in made if each.id not in before])
        found = [kept[name] if name in kept else next(fresh, Bound(verified=False)) for name in names]
        self._function_ids = {each.id: name for each, name in zip(found, names, strict=True) if each.id is not None}
        return found

    async def set_own_function(self, name: str, reason: str | None) -> None:
        """Stop in a function and report another reason for it; None: no longer."""
        others = {each: why for each, why in self._own_functions.items() if each != name}
        self._own_functions = others | ({name: reason} if reason else {})
        await self.set_function_breakpoints(self._functions)

    async def set_data_breakpoints(self, wanted: Sequence[DataBreakpoint]) -> list[Bound]:
        breakpoints = [_given(dataId=each.data_id, accessType=each.access, condition=each.condition) for each in wanted]
        return _bound_all(await self.client.request("setDataBreakpoints", {"breakpoints": breakpoints}))

    async def data_id(self, name: str, *, reference: int, frame: int | None) -> str | None:
        wanted = _given(name=name, variablesReference=reference or None, frameId=frame)
        found = (await self.client.request("dataBreakpointInfo", wanted)).get("dataId")
        return None if found is None else str(found)

    async def set_exception_breakpoints(self, filters: Sequence[str]) -> None:
        await self.client.request("setExceptionBreakpoints", {"filters": list(filters)})

    async def resume(self, thread: int) -> None:
        await self.client.request("continue", {"threadId": thread})

    async def step(self, kind: StepKind, thread: int) -> None:
        await self.client.request(_STEPS[kind], {"threadId": thread})

    async def pause(self, thread: int) -> None:
        await self.client.request("pause", {"threadId": thread})

    async def goto(self, file: str, line: int, thread: int) -> None:
        found = await self.client.request("gotoTargets", {"source": {"path": file}, "line": line})
        targets = as_list(found.get("targets"))
        if not targets:
            raise RequestFailed("goto", f"Execution cannot continue at {file}:{line}.")
        await self.client.request("goto", {"threadId": thread, "targetId": targets[0]["id"]})

    async def threads(self) -> list[Thread]:
        body = await self.client.request("threads")
        return [Thread(id=int(each["id"]), name=str(each.get("name", ""))) for each in as_list(body.get("threads"))]

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        body = await self.client.request("stackTrace", {"threadId": thread, "startFrame": start, "levels": count})
        frames = [_frame(each) for each in as_list(body.get("stackFrames"))]
        self._files = {each.id: each.file or "" for each in frames}
        return frames[:count] if count else frames, max(int(body.get("totalFrames") or 0), start + len(frames))

    async def scopes(self, frame: int) -> list[Scope]:
        body = await self.client.request("scopes", {"frameId": frame})
        return [_scope(each) for each in as_list(body.get("scopes"))]

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]:
        wanted = _given(variablesReference=reference, start=start or None, count=count or None)
        body = await self.client.request("variables", wanted)
        return [self._variable(each) for each in as_list(body.get("variables"))]

    async def read(self, expression: str, frame: int) -> Variable:
        if is_plain(expression, self._expressions, file=self._files.get(frame, "")):
            return await self.evaluate(expression, frame)
        path = path_of(expression)
        if path is None:
            raise NotReadable("it is not a plain path such as a.b[0].c")
        return replace(await self._find(path, frame), name=expression)

    async def _find(self, path: Sequence[str], frame: int) -> Variable:
        """A value by its path, part by part from the scopes of the frame."""
        first, *rest = path
        for scope in await self.scopes(frame):
            if scope.expensive and scope.kind != "globals":
                continue
            found = _find_part(first, await self.variables(scope.reference))
            for name in rest:
                parts = await self.variables(found.reference) if found is not None and found.reference else []
                found = _find_part(name, parts)
            if found is not None:
                return found
        raise RequestFailed("evaluate", f"`{path[-1]}` not found there")

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        body = await self.client.request("evaluate", _given(expression=expression, frameId=frame, context=purpose))
        return self._variable({"name": expression, **body, "value": body.get("result", "")})

    async def assign(self, expression: str, value: str, frame: int) -> Variable:
        wanted = {"expression": expression, "value": value, "frameId": frame}
        body = await self.client.request("setExpression", wanted)
        return self._variable({"name": expression, **body})

    async def exception(self, thread: int) -> ExceptionInfo | None:
        if not self.capabilities.exception_info:
            return None
        body = await self.client.request("exceptionInfo", {"threadId": thread})
        details = as_object(body.get("details"))
        return ExceptionInfo(
            type=str(details.get("typeName") or body.get("exceptionId") or "exception"),
            message=str(details.get("message") or body.get("description") or ""),
        )

    async def disconnect(self, *, kill: bool) -> None:
        try:
            # It may be gone before it answers; the supervisor ends the process.
            with suppress(*DEBUGGER_ERRORS):
                await self.client.request("disconnect", {"terminateDebuggee": kill}, timeout=3.0)
        finally:
            self.client.close()

    def _variable(self, each: JsonObject) -> Variable:
        return Variable(
            name=str(each.get("name", "")),
            value=str(each.get("value", "")),
            type=each.get("type"),
            reference=int(each.get("variablesReference") or 0),
            indexed=int(each.get("indexedVariables") or 0),
            shows_all=self.shows_secrets,
        )

    def _on_event(self, event: str, body: JsonObject) -> None:
        if (handler := self._handlers.get(event)) is not None:
            handler(body)

    def _on_stopped(self, body: JsonObject) -> None:
        text = str(body.get("text") or body.get("description") or "")
        reason = str(body.get("reason", ""))
        if own := [self._own_ids[each] for each in as_list(body.get("hitBreakpointIds")) if each in self._own_ids]:
            reason = text = own[0]
        self._listener(Stopped(reason=reason, thread=int(body.get("threadId") or 0), text=text))

    def _on_exited(self, body: JsonObject) -> None:
        ended = _exited(body)
        # Adapters send `exited` with the code, `terminated` without it, or both in either order.
        if not self._ended or ended != Exited():
            self._ended = True
            self._listener(ended)

    def _on_output(self, body: JsonObject) -> None:
        category = str(body.get("category") or "console")
        if category != "telemetry":
            self._listener(Output(stream=_STREAMS.get(category, "console"), text=str(body.get("output", ""))))

    def _serve(self, command: str, arguments: JsonObject) -> JsonObject | None:
        if command != "startDebugging":
            return None
        self._listener(ChildStarted(arguments=arguments))
        return {}

    def _on_lost(self, reason: str) -> None:
        if not self._ready.done():
            self._ready.set_exception(RequestFailed("launch", reason))
            self._ready.exception()
        if not self._ended:
            self._listener(Disconnected(reason=reason))


def _given(**arguments: Any) -> JsonObject:
    """Arguments that are set: some adapters reject null."""
    return {name: value for name, value in arguments.items() if value is not None}


def _bound_all(body: JsonObject) -> list[Bound]:
    return [_bound(each) for each in as_list(body.get("breakpoints"))]


def _bound(each: JsonObject) -> Bound:
    return Bound(
        verified=bool(each.get("verified")), id=each.get("id"), line=each.get("line"), message=each.get("message")
    )


def _frame(each: JsonObject) -> Frame:
    source = as_object(each.get("source"))
    return Frame(
        id=int(each["id"]),
        name=str(each.get("name", "")),
        file=source.get("path") or source.get("name"),
        line=int(each.get("line") or 0),
    )


def _scope(each: JsonObject) -> Scope:
    name = str(each.get("name", ""))
    hint = f"{each.get('presentationHint') or ''} {name}".lower()
    kind = "locals" if "local" in hint or "argument" in hint else "globals" if "global" in hint else "other"
    reference = int(each.get("variablesReference") or 0)
    return Scope(name=name, kind=kind, reference=reference, expensive=bool(each.get("expensive")))


def _exited(body: JsonObject) -> Exited:
    code, signal = body.get("exitCode"), body.get("signal")
    if isinstance(signal, int):
        return Exited(signal=signal)
    # pydevd reports a meaningless code for a process that replaces itself by another program.
    return Exited.with_status(code) if isinstance(code, int) and "pydevdReason" not in body else Exited()


def _find_part(name: str, parts: Sequence[Variable]) -> Variable | None:
    """The part that a step of a path refers to, however the debugger writes its name."""
    return next((part for part in parts if part.name.strip("[]\"'") == name or part.name == name), None)

"""DapDebugger: any adapter of the Debug Adapter Protocol as a `Debugger`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from trysquare.core.types import JsonObject
from trysquare.debug.dap.client import ConnectionLost, DapClient, RequestFailed
from trysquare.debug.debugger import (
    Abilities,
    Bound,
    BreakpointMoved,
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
    Output,
    OutputStream,
    Resumed,
    Scope,
    StepKind,
    Stopped,
    Thread,
    Variable,
)
from trysquare.debug.guarding import is_plain
from trysquare.debug.reading import part_named, path_of

_STEPS: dict[StepKind, str] = {"over": "next", "into": "stepIn", "out": "stepOut", "back": "stepBack"}
_STREAMS: dict[str, OutputStream] = {"stdout": "stdout", "stderr": "stderr"}
_CLIENT = {
    "clientID": "trysquare",
    "clientName": "Trysquare",
    "linesStartAt1": True,
    "columnsStartAt1": True,
    "pathFormat": "path",
    "supportsVariableType": True,
    "supportsVariablePaging": True,
    "supportsRunInTerminalRequest": False,
    "supportsStartDebuggingRequest": True,
    "supportsInvalidatedEvent": True,
}


class DapDebugger:
    """A debugger behind the Debug Adapter Protocol. Make it, connect its `client`, then `initialize` and `begin`."""

    def __init__(self, listener: Listener, *, adapter_id: str, language: str = "") -> None:
        self._listener = listener
        self.shows_secrets = False
        self._language = language
        """Set where expressions of the language can be told to run nothing."""
        self._files: dict[int, str] = {}
        """The files of the frames that were last asked for: in one of C, not of C++, operators run nothing."""
        self._adapter_id = adapter_id
        self._ready = asyncio.get_running_loop().create_future()
        self._begun: asyncio.Future[JsonObject] | None = None
        self._ended = False
        self._capabilities: JsonObject = {}
        self._heard: dict[str, Callable[[JsonObject], None]] = {
            "initialized": self._hear_initialized,
            "stopped": self._hear_stopped,
            "continued": self._hear_continued,
            "output": self._hear_output,
            "exited": self._hear_exited,
            "terminated": self._hear_exited,
            "breakpoint": self._hear_breakpoint,
            "capabilities": self._hear_capabilities,
            "debugpyAttach": self._hear_child,
            "pydevdSubprocess": self._hear_child,
        }
        self.client = DapClient(on_event=self._hear, on_lost=self._lose, on_request=self._serve)

    @property
    def abilities(self) -> Abilities:
        known = self._capabilities
        return Abilities(
            conditions=bool(known.get("supportsConditionalBreakpoints")),
            hit_conditions=bool(known.get("supportsHitConditionalBreakpoints")),
            log_points=bool(known.get("supportsLogPoints")),
            function_breakpoints=bool(known.get("supportsFunctionBreakpoints")),
            data_breakpoints=bool(known.get("supportsDataBreakpoints")),
            exception_filters=tuple(str(each["filter"]) for each in known.get("exceptionBreakpointFilters") or ()),
            set_variable=bool(known.get("supportsSetVariable")),
            set_expression=bool(known.get("supportsSetExpression")),
            goto=bool(known.get("supportsGotoTargetsRequest")),
            step_back=bool(known.get("supportsStepBack")),
            terminate=bool(known.get("supportsTerminateRequest")),
            exception_info=bool(known.get("supportsExceptionInfoRequest")),
            restart_frame=bool(known.get("supportsRestartFrame")),
        )

    async def initialize(self, *, timeout: float = 20.0) -> None:
        """Say who we are and learn what the adapter can do."""
        await asyncio.wait_for(asyncio.shield(self.client.connected), timeout)
        arguments = {**_CLIENT, "adapterID": self._adapter_id}
        self._capabilities = await self.client.request("initialize", arguments, timeout=timeout)

    async def begin(
        self, command: Literal["launch", "attach"], arguments: JsonObject, *, timeout: float = 30.0
    ) -> None:
        """Launch or attach, up to the point where breakpoints can be set; `start` lets the program run."""
        _, self._begun = self.client.send(command, arguments)
        # Some adapters answer now, some only after `configurationDone`; a refusal must be heard at once.
        await asyncio.wait({self._ready, self._begun}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if self._begun.done():
            self._begun.result()
        async with asyncio.timeout(timeout):
            await asyncio.shield(self._ready)

    async def start(self) -> None:
        if self._capabilities.get("supportsConfigurationDoneRequest"):
            await self.client.request("configurationDone", {})
        if self._begun is not None:
            async with asyncio.timeout(30):
                await self._begun

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        wanted = [_spec_to_dap(spec) for spec in specs]
        body = await self.client.request(
            "setBreakpoints", {"source": {"path": file}, "breakpoints": wanted, "sourceModified": False}
        )
        return _bound_all(body)

    async def set_function_breakpoints(self, wanted: Sequence[FunctionBreakpoint]) -> list[Bound]:
        breakpoints = [
            _given(name=each.name, condition=each.condition, hitCondition=each.hit_condition) for each in wanted
        ]
        return _bound_all(await self.client.request("setFunctionBreakpoints", {"breakpoints": breakpoints}))

    async def set_data_breakpoints(self, wanted: Sequence[DataBreakpoint]) -> list[Bound]:
        breakpoints = [_given(dataId=each.data_id, accessType=each.access, condition=each.condition) for each in wanted]
        return _bound_all(await self.client.request("setDataBreakpoints", {"breakpoints": breakpoints}))

    async def data_id(self, name: str, *, reference: int, frame: int | None) -> str | None:
        wanted = _given(name=name, variablesReference=reference or None, frameId=frame)
        body = await self.client.request("dataBreakpointInfo", wanted)
        found = body.get("dataId")
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
        targets = cast(list[JsonObject], found.get("targets") or [])
        if not targets:
            raise RequestFailed("goto", f"The program cannot go on at {file}:{line}.", {})
        await self.client.request("goto", {"threadId": thread, "targetId": targets[0]["id"]})

    async def threads(self) -> list[Thread]:
        body = await self.client.request("threads")
        found = cast(list[JsonObject], body.get("threads") or [])
        return [Thread(id=int(each["id"]), name=str(each.get("name", ""))) for each in found]

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        body = await self.client.request("stackTrace", {"threadId": thread, "startFrame": start, "levels": count})
        frames = [_frame(each) for each in cast(list[JsonObject], body.get("stackFrames") or [])]
        shown = frames[:count] if count else frames
        self._files = {each.id: each.file or "" for each in frames}
        return shown, max(int(body.get("totalFrames") or 0), start + len(frames))

    async def scopes(self, frame: int) -> list[Scope]:
        body = await self.client.request("scopes", {"frameId": frame})
        return [_scope(each) for each in cast(list[JsonObject], body.get("scopes") or [])]

    def locals_reference(self, frame: int) -> int | None:
        return None

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]:
        wanted = _given(variablesReference=reference, start=start or None, count=count or None)
        body = await self.client.request("variables", wanted)
        return [self._variable(each) for each in cast(list[JsonObject], body.get("variables") or [])]

    async def read(self, expression: str, frame: int) -> Variable:
        if self._language and is_plain(expression, self._language, file=self._files.get(frame, "")):
            return await self.evaluate(expression, frame)
        path = path_of(expression)
        if path is None:
            raise NotReadable("it is not a plain path such as a.b[0].c")
        return replace(await self._at(path, frame), name=expression)

    async def _at(self, path: Sequence[str], frame: int) -> Variable:
        """A value by its path: from the scopes of the frame on, part by part, as the debugger shows them."""
        first, *rest = path
        for scope in await self.scopes(frame):
            if scope.expensive and scope.kind != "globals":
                continue
            found = part_named(first, await self.variables(scope.reference))
            for name in rest:
                parts = await self.variables(found.reference) if found is not None and found.reference else []
                found = part_named(name, parts)
            if found is not None:
                return found
        raise RequestFailed("evaluate", f"the debugger shows no `{path[-1]}` there", {})

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        body = await self.client.request("evaluate", _given(expression=expression, frameId=frame, context=purpose))
        return self._variable({"name": expression, "evaluateName": expression, **body, "value": body.get("result", "")})

    async def assign(self, expression: str, value: str, frame: int) -> Variable:
        wanted = {"expression": expression, "value": value, "frameId": frame}
        body = await self.client.request("setExpression", wanted)
        return self._variable({"name": expression, "evaluateName": expression, **body})

    async def exception(self, thread: int) -> ExceptionInfo | None:
        if not self.abilities.exception_info:
            return None
        body = await self.client.request("exceptionInfo", {"threadId": thread})
        details = cast(JsonObject, body.get("details") or {})
        return ExceptionInfo(
            type=str(details.get("typeName") or body.get("exceptionId") or "exception"),
            message=str(details.get("message") or body.get("description") or ""),
            stack=str(details.get("stackTrace") or ""),
        )

    async def source(self, file: str) -> str | None:
        return None

    async def disconnect(self, *, kill: bool) -> None:
        try:
            await self.client.request("disconnect", {"terminateDebuggee": kill}, timeout=3.0)
        except (RequestFailed, ConnectionLost, TimeoutError):
            # The debugger may be gone before its answer is; the process itself is looked after elsewhere.
            pass
        finally:
            self.client.close()

    def _variable(self, each: JsonObject) -> Variable:
        return replace(_variable(each), shows_all=self.shows_secrets)

    def _hear(self, event: str, body: JsonObject) -> None:
        hear = self._heard.get(event)
        if hear is not None:
            hear(body)

    def _hear_initialized(self, body: JsonObject) -> None:
        if not self._ready.done():
            self._ready.set_result(None)

    def _hear_stopped(self, body: JsonObject) -> None:
        self._listener(_stopped(body))

    def _hear_continued(self, body: JsonObject) -> None:
        self._listener(Resumed(thread=body.get("threadId")))

    def _hear_exited(self, body: JsonObject) -> None:
        self._end(_exited(body))

    def _hear_breakpoint(self, body: JsonObject) -> None:
        self._listener(BreakpointMoved(bound=_bound(cast(JsonObject, body.get("breakpoint") or {}))))

    def _hear_capabilities(self, body: JsonObject) -> None:
        self._capabilities = {**self._capabilities, **cast(JsonObject, body.get("capabilities") or {})}

    def _hear_child(self, body: JsonObject) -> None:
        self._listener(ChildStarted(arguments=dict(body)))

    def _hear_output(self, body: JsonObject) -> None:
        category = str(body.get("category") or "console")
        if category != "telemetry":
            self._listener(Output(stream=_STREAMS.get(category, "console"), text=str(body.get("output", ""))))

    def _end(self, ended: Exited) -> None:
        # `exited` tells the code and `terminated` only the end; adapters send one of them, or both in either order.
        if not self._ended or ended != Exited():
            self._ended = True
            self._listener(ended)

    def _serve(self, command: str, arguments: JsonObject) -> JsonObject | None:
        if command != "startDebugging":
            return None
        self._listener(ChildStarted(arguments=dict(arguments)))
        return {}

    def _lose(self, reason: str) -> None:
        if not self._ready.done():
            self._ready.set_exception(ConnectionLost(reason))
            self._ready.exception()
        if not self._ended:
            self._listener(Lost(reason=reason))


def _spec_to_dap(spec: BreakpointSpec) -> JsonObject:
    return _given(
        line=spec.line,
        column=spec.column,
        condition=spec.condition,
        hitCondition=spec.hit_condition,
        logMessage=spec.log_message,
    )


def _given(**arguments: Any) -> JsonObject:
    """Only what is set: some adapters take null for a wrong type."""
    return {name: value for name, value in arguments.items() if value is not None}


def _bound_all(body: JsonObject) -> list[Bound]:
    return [_bound(each) for each in cast(list[JsonObject], body.get("breakpoints") or [])]


def _bound(each: JsonObject) -> Bound:
    return Bound(
        verified=bool(each.get("verified")), id=each.get("id"), line=each.get("line"), message=each.get("message")
    )


def _frame(each: JsonObject) -> Frame:
    source = cast(JsonObject, each.get("source") or {})
    return Frame(
        id=int(each["id"]),
        name=str(each.get("name", "")),
        file=source.get("path") or source.get("name"),
        line=int(each.get("line") or 0),
        column=int(each.get("column") or 0),
        is_library=each.get("presentationHint") == "subtle" or source.get("presentationHint") == "deemphasize",
    )


def _scope(each: JsonObject) -> Scope:
    name = str(each.get("name", ""))
    hint = f"{each.get('presentationHint') or ''} {name}".lower()
    kind = "locals" if "local" in hint or "argument" in hint else "globals" if "global" in hint else "other"
    reference = int(each.get("variablesReference") or 0)
    return Scope(name=name, kind=kind, reference=reference, expensive=bool(each.get("expensive")))


def _variable(each: JsonObject) -> Variable:
    return Variable(
        name=str(each.get("name", "")),
        value=str(each.get("value", "")),
        type=each.get("type"),
        reference=int(each.get("variablesReference") or 0),
        path=each.get("evaluateName"),
        indexed=int(each.get("indexedVariables") or 0),
        named=int(each.get("namedVariables") or 0),
    )


def _stopped(body: JsonObject) -> Stopped:
    return Stopped(
        reason=str(body.get("reason", "")),
        thread=int(body.get("threadId") or 0),
        text=str(body.get("text") or body.get("description") or ""),
        hit=tuple(cast(list[int], body.get("hitBreakpointIds") or [])),
        all_threads=bool(body.get("allThreadsStopped", True)),
    )


def _exited(body: JsonObject) -> Exited:
    code, signal = body.get("exitCode"), body.get("signal")
    if isinstance(signal, int):
        return Exited(signal=signal)
    # pydevd tells a code, which is none, of a process that becomes another program.
    return Exited.with_status(code) if isinstance(code, int) and "pydevdReason" not in body else Exited()

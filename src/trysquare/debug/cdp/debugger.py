"""NodeDebugger: Node's inspector as a `Debugger`."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.debug.cdp.breakpoints import Breakpoints, Scripts
from trysquare.debug.cdp.client import CdpClient, Workers
from trysquare.debug.debugger import (
    DEBUGGER_ERRORS,
    Bound,
    BreakpointSpec,
    Capabilities,
    ChildStarted,
    Debugger,
    Disconnected,
    EvaluateFor,
    ExceptionInfo,
    Exited,
    Frame,
    Listener,
    NotReadable,
    RequestFailed,
    Resumed,
    Scope,
    StepKind,
    Stopped,
    Thread,
    Variable,
)
from trysquare.net.rpc import ConnectionLost


def value_text(remote: JsonObject) -> str:
    """A remote object as a short text, from its preview where it has one."""
    if "unserializableValue" in remote:
        return str(remote["unserializableValue"])
    kind = remote.get("type")
    if kind == "undefined":
        return "undefined"
    if kind == "string":
        return json.dumps(remote.get("value"), ensure_ascii=False)
    if "value" in remote and kind != "object":
        return json.dumps(remote["value"])
    if remote.get("subtype") == "null":
        return "null"
    if kind == "function":
        return str(remote.get("description", "function")).split("{")[0].strip()[:80] or "function"
    if remote.get("subtype") == "error":
        return str(remote.get("description", "Error")).splitlines()[0]
    preview = as_object(remote.get("preview"))
    return _preview_text(preview) if preview else str(remote.get("description", ""))


def _preview_text(preview: JsonObject) -> str:
    entries, properties = as_list(preview.get("entries")), as_list(preview.get("properties"))
    name = str(preview.get("description") or "")
    if preview.get("type") not in ("object", "function"):
        return _part_text({**preview, "value": name})
    more = ", …" if preview.get("overflow") else ""
    if entries:
        shown = ", ".join(_entry_text(entry) for entry in entries)
        return f"{name} {{{shown}{more}}}"
    if preview.get("subtype") == "array":
        return f"[{', '.join(_part_text(each) for each in properties)}{more}]"
    shown = ", ".join(f"{each.get('name')}: {_part_text(each)}" for each in properties)
    return f"{{{shown}{more}}}" if name in ("Object", "") else f"{name} {{{shown}{more}}}"


def _entry_text(entry: JsonObject) -> str:
    value = _preview_text(as_object(entry.get("value")))
    return f"{_preview_text(entry['key'])} => {value}" if "key" in entry else value


def _part_text(part: JsonObject) -> str:
    value: Any = part.get("value")
    return json.dumps(value, ensure_ascii=False) if part.get("type") == "string" else str(value)


MAIN_THREAD = 1
_STEPS: dict[StepKind, str] = {"over": "stepOver", "into": "stepInto", "out": "stepOut"}
_SCOPES: dict[str, Literal["locals", "globals", "other"]] = {
    "local": "locals", "block": "locals", "catch": "locals", "closure": "locals", "with": "locals", "eval": "locals",
    "global": "globals",
}  # fmt: skip
_MODULE_NAMES = frozenset({"exports", "require", "module", "__filename", "__dirname"})
"""Parameters of the function that Node makes of a module: in a closure they are noise."""
# Closing the inspector while a client is connected can crash the program, so it closes a while after the disconnect.
# Two timers: a program that was halted meanwhile finds the first one expired before it sees the disconnect.
_ENDING = 'globalThis[Symbol.for("trysquare.ending")]'
_LATER = "{ending} = setTimeout(() => {{ {act}; }}, 500).unref(); 0"
_END_LATER = _LATER.format(ending=_ENDING, act=_LATER.format(ending=_ENDING, act="process._debugEnd()"))
_STAY_OPEN = f"clearTimeout({_ENDING}); delete {_ENDING}; 0"


class NodeDebugger(Debugger):
    def __init__(self, listener: Listener, *, closes_inspector: bool = False, stops_on_entry: bool = False) -> None:
        self._listener = listener
        self._stops_on_entry = stops_on_entry
        self.shows_secrets = False
        self._closes_inspector = closes_inspector
        self._client = CdpClient(on_event=self._on_event, on_lost=self._on_lost)
        self._workers = Workers(self._client)
        self._main_context: int | None = None
        self._is_worker = False
        self._scripts = Scripts()
        self._frames: list[JsonObject] = []
        self._pause: JsonObject = {}
        self._objects: dict[int, JsonObject] = {}
        self._closures: set[int] = set()
        """References of scopes of enclosing functions."""
        self._numbers = itertools.count(1)
        self._breakpoints = Breakpoints(self._client, self._scripts, listener)
        self._stepping = False
        self._started = False
        self._ended = False
        self._background = BackgroundTasks()
        self.at_entry: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._handlers: dict[str, Callable[[JsonObject], None]] = {
            "Debugger.paused": self._on_paused,
            "Debugger.resumed": self._on_resumed,
            "Debugger.scriptParsed": self._on_script,
            "Runtime.executionContextCreated": self._on_context,
            "Runtime.executionContextDestroyed": self._on_end,
            "NodeWorker.attachedToWorker": lambda params: listener(ChildStarted(arguments=params)),
            "NodeWorker.receivedMessageFromWorker": self._workers.receive,
            "NodeWorker.detachedFromWorker": self._workers.on_end,
        }

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            conditions=True, hit_conditions=True, log_points=True, exception_filters=("uncaught", "all"),
            exception_info=True,
        )  # fmt: skip

    async def connect(self, url: str, *, timeout: float, is_waiting: bool = True) -> None:
        """Connect to a program; one that waits for a debugger runs up to its first line."""
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
        """A debugger of a worker thread that waits to be started."""
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
        if self._stops_on_entry:
            self.stay_at_entry()
            return
        self._started = True
        await self._client.request("Runtime.runIfWaitingForDebugger" if self._is_worker else "Debugger.resume")

    def stay_at_entry(self) -> None:
        """Report a stop before the first line instead of `start`, so that the program can be stepped."""
        self._started = True
        self._listener(Stopped(reason="entry", thread=MAIN_THREAD))

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        return await self._breakpoints.replace(file, specs)

    async def set_exception_breakpoints(self, filters: Sequence[str]) -> None:
        state = "all" if "all" in filters else "uncaught" if "uncaught" in filters else "none"
        await self._client.request("Debugger.setPauseOnExceptions", {"state": state})

    async def resume(self, thread: int) -> None:
        await self._breakpoints.pause_new_scripts()
        await self._client.request("Debugger.resume")

    async def step(self, kind: StepKind, thread: int) -> None:
        if kind not in _STEPS:
            raise RequestFailed("step", "Node's inspector cannot step back.")
        # A paused new script would end the step.
        await self._breakpoints.run_new_scripts()
        self._stepping = True
        await self._client.request(f"Debugger.{_STEPS[kind]}")

    async def pause(self, thread: int) -> None:
        await self._client.request("Debugger.pause")

    async def threads(self) -> list[Thread]:
        return [Thread(id=MAIN_THREAD, name="main")]

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        chosen = self._frames[start : start + count] if count else self._frames[start:]
        return [self._frame(start + index, each) for index, each in enumerate(chosen)], len(self._frames)

    async def scopes(self, frame: int) -> list[Scope]:
        found: list[Scope] = []
        for each in as_list(self._frame_data(frame)["scopeChain"]):
            name, reference = str(each["type"]), self._add_reference(each["object"])
            if name == "closure":
                self._closures.add(reference)
            kind = _SCOPES.get(name, "other")
            found.append(Scope(name=name, kind=kind, reference=reference, expensive=name == "global"))
        return found

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]:
        remote = self._objects.get(reference)
        if remote is None or "objectId" not in remote:
            raise RequestFailed("variables", "The value is from an earlier stop.")
        wanted = {"objectId": remote["objectId"], "ownProperties": True, "generatePreview": True}
        body = await self._client.request("Runtime.getProperties", wanted)
        properties = [each for each in as_list(body.get("result")) if "value" in each]
        if reference in self._closures:
            properties = [each for each in properties if each["name"] not in _MODULE_NAMES]
        found = [self._variable(str(each["name"]), each["value"]) for each in properties]
        return found[start : start + count] if count else found[start:]

    async def readable(self, variable: Variable, frame: int | None = None) -> Variable:
        """The value with the objects inside it, which its preview only names."""
        remote = self._objects.get(variable.reference, {})
        preview = as_object(remote.get("preview"))
        inner = [each for each in as_list(preview.get("properties")) if each.get("type") == "object"]
        if "entries" in preview or not any(each.get("subtype") != "null" for each in inner):
            return variable
        parts = {each.name: each.value for each in await self.variables(variable.reference)}
        named = [{**each, "type": "shown", "value": parts.get(str(each["name"]), each.get("value"))}
                 for each in as_list(preview["properties"])]  # fmt: skip
        return replace(variable, value=_preview_text({**preview, "properties": named}))

    async def read(self, expression: str, frame: int) -> Variable:
        try:
            return await self.evaluate(expression, frame, "hover")
        except RequestFailed as error:
            if "side-effect" in error.message:
                raise NotReadable("Node detected a possible side effect") from None
            raise

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        wanted = {"expression": expression, "generatePreview": True, "throwOnSideEffect": purpose == "hover"}
        if frame is None or not self._frames:
            body = await self._client.request("Runtime.evaluate", wanted)
        else:
            identity = self._frame_data(frame)["callFrameId"]
            body = await self._client.request("Debugger.evaluateOnCallFrame", {**wanted, "callFrameId": identity})
        remote = as_object(body.get("result"))
        if "exceptionDetails" in body:
            raise RequestFailed("evaluate", str(remote.get("description") or "Evaluation failed.").splitlines()[0])
        return self._variable(expression, remote)

    async def assign(self, expression: str, value: str, frame: int) -> Variable:
        return await self.evaluate(f"{expression} = ({value})", frame, "repl")

    async def exception(self, thread: int) -> ExceptionInfo | None:
        data = as_object(self._pause.get("data"))
        if self._pause.get("reason") not in ("exception", "promiseRejection"):
            return None
        first = str(data.get("description") or data.get("value") or "").partition("\n")[0]
        kind, _, message = first.partition(": ")
        return ExceptionInfo(type=kind or "Error", message=message or first)

    async def disconnect(self, *, kill: bool) -> None:
        if self._closes_inspector and not self._ended:
            # It was opened for this session: its port has to be free again. Of a busy program it stays open.
            with suppress(*DEBUGGER_ERRORS):
                await self._client.request("Debugger.disable", timeout=3.0)
                await self._client.request("Runtime.evaluate", {"expression": _END_LATER}, timeout=3.0)
        self._ended = True
        self._client.close()

    def _on_event(self, method: str, params: JsonObject) -> None:
        if (handler := self._handlers.get(method)) is not None:
            handler(params)

    def _on_paused(self, params: JsonObject) -> None:
        is_first = self._is_worker and params.get("reason") == "Break on start"
        if is_first or self._breakpoints.is_new_script(params):
            self._background.start(self._run_script(params))
        else:
            self._stop(params)

    def _stop(self, params: JsonObject) -> None:
        self._pause, self._frames = params, as_list(params.get("callFrames"))
        if not self.at_entry.done():
            self.at_entry.set_result(None)
        if self._started:
            text = str(as_object(params.get("data")).get("description") or "").partition("\n")[0]
            self._listener(Stopped(reason=self._reason(params), thread=MAIN_THREAD, text=text))
        self._stepping = False

    def _reason(self, params: JsonObject) -> str:
        if params.get("reason") in ("exception", "promiseRejection"):
            return "exception"
        if params.get("hitBreakpoints"):
            return "breakpoint"
        return "step" if self._stepping else "pause" if params.get("reason") == "other" else str(params.get("reason"))

    def _on_resumed(self, params: JsonObject) -> None:
        self._frames, self._objects = [], {}
        self._closures.clear()
        if self._started:
            self._listener(Resumed())

    def _on_script(self, params: JsonObject) -> None:
        url, map_url = str(params.get("url") or ""), str(params.get("sourceMapURL") or "")
        self._breakpoints.on_script(self._scripts.add(str(params["scriptId"]), url, map_url))

    async def _run_script(self, params: JsonObject) -> None:
        """Bind the breakpoints of a new script that is paused at its first line, and continue unless one is there."""
        if await self._breakpoints.stops_at(params):
            self._stop({**params, "hitBreakpoints": ["its own"]})
            return
        with suppress(ConnectionLost):  # the program ended meanwhile
            await self._client.request("Debugger.resume")

    def _on_context(self, params: JsonObject) -> None:
        context = as_object(params["context"])
        if self._main_context is None and as_object(context.get("auxData")).get("isDefault"):
            self._main_context = int(context["id"])

    def _on_end(self, params: JsonObject) -> None:
        # The program has ended, but its process waits for the disconnect. Other contexts may end at any time.
        if not self._ended and params.get("executionContextId") == self._main_context:
            self._ended = True
            self._listener(Exited())
            self._client.close()

    def _on_lost(self, reason: str) -> None:
        self._workers.disconnect(reason)
        if not self.at_entry.done():
            self.at_entry.set_exception(RequestFailed("launch", reason))
            self.at_entry.exception()
        if not self._ended:
            self._ended = True
            self._listener(Disconnected(reason=reason))

    def _frame_data(self, frame: int) -> JsonObject:
        if not 0 <= frame < len(self._frames):
            raise RequestFailed("stack", "The frame is from an earlier stop.")
        return self._frames[frame]

    def _frame(self, index: int, each: JsonObject) -> Frame:
        file, line = self._scripts.source_location(each["location"])
        name = str(each.get("functionName") or "(top)")
        return Frame(id=index, name=name, file=file or str(each.get("url") or "") or None, line=line)

    def _add_reference(self, remote: JsonObject) -> int:
        if "objectId" not in remote:
            return 0
        number = next(self._numbers)
        self._objects[number] = remote
        return number

    def _variable(self, name: str, remote: JsonObject) -> Variable:
        return Variable(
            name=name,
            value=value_text(remote),
            type=str(remote.get("className") or remote.get("subtype") or remote.get("type") or ""),
            reference=self._add_reference(remote),
            shows_all=self.shows_secrets,
        )

"""Calls that run as tasks: begun, asked, answered, cancelled, and taken over from processes that have died."""

from __future__ import annotations

import asyncio
import functools
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar, cast

from msgspec import Raw

from trysquare.catalog import ProfileChoice
from trysquare.core.call import guard_crash
from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.context import LogLevel, Principal
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import TaskOptions
from trysquare.core.redaction import redact
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.net.rpc import ConnectionLost
from trysquare.protocol.messages import INTERNAL_ERROR, RpcError, decode_any, encode
from trysquare.protocol.methods import CallToolParams
from trysquare.server.caller import McpCaller, Request
from trysquare.server.convert import protocol_error
from trysquare.store.tasks import NewTask, StoredTasks, TaskRecord

logger = logging.getLogger("trysquare.server")

LOOK_EVERY: Final = 0.25
"""Seconds between two looks at the store, where another process may have cancelled or changed a task."""
_RETRY_SECONDS: Final = 1.0
INTERRUPTED: Final[JsonObject] = {
    "code": INTERNAL_ERROR,
    "message": "The server ended while the tool ran. Whether the tool did its work is unknown; it was not run again.",
    "data": {
        "code": ErrorCode.TASK_INTERRUPTED.value,
        "instruction": "Find out what was done before you call the tool again.",
    },
}
_MOST_UNSTORED: Final = 1_000
MAX_RESULT: Final = 16 * 1024 * 1024
"""Bytes of a result that is kept."""


class TaskCalls(Protocol):
    """The calls behind tasks."""

    def find(self, name: str) -> Tool | None:
        """The tool of a call."""
        ...

    async def run(self, caller: TaskCaller, task_id: str | None) -> JsonObject | bytes:
        """Answer a call with its result, or with questions."""
        ...

    async def end_elsewhere(self, caller: TaskCaller, task_id: str) -> None:
        """End what an earlier run began elsewhere: its task was cancelled while no run of it is under way."""
        ...


_LOST_SECRETS: Final[JsonObject] = {
    "code": INTERNAL_ERROR,
    "message": "The server ended, and the arguments hold secrets, which are not stored. The tool was not run again.",
    "data": {
        "code": ErrorCode.TASK_INTERRUPTED.value,
        "instruction": "Find out what was done before you call the tool again with the same arguments.",
    },
}
Send: TypeAlias = Callable[[JsonObject], None]
T = TypeVar("T")


class KeptTask(NamedTuple):
    """What a running call writes of its task."""

    tell: Callable[[str], None]
    """Reports progress."""
    checkpoint: Callable[[JsonObject], Awaitable[bool]]
    """Stores what the next run goes on from; False where there will be none."""


class TaskCaller(McpCaller):
    """The client of a call that may become a task, or is one: then it reads the task, and not this connection."""

    __slots__ = ("_kept", "_promoted", "checkpoints", "is_ending", "wants_task")

    def __init__(
        self, request: Request, kept: KeptTask | None = None, checkpoints: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(request)
        self._kept = kept
        self.checkpoints: Mapping[str, Any] = checkpoints or {}
        """What the function stored for its next run."""
        self.is_ending = False
        """Whether the server ends, and this run with it."""
        loop = asyncio.get_running_loop()
        self.wants_task: asyncio.Future[None] = loop.create_future()
        """Done once the function wants to go on as a task."""
        self._promoted: asyncio.Future[bool] = loop.create_future()
        if kept is not None:
            self._promoted.set_result(True)

    async def become_task(self) -> bool:
        if not self.wants_task.done():
            self.wants_task.set_result(None)
        return await asyncio.shield(self._promoted)

    def promote(self, kept: KeptTask | None) -> None:
        """Say that the call is a task from now on; with None, that it cannot become one."""
        self._kept = kept
        self._promoted.set_result(kept is not None)

    @property
    def is_task(self) -> bool:
        return self._kept is not None

    async def checkpoint(self, key: str, value: Any) -> bool:
        if self._kept is None:
            return False
        checkpoints = {**self.checkpoints, key: value}
        if not await self._kept.checkpoint(checkpoints):
            return False
        self.checkpoints = checkpoints
        return True

    @property
    def runs_again(self) -> bool:
        return self.is_ending and bool(self.checkpoints)

    @property
    def reads_progress(self) -> bool:
        return self._kept is not None or super().reads_progress

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self._kept is None:
            await super().progress(done, total, message)
            return
        count = f"{done:g}" if total is None else f"{done:g} of {total:g}"
        self._kept.tell(f"{count}: {self.visible(message)}" if message else count)

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        # The protocol has no logs of tasks.
        if self._kept is None:
            await super().relay_log(level, data, logger)


class TaskRunner:
    """Runs the tasks of one process, and tells those who follow tasks of any process."""

    def __init__(self, store: StoredTasks, calls: TaskCalls) -> None:
        self._store = store
        self._calls = calls
        self._running: dict[str, asyncio.Task[None]] = {}
        self._callers: dict[str, TaskCaller] = {}
        self._unstored: dict[str, Request] = {}
        """Requests with secrets, which are not written to the store."""
        self._background = BackgroundTasks()
        self._cancelled: set[str] = set()
        self._reported: dict[str, str] = {}
        """Progress that is not stored yet."""
        self._followers: list[tuple[dict[str, int], Send]] = []
        self._watching: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Go on with what an earlier process left, if there is any."""
        if self._store.is_used:
            self._opening = asyncio.get_running_loop().create_task(self._adopt_first())

    async def find(self, id: str, principal: Principal) -> JsonObject | None:
        """A task of this principal, as the client reads it; None where there is none."""
        record = await run_in_thread(lambda: self._store.find(id, principal.subject))
        if record is not None and record.status == "working" and id not in self._running:
            await self.adopt()
            record = await run_in_thread(lambda: self._store.find(id, principal.subject))
        return None if record is None else detailed(record)

    async def begin(self, options: TaskOptions, repeats: bool, request: Request) -> JsonObject | bytes | None:
        """Answer a call with a task, or directly where it ends before. None where its principal has too many."""
        if options.after == 0:
            record = await self._create(secrets.token_urlsafe(24), options, repeats, request, None)
            if record is not None:
                self._start(record.id)
            return None if record is None else _created(record)
        return await self._begin_directly(options, repeats, request)

    async def answer(self, id: str, principal: Principal, responses: JsonObject) -> bool:
        """Take answers to what a task asks; False for an unknown task."""
        state = await run_in_thread(lambda: self._store.answer(id, principal.subject, responses))
        if state == "ready":
            self._start(id)
        return state != "unknown"

    async def cancel(self, id: str, principal: Principal) -> bool:
        """Cancel a task wherever it runs; False for an unknown one."""
        state, left = await run_in_thread(lambda: self._store.cancel(id, principal.subject))
        if state == "running":
            self._cancel_here(id)
        else:
            self._unstored.pop(id, None)
        self._end_elsewhere(left)
        return state != "unknown"

    @contextmanager
    def followed(self, known: Mapping[str, int], send: Send) -> Generator[Collection[str]]:
        """Send the state of tasks now and at each change, until the block ends."""
        entry = (dict.fromkeys(known, 0), send)
        self._followers.append(entry)
        self._watch()
        try:
            yield known
        finally:
            self._followers.remove(entry)

    async def visible(self, ids: Collection[str], principal: Principal) -> list[str]:
        """Those of the tasks that this principal has."""
        return [id for id in dict.fromkeys(ids) if await self.find(id, principal) is not None]

    async def adopt(self) -> None:
        """Go on with the tasks of processes that have died."""
        found = await run_in_thread(lambda: self._store.adopt(self._has_tool, INTERRUPTED))
        for id in found.taken:
            self._start(id)
        for left in found.cancelled:
            self._end_elsewhere(left)

    async def close(self) -> None:
        """Stop what runs here. Its tasks stay, for the next process to take over."""
        beside = [task for task in (self._opening, self._watching) if task is not None]
        for caller in self._callers.values():
            caller.is_ending = True
        running = [*self._running.values(), *beside]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._background.cancel()
        await self._background.wait()
        self._running.clear()
        self._opening = self._watching = None
        await run_in_thread(self._store.close)

    async def _adopt_first(self) -> None:
        try:
            await self.adopt()
        except ToolError as error:
            logger.warning("the tasks of an earlier server cannot be read: %s", error)

    async def _create(
        self, id: str, options: TaskOptions, repeats: bool, request: Request, running: TaskCaller | None
    ) -> TaskRecord | None:
        stored, is_whole = self._stored(request)
        if not is_whole:
            self._unstored[id] = request
            while len(self._unstored) > _MOST_UNSTORED:
                del self._unstored[next(iter(self._unstored))]
        task = NewTask(
            id=id,
            principal=request.principal.subject,
            tool=request.params.name,
            request=stored,
            ttl=options.ttl,
            poll=options.poll,
            repeats=repeats,
            state=None if running is None else running.answers.state(),
        )
        record = await run_in_thread(lambda: self._store.create(task, started=running is not None))
        if record is None:
            self._unstored.pop(id, None)
        return record

    def _stored(self, request: Request) -> tuple[JsonObject, bool]:
        """A request as it is stored, without its secrets; False where it had any, and cannot run from the store."""
        tool, arguments = self._calls.find(request.params.name), request.params.arguments
        shown: Any = arguments
        if tool is not None and isinstance(arguments, dict):
            shown = redact(cast(JsonObject, arguments), tool.input_schema)
        is_whole = shown == arguments
        return {**_stored_request(request), "arguments": shown, "is_whole": is_whole}, is_whole

    def _has_tool(self, name: str) -> bool:
        return self._calls.find(name) is not None

    def _resumes(self, name: str) -> bool:
        tool = self._calls.find(name)
        return tool is not None and tool.metadata.task is not None and tool.metadata.task.resumes

    def _end_elsewhere(self, left: TaskRecord | None) -> None:
        """End what a cancelled task has left, in the background: the client need not wait for that."""
        if left is not None:
            caller = TaskCaller(_restored_request(left), checkpoints=left.checkpoints)
            self._background.start(self._calls.end_elsewhere(caller, left.id))

    async def _begin_directly(self, options: TaskOptions, repeats: bool, request: Request) -> JsonObject | bytes | None:
        id, caller = secrets.token_urlsafe(24), TaskCaller(request)
        work = asyncio.get_running_loop().create_task(self._calls.run(caller, id))
        try:
            await asyncio.wait({work, caller.wants_task}, timeout=options.after, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                record = await self._create(id, options, repeats, request, caller)
                caller.promote(None if record is None else self._kept_task(id, request.params.name))
                if record is not None:
                    self._callers[id] = caller
                    self._track(id, self._settle(id, work))
                    return _created(record)
            return await work
        except asyncio.CancelledError:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
            raise

    def _start(self, id: str) -> None:
        self._track(id, self._work(id))

    def _track(self, id: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._running[id] = asyncio.get_running_loop().create_task(work)

        def on_done(_: asyncio.Task[None]) -> None:
            if self._running.get(id) is task:
                del self._running[id]
            self._cancelled.discard(id)
            self._reported.pop(id, None)
            self._callers.pop(id, None)
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("a task could not be kept", exc_info=error)

        task.add_done_callback(on_done)
        self._watch()

    async def _work(self, id: str) -> None:
        record = await self._written(lambda: self._store.claim(id))
        if record is None:
            return
        if not record.request["is_whole"] and id not in self._unstored:
            await self._written(lambda: self._store.finish(id, "failed", _LOST_SECRETS, _LOST_SECRETS["message"]))
            return
        request = _restored_request(record, self._unstored.get(id))
        caller = TaskCaller(request, self._kept_task(id, record.tool), record.checkpoints)
        self._callers[id] = caller
        await self._settle(id, asyncio.get_running_loop().create_task(self._calls.run(caller, id)))

    async def _settle(self, id: str, work: asyncio.Task[JsonObject | bytes]) -> None:
        """Wait for the end of a call, and store it."""
        try:
            result = await guard_crash("tools/call", work)
        except ToolError as failure:
            await self._fail(id, protocol_error(failure, stateless=True))
        except RpcError as error:
            await self._fail(id, error)
        except asyncio.CancelledError:
            if id not in self._cancelled:
                # The server ends: the task is that of a dead process from now on.
                raise
            await self._written(lambda: self._store.finish(id, "cancelled", None))
        else:
            body: JsonObject = decode_any(result) if isinstance(result, bytes) else result
            if body.get("resultType") == "input_required":
                ask = functools.partial(self._store.ask, id, body["requestState"], body["inputRequests"])
                self._end_elsewhere(await self._written(ask))
                return
            size = len(result) if isinstance(result, bytes) else len(encode(result))
            if size > MAX_RESULT:
                await self._fail(id, _too_large(size))
            else:
                await self._written(lambda: self._store.finish(id, "completed", body))
        self._unstored.pop(id, None)

    async def _fail(self, id: str, error: RpcError) -> None:
        wire: JsonObject = {"code": error.code, "message": error.message}
        if error.data is not None:
            wire["data"] = error.data
        await self._written(lambda: self._store.finish(id, "failed", wire, error.message))

    async def _written(self, write: Callable[[], T]) -> T:
        """Write to the store, again and again while it cannot be written: the end of a task must not be lost."""
        while True:
            try:
                return await run_in_thread(write)
            except ToolError as error:
                logger.warning("a task cannot be stored, trying again: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    def _kept_task(self, id: str, tool: str) -> KeptTask:
        def tell(message: str) -> None:
            self._reported[id] = message

        async def checkpoint(checkpoints: JsonObject) -> bool:
            return self._resumes(tool) and await self._written(lambda: self._store.checkpoint(id, checkpoints))

        return KeptTask(tell, checkpoint)

    def _cancel_here(self, id: str) -> None:
        task = self._running.get(id)
        if task is not None and id not in self._cancelled:
            self._cancelled.add(id)
            task.cancel()

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        """While tasks run here or are followed: store progress, cancel, and tell the followers."""
        while self._running or self._followers:
            try:
                await self._look_once()
            except ToolError as error:
                logger.warning("tasks cannot be read, trying again: %s", error)
            await asyncio.sleep(LOOK_EVERY)

    async def _look_once(self) -> None:
        reported, self._reported = self._reported, {}
        for id, message in reported.items():
            await run_in_thread(lambda id=id, message=message: self._store.tell(id, message))
        for id in await run_in_thread(self._store.cancelling) if self._running else ():
            self._cancel_here(id)
        for known, send in list(self._followers):
            for record in await run_in_thread(lambda known=known: self._store.changed(known)):
                known[record.id] = record.version
                send(detailed(record))


def _created(record: TaskRecord) -> JsonObject:
    return {"resultType": "task", **_plain(record)}


def detailed(record: TaskRecord) -> JsonObject:
    """A task as `tasks/get` and notifications have it."""
    wire = _plain(record)
    match record.status:
        case "input_required":
            wire["inputRequests"] = {
                key: question for key, question in record.questions.items() if key not in record.responses
            }
        case "completed":
            wire["result"] = record.outcome
        case "failed":
            wire["error"] = record.outcome
        case _:
            pass
    return wire


def _plain(record: TaskRecord) -> JsonObject:
    wire: JsonObject = {"taskId": record.id, "status": record.status}
    if record.message is not None:
        wire["statusMessage"] = record.message
    return {
        **wire,
        "createdAt": _moment(record.created),
        "lastUpdatedAt": _moment(record.updated),
        # Counted from the start, and renewed by each change.
        "ttlMs": max(1, round((record.updated - record.created + record.ttl) * 1000)),
        "pollIntervalMs": max(1, round(record.poll * 1000)),
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _stored_request(request: Request) -> JsonObject:
    """What a request needs to run again: never a token, and no header."""
    principal = request.principal
    return {
        "meta": {key: part for key, part in request.meta.items() if key != "progressToken"},
        "subject": principal.subject,
        "scopes": None if principal.scopes is None else sorted(principal.scopes),
        "rights": None if principal.rights is None else sorted(principal.rights),
        "is_remote": request.is_remote,
    }


def _restored_request(record: TaskRecord, whole: Request | None = None) -> Request:
    stored = record.request
    params = CallToolParams(
        name=record.tool,
        arguments=stored["arguments"] if whole is None else whole.params.arguments,
        meta=stored["meta"],
        input_responses=record.responses,
        request_state=record.state,
    )
    scopes, rights = stored["scopes"], stored["rights"]
    principal = Principal(
        subject=stored["subject"],
        scopes=None if scopes is None else frozenset(scopes),
        rights=None if rights is None else frozenset(rights),
    )
    return Request(
        record.id,
        "tools/call",
        params,
        session=None,
        channel=_NO_CHANNEL,
        principal=principal,
        profiles=ProfileChoice(),
        is_remote=stored["is_remote"],
    )


def _too_large(size: int) -> RpcError:
    return RpcError(
        INTERNAL_ERROR,
        f"The tool ran, and its result of {size:,} bytes is too large to keep ({MAX_RESULT:,}).",
        {
            "code": ErrorCode.BUDGET_EXHAUSTED.value,
            "instruction": "Do not call it again for its effect. Ask for less, or for a part.",
        },
    )


class _NoChannel:
    """The way back of a task: there is none, its client looks."""

    async def notify(self, message: bytes, *, is_progress: bool = False) -> None:
        await asyncio.sleep(0)

    async def ask(self, method: str, params: JsonObject) -> Raw:
        return _refuse()


def _refuse() -> NoReturn:
    raise ConnectionLost("the call runs as a task")


_NO_CHANNEL: Final = _NoChannel()

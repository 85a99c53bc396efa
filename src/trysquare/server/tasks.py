"""Calls that run as tasks: begun, asked, answered, cancelled, and taken over from processes that have died."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from msgspec import Raw

from trysquare.catalog import ProfileChoice
from trysquare.core.call import guard_crash
from trysquare.core.context import LogLevel, Principal
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import TaskOptions
from trysquare.core.threads import run_in_thread
from trysquare.net.rpc import ConnectionLost
from trysquare.protocol.messages import INTERNAL_ERROR, RpcError, decode_any
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
RunCall: TypeAlias = Callable[["TaskCaller", str], Coroutine[Any, Any, JsonObject | bytes]]
"""Answers the call of a request, with its result or with questions."""
Send: TypeAlias = Callable[[JsonObject], None]
T = TypeVar("T")


class TaskCaller(McpCaller):
    """The client of a call that may become a task, or is one: then it reads the task, and not this connection."""

    __slots__ = ("_promoted", "_tell", "wants_task")

    def __init__(self, request: Request, tell: Callable[[str], None] | None = None) -> None:
        super().__init__(request)
        self._tell = tell
        loop = asyncio.get_running_loop()
        self.wants_task: asyncio.Future[None] = loop.create_future()
        """Done once the function wants to go on as a task."""
        self._promoted: asyncio.Future[bool] = loop.create_future()
        if tell is not None:
            self._promoted.set_result(True)

    async def become_task(self) -> bool:
        if not self.wants_task.done():
            self.wants_task.set_result(None)
        return await asyncio.shield(self._promoted)

    def promote(self, tell: Callable[[str], None] | None) -> None:
        """Say that the call is a task from now on; without `tell`, that it cannot become one."""
        self._tell = tell
        self._promoted.set_result(tell is not None)

    @property
    def reads_progress(self) -> bool:
        return self._tell is not None or super().reads_progress

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self._tell is None:
            await super().progress(done, total, message)
            return
        count = f"{done:g}" if total is None else f"{done:g} of {total:g}"
        self._tell(f"{count}: {message}" if message else count)

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        # The protocol has no logs of tasks.
        if self._tell is None:
            await super().relay_log(level, data, logger)


class TaskRunner:
    """Runs the tasks of one process, and tells those who follow tasks of any process."""

    def __init__(self, store: StoredTasks, run: RunCall, has_tool: Callable[[str], bool]) -> None:
        self._store = store
        self._run = run
        self._has_tool = has_tool
        self._running: dict[str, asyncio.Task[None]] = {}
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
        state = await run_in_thread(lambda: self._store.cancel(id, principal.subject))
        if state == "running":
            self._cancel_here(id)
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
        for id in await run_in_thread(lambda: self._store.adopt(self._has_tool, INTERRUPTED)):
            self._start(id)

    async def close(self) -> None:
        """Stop what runs here. Its tasks stay, for the next process to take over."""
        beside = [task for task in (self._opening, self._watching) if task is not None]
        running = [*self._running.values(), *beside]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
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
        task = NewTask(
            id=id,
            principal=request.principal.subject,
            tool=request.params.name,
            request=_stored_request(request),
            ttl=options.ttl,
            poll=options.poll,
            repeats=repeats,
            state=None if running is None else running.answers.state(),
        )
        return await run_in_thread(lambda: self._store.create(task, started=running is not None))

    async def _begin_directly(self, options: TaskOptions, repeats: bool, request: Request) -> JsonObject | bytes | None:
        id, caller = secrets.token_urlsafe(24), TaskCaller(request)
        work = asyncio.get_running_loop().create_task(self._run(caller, id))
        try:
            await asyncio.wait({work, caller.wants_task}, timeout=options.after, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                record = await self._create(id, options, repeats, request, caller)
                caller.promote(None if record is None else self._teller(id))
                if record is not None:
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
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("a task could not be kept", exc_info=error)

        task.add_done_callback(on_done)
        self._watch()

    async def _work(self, id: str) -> None:
        record = await self._kept(lambda: self._store.claim(id))
        if record is not None:
            caller = TaskCaller(_restored_request(record), self._teller(id))
            await self._settle(id, asyncio.get_running_loop().create_task(self._run(caller, id)))

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
            await self._kept(lambda: self._store.finish(id, "cancelled", None))
        else:
            body: JsonObject = decode_any(result) if isinstance(result, bytes) else result
            if body.get("resultType") == "input_required":
                await self._kept(lambda: self._store.ask(id, body["requestState"], body["inputRequests"]))
            else:
                await self._kept(lambda: self._store.finish(id, "completed", body))

    async def _fail(self, id: str, error: RpcError) -> None:
        wire: JsonObject = {"code": error.code, "message": error.message}
        if error.data is not None:
            wire["data"] = error.data
        await self._kept(lambda: self._store.finish(id, "failed", wire, error.message))

    async def _kept(self, write: Callable[[], T]) -> T:
        """Write to the store, again and again while it cannot be written: the end of a task must not be lost."""
        while True:
            try:
                return await run_in_thread(write)
            except ToolError as error:
                logger.warning("a task cannot be stored, trying again: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    def _teller(self, id: str) -> Callable[[str], None]:
        def tell(message: str) -> None:
            self._reported[id] = message

        return tell

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
        "arguments": request.params.arguments,
        "meta": {key: part for key, part in request.meta.items() if key != "progressToken"},
        "subject": principal.subject,
        "scopes": None if principal.scopes is None else sorted(principal.scopes),
        "rights": None if principal.rights is None else sorted(principal.rights),
    }


def _restored_request(record: TaskRecord) -> Request:
    stored = record.request
    params = CallToolParams(
        name=record.tool,
        arguments=stored["arguments"],
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

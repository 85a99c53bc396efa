"""Early calls: a client's first calls of servers behind the gateway, begun and if possible answered before the SDK is
loaded, which takes as long as such a server takes to start.

What comes of a call is the same either way. One that has something to say to its client, or that is not over when the
SDK is there, is taken up by the request as the SDK hands it on: from then on questions, progress and cancellation go
their usual ways.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from pydantic_core import to_json

from trysquare.core.call import call_found
from trysquare.core.client_requests import Answer, Capability, ClientRequest, Question, RequestingCaller
from trysquare.core.context import CallContext, Caller, LogLevel
from trysquare.core.errors import ToolError
from trysquare.core.result import Result
from trysquare.core.toolset import Change, Toolset
from trysquare.serve.early import EarlyFront
from trysquare.serve.first_calls import FirstCall, Id
from trysquare.serve.options import ServeOptions
from trysquare.wire.relayed import relayed_to_wire
from trysquare.wire.results import result_to_wire

ROOM = "gateway"
"""The room whose tools know their caller only by what every caller can do."""
_LONGEST_WAIT = 1.0
"""Seconds that loading the SDK waits for the calls, so that it does not take from them what they need to end."""
_PROGRESS = "progressToken"
_LOOK = 0.05
"""Seconds between two looks whether the client has asked for something else, which needs the SDK."""
_LARGE = 64 * 1024
"""Bytes of an answer that is left to the SDK's streams, since a client may be slow to read it."""


class Client(Caller, RequestingCaller, Protocol):
    """A caller that can be told and asked everything."""


class BegunCalls(Protocol):
    """Calls that are under way, for whoever answers their requests."""

    @property
    def changes(self) -> set[Change]:
        """What has changed since the client was greeted, and was not told yet."""
        ...

    def take_up(self, request_id: Id | None, caller: Client) -> Awaitable[Result[Any]] | None:
        """The call of a request, if it was begun; from now on it has this caller."""
        ...

    def give_up(self, request_id: Id) -> None:
        """Stop the call of a request, which its client has taken back."""
        ...


class EarlyCaller:
    """The client of an early call: known by what it said of itself, and reached once the request is taken up."""

    def __init__(self, offered: Mapping[str, Any], is_needed: asyncio.Event, *, hears_progress: bool) -> None:
        """`is_needed` is set when there is something to say to the client."""
        self._offered = offered
        self._hears_progress = hears_progress
        self._is_needed = is_needed
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()

    def become(self, caller: Client) -> None:
        """Reach the client through this one from now on."""
        self._client.set_result(caller)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self._hears_progress:
            await (await self._reached()).progress(done, total, message)

    async def log(self, level: LogLevel, message: str) -> None:
        await (await self._reached()).log(level, message)

    def can_ask(self) -> bool:
        return self.offers("elicitation")

    def offers(self, capability: Capability) -> bool:
        given: Mapping[str, Any] | None = self._offered.get(capability.partition(".")[0])
        if capability == "elicitation.url":
            return given is not None and "url" in given
        if capability == "elicitation" and given is not None:
            return "form" in given or "url" not in given
        return given is not None

    async def ask(self, question: Question) -> Answer:
        return await (await self._reached()).ask(question)

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        return await (await self._reached()).request(requests)

    async def _reached(self) -> Client:
        self._is_needed.set()
        return await asyncio.shield(self._client)


class _Begun:
    """One call under way."""

    def __init__(self, call: FirstCall, caller: EarlyCaller, task: asyncio.Task[Result[Any]]) -> None:
        self.call = call
        self.caller = caller
        self.task = task


class EarlyCalls:
    """The calls that were begun early, by the ids of their requests."""

    def __init__(self, front: EarlyFront) -> None:
        self._front = front
        self._begun: dict[Id, _Begun] = {}
        self._is_needed = asyncio.Event()
        self.changes: set[Change] = set()
        """What has changed since the client was greeted, and was not told yet."""
        self.done: list[Id] = []
        """The requests that are answered already."""

    def begin(self, toolset: Toolset, options: ServeOptions) -> None:
        """Begin the calls of the gateway's tools that have come so far."""
        for call in self._front.calls:
            tool = toolset.find(call.name)
            if tool is None or tool.metadata.room != ROOM or not options.principal.may_use(ROOM):
                continue
            offered, hears = self._front.client["capabilities"], _PROGRESS in call.meta
            caller = EarlyCaller(offered, self._is_needed, hears_progress=hears)
            context = _context(call, caller, options, client=self._front.client["clientInfo"]["name"])
            task = asyncio.ensure_future(call_found(tool, call.name, dict(call.arguments), context))
            self._begun[call.id] = _Begun(call, caller, task)

    async def answer(self) -> None:
        """Answer what is over before the SDK is needed, and wait no longer than that would take to be loaded."""
        needed = asyncio.ensure_future(self._is_needed.wait())
        waiting = list(self._begun.values())
        try:
            async with asyncio.timeout(_LONGEST_WAIT):
                while waiting and not needed.done() and not self._front.is_waited_for:
                    await asyncio.wait(
                        {needed, *(each.task for each in waiting)}, return_when=asyncio.FIRST_COMPLETED, timeout=_LOOK
                    )
                    for each in [each for each in waiting if each.task.done()]:
                        waiting.remove(each)
                        self._send(each)
        except TimeoutError:
            return
        finally:
            needed.cancel()

    def take_up(self, request_id: Id | None, caller: Client) -> Awaitable[Result[Any]] | None:
        """The call of a request, if it was begun; from now on it has this caller."""
        begun = None if request_id is None else self._begun.pop(request_id, None)
        if begun is None:
            return None
        begun.caller.become(caller)
        return _ended(begun.task)

    def give_up(self, request_id: Id) -> None:
        """Stop the call of a request, which its client has taken back."""
        # It stays here: its request is still on its way to the server, and must not begin it anew.
        if (begun := self._begun.get(request_id)) is not None:
            begun.task.cancel()

    async def close(self) -> None:
        """Stop the calls that nobody took up."""
        for begun in self._begun.values():
            begun.task.cancel()
        await asyncio.gather(*(begun.task for begun in self._begun.values()), return_exceptions=True)

    def _send(self, begun: _Begun) -> None:
        if begun.task.cancelled() or begun.task.exception() is not None:
            return
        answer = _encoded(begun.task.result())
        if len(answer) <= _LARGE and self._front.answer(begun.call.id, answer):
            del self._begun[begun.call.id]
            self.done.append(begun.call.id)


@asynccontextmanager
async def early_calls(front: EarlyFront, toolset: Toolset, options: ServeOptions) -> AsyncGenerator[EarlyCalls]:
    """Begin a client's first calls, and answer those that can be answered at once."""
    calls = EarlyCalls(front)
    unsubscribe = toolset.subscribe(calls.changes.add)
    calls.begin(toolset, options)
    try:
        await calls.answer()
        yield calls
    finally:
        unsubscribe()
        await calls.close()


async def _ended(task: asyncio.Task[Result[Any]]) -> Result[Any]:
    """What comes of a call. Whoever no longer waits for it stops it."""
    try:
        return await task
    except asyncio.CancelledError:
        own = asyncio.current_task()
        if own is None or own.cancelling():
            raise
    # It was stopped before its request came, which is stopped next, and must not be answered.
    return await asyncio.get_running_loop().create_future()


def _context(call: FirstCall, caller: EarlyCaller, options: ServeOptions, *, client: str) -> CallContext:
    timeout = options.call_timeout
    return CallContext(
        principal=options.principal,
        caller=caller,
        handles=options.handles,
        deadline=None if timeout is None else time.monotonic() + timeout,
        request_id=str(call.id),
        client=client,
        # As the SDK names it.
        meta={"progress_token" if name == _PROGRESS else name: value for name, value in call.meta.items()},
        direct=options.direct,
        approvals=options.approvals,
    )


def _encoded(result: Result[Any]) -> bytes:
    """The result of a call in JSON, as the era of handshakes has it."""
    if result.relayed is not None:
        try:
            return relayed_to_wire(result.relayed.body, result.meta, modern=False)
        except ToolError as error:
            result = Result.from_error(error)
    wire = result_to_wire(result)
    del wire["resultType"]
    return to_json(wire, inf_nan_mode="null", fallback=str)

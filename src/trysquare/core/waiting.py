"""Calls that wait while a human may decide on a page of their own, beside the client or instead of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar, cast

from trysquare.core.approvals import Approvals, ConsentDecision, ConsentGrant, ConsentRequest, WatchedApprovals
from trysquare.core.context import CallContext
from trysquare.core.errors import InputRequired
from trysquare.core.threads import run_in_thread

LOOK_EVERY = 0.15
"""Seconds between two looks at the store: another process may have decided."""
REPORT_EVERY = 10.0
"""Seconds between reports of progress, so that a client that counts them does not give up."""
S = TypeVar("S", bound=Approvals)


class PagedQuestion(Generic[S]):
    """A question for consent that an open page shows as well, until its time ends: then the call does not run.

    `decision` is that of the store, asked for at `began`, with the code of the pending call where it has one.
    """

    def __init__(self, request: ConsentRequest, store: S, decision: ConsentDecision, began: float) -> None:
        self._request = request
        self._store = store
        self._watched = cast(WatchedApprovals, store)
        self._code: str | None = None
        self._ends = float("inf")
        self.settled: ConsentDecision | None = None
        """The decision, where it was used up while the call was made pending, or where its time has ended."""
        self._note(decision, began)

    async def first_answer(self, asking: Coroutine[Any, Any, ConsentGrant]) -> ConsentGrant | None:
        """What the client answers, or None once the page has decided before."""
        # Before the client is asked: in 2026-07-28 that ends this call at once, and the page shows the question.
        await self._open()
        client, page = asyncio.ensure_future(asking), asyncio.ensure_future(self._decided())
        try:
            await asyncio.wait((client, page), return_when=asyncio.FIRST_COMPLETED)
            # A decision of the page is used up by the store, with everything that it checks.
            return client.result() if client.done() else None
        finally:
            await self._end(client, page)

    async def _end(self, client: asyncio.Future[ConsentGrant], page: asyncio.Future[None]) -> None:
        answered = client.done()
        decided = page.done() and not answered
        for task in (client, page):
            task.cancel()
        await asyncio.gather(client, page, return_exceptions=True)
        comes_again = answered and not client.cancelled() and isinstance(client.exception(), InputRequired)
        if self._code is not None and not decided and not comes_again:
            code = self._code
            await run_in_thread(lambda: self._watched.withdraw(code))

    async def wait(self, context: CallContext) -> None:
        """Return when the pending call was decided, when nobody looks, or when it has waited long enough.

        The task of a gate waits until its code expires: the page may open again, and a terminal may decide.
        """
        is_gate = self._request.gate
        # Where it is a task already, an earlier server made it one, and its page need not be open yet.
        if not (is_gate and context.is_task) and not await run_in_thread(self._watched.is_watched):
            return
        # A client with tasks need not wait with it.
        is_task = await context.become_task()
        stays = is_task and is_gate
        left, reported = context.remaining(), 0.0
        patience = float("inf") if is_task else self._watched.patience
        until = time.monotonic() + min(patience, float("inf") if left is None else left / 2)
        while time.monotonic() < until and (stays or await run_in_thread(self._watched.is_watched)):
            if await self._state() != "pending" or self.settled is not None:
                return
            if time.monotonic() - reported > REPORT_EVERY:
                reported = time.monotonic()
                await context.caller.progress(0, None, "Waits for a decision in the console.")
            await asyncio.sleep(LOOK_EVERY)

    async def _decided(self) -> None:
        while (state := await self._state()) != "decided" and self.settled is None:
            if state is None:
                await self._open()
            await asyncio.sleep(LOOK_EVERY)

    async def _open(self) -> None:
        """Make the call pending, so that the page shows it, as soon as there is a page."""
        self._code = None
        if await run_in_thread(self._watched.is_watched):
            began = time.monotonic()
            decision = await run_in_thread(lambda: self._store.decide(self._request, open_code=True))
            self._note(decision, began)
            self.settled = None if decision.state == "waiting" else decision

    def _note(self, decision: ConsentDecision, began: float) -> None:
        self._code = decision.code
        if decision.expires_in is not None:
            # Counted from before the store looked at its clock, so that a call is not made pending a second time.
            self._ends = began + decision.expires_in

    async def _state(self) -> str | None:
        code = self._code
        state = None if code is None else await run_in_thread(lambda: self._watched.state_of(code))
        # A decision that came in time counts, whenever it is read.
        if code is not None and state != "decided" and time.monotonic() >= self._ends:
            await run_in_thread(lambda: self._watched.withdraw(code))
            self.settled = ConsentDecision(state="expired")
        return state

"""MemoryApprovals: consent where no approvals are stored. Only a client that can ask gets a call to run."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable

from trysquare.core.consent import (
    ANSWER_LIFETIME,
    ConsentDecision,
    ConsentRequest,
    is_continued,
    new_ticket,
    ticket_age,
    ticket_issuer,
)
from trysquare.core.errors import ErrorCode, ToolError

logger = logging.getLogger("trysquare.consent")


class MemoryApprovals:
    """Which answers were used, in this process. There are no codes: no terminal could reach them.

    A ticket of another process is refused, so that an answer is not used once in each of several workers.
    """

    def __init__(self, *, capacity: int = 10_000, clock: Callable[[], float] = time.time) -> None:
        self._issuer = secrets.token_hex(8)
        self._capacity = capacity
        self._clock = clock
        self._used: dict[str, float] = {}
        self._remembered: dict[tuple[str, str, str, str], float] = {}
        self._lock = threading.Lock()

    def decide(self, request: ConsentRequest, *, open_code: bool) -> ConsentDecision:
        """Whether the same call was agreed to before and may be remembered; else it waits."""
        with self._lock:
            until = self._remembered.get(_call(request), 0.0)
            known = request.remember_for is not None and until > self._clock()
        return ConsentDecision(state="approved" if known else "waiting")

    def ticket(self, *, continued: bool = False) -> str:
        """A ticket that only this object takes back."""
        return new_ticket(self._clock(), issuer=self._issuer, continued=continued)

    def answer(self, request: ConsentRequest, *, ticket: str, approved: bool, by: str, how: str) -> bool:
        """Take an answer once. The log has what a stored receipt would say."""
        now = self._clock()
        if ticket_issuer(ticket) != self._issuer or ticket_age(ticket, now) > ANSWER_LIFETIME:
            return False
        with self._lock:
            self._forget_expired(now)
            if ticket in self._used:
                return False
            self._used[ticket] = now + 2 * ANSWER_LIFETIME
            if approved and request.remember_for is not None:
                self._remembered[_call(request)] = now + request.remember_for
        if not is_continued(ticket):
            logger.info(
                "consent %s tool=%s by=%s how=%s digest=%s",
                "approved" if approved else "refused", request.tool, by, how, request.digest,
            )  # fmt: skip
        return True

    def _forget_expired(self, now: float) -> None:
        if len(self._used) + len(self._remembered) < self._capacity:
            return
        self._used = {ticket: until for ticket, until in self._used.items() if until > now}
        self._remembered = {call: until for call, until in self._remembered.items() if until > now}
        if len(self._used) + len(self._remembered) >= self._capacity:
            raise ToolError(
                "Too many calls were approved in a short time, and no more can be remembered as used.",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="Wait some minutes, then send the same call again.",
            )


def _call(request: ConsentRequest) -> tuple[str, str, str, str]:
    return request.principal, request.tool, request.digest, request.question

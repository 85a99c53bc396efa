"""Approvals of calls: requests, decisions, tickets, and the store in memory."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.result import jsonable

ANSWER_LIFETIME = 600.0
"""Seconds for which an answer to a question for consent can be used."""
_CONTINUED = "+"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsentRequest:
    """One call that waits for a human: principal, tool, arguments, and question."""

    tool: str
    principal: str
    digest: str
    """Digest of the exact arguments: consent covers one call only."""
    question: str
    arguments: JsonObject
    """The whole arguments as a human may see them, without secret values."""
    remember_for: float | None = None
    """Seconds for which the same call needs no new consent; None asks every time."""
    client: str | None = None
    """The client program, as it calls itself."""
    job: str | None = None
    """The job of the agent that makes it."""
    gate: bool = False
    """Whether it closes a gate of a workflow, so that its arguments name the action, the run and the files."""
    strict: bool = False
    """Whether only an approver's signature counts, where the project has approvers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedStatement:
    """What an approver signed, and the signature."""

    text: str
    signature: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsentDecision:
    """The state of a request, with a code where a terminal can approve it."""

    state: Literal["approved", "refused", "waiting", "expired"]
    code: str | None = None
    expires_in: float | None = None
    command: str | None = None
    """The command that decides, where it needs more than the code."""
    by: str | None = None
    """Who agreed."""
    how: str | None = None
    at: str | None = None
    reason: str = ""
    """What the human wrote with a refusal; of a signature that does not hold, why."""
    signed: SignedStatement | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsentGrant:
    """The agreement of a human: who, how they were asked, and when (UTC), where known."""

    by: str | None = None
    how: str | None = None
    at: str | None = None
    ticket: str | None = None
    """The ticket of an answer through the client."""
    digest: str | None = None
    """The digest of the call that was agreed to, as in the audit log."""
    signed: SignedStatement | None = None
    """What the human signed, where they did."""


class Approvals(Protocol):
    """The store of decisions. The methods may wait for a disk; they are called in threads."""

    def decide(self, request: ConsentRequest, *, open_code: bool) -> ConsentDecision:
        """Use up an approval of this very call, or report its refusal; else it waits.

        `open_code` opens it for a decision in a terminal. A call whose client can ask does not need that.
        """
        ...

    def ticket(self, *, continued: bool = False) -> str:
        """A ticket for one question to the client; a continued one goes on with a call that was agreed to before."""
        ...

    def answer(self, request: ConsentRequest, *, ticket: str, approved: bool, by: str, how: str) -> bool:
        """Record an answer through the client, once: False for a ticket that was used or has expired."""
        ...


@runtime_checkable
class WatchedApprovals(Protocol):
    """A store whose pending calls a human may be looking at now, so that a call can wait for the decision.

    Its methods are as quick as a look at a file. They are called again and again while a call waits.
    """

    patience: float
    """Seconds for which a call whose client cannot ask waits, before it is answered with its code."""

    def is_watched(self) -> bool:
        """Whether a page that shows the pending calls is open."""
        ...

    def state_of(self, code: str) -> Literal["pending", "decided"] | None:
        """Where a call with a code stands; None once it was used, withdrawn or has expired."""
        ...

    def withdraw(self, code: str) -> None:
        """Forget a pending call and its decision: its question was answered in another way."""
        ...


@runtime_checkable
class SignedApprovals(Protocol):
    """A store that may demand an approver's signature. A client's answer is none, so the client is not asked."""

    def needs_signature(self, request: ConsentRequest) -> bool:
        """Whether nothing but a signature lets this call run."""
        ...


@dataclass(kw_only=True, slots=True)
class ConsentProof:
    """Proof that a call around this one has just asked, for the same tool and arguments; valid once."""

    origin: object
    digest: str
    is_used: bool = field(default=False)

    def use(self, origin: object, digest: str) -> bool:
        """Whether it proves this very call; it does so once."""
        fits = not self.is_used and self.origin is origin and self.digest == digest
        self.is_used = self.is_used or fits
        return fits


def arguments_digest(arguments: JsonObject) -> str:
    """SHA-256 of the arguments in one canonical form, whatever order their names came in."""
    text = json.dumps(arguments, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=jsonable)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def new_ticket(now: float, *, issuer: str = "", continued: bool = False) -> str:
    """A ticket with its time, and its issuer if only they can accept it."""
    return f"{int(now):x}.{secrets.token_hex(12)}.{issuer}{_CONTINUED if continued else ''}"


def is_continued(ticket: str) -> bool:
    """Whether the ticket continues a call that was agreed to, and has its receipt."""
    return ticket.endswith(_CONTINUED)


def ticket_age(ticket: str, now: float) -> float:
    """Seconds since the ticket was made."""
    return now - int(ticket.partition(".")[0], 16)


def ticket_issuer(ticket: str) -> str:
    """The issuer of the ticket, where only they can accept it."""
    return ticket.rpartition(".")[2].removesuffix(_CONTINUED)


logger = logging.getLogger("trysquare.consent")


class MemoryApprovals:
    """Used answers of this process. There are no codes: no terminal could reach them.

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
        """A ticket that only this object accepts."""
        return new_ticket(self._clock(), issuer=self._issuer, continued=continued)

    def answer(self, request: ConsentRequest, *, ticket: str, approved: bool, by: str, how: str) -> bool:
        """Accept an answer once. The log replaces a stored receipt."""
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
                "Too many approved calls in a short time: no more can be recorded as used.",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="Wait some minutes, then send the same call again.",
            )


def _call(request: ConsentRequest) -> tuple[str, str, str, str]:
    return request.principal, request.tool, request.digest, request.question

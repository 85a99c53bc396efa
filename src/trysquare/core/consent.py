"""Consent as values: what a human is asked, what became of it, the digest that binds it to one call, and its proof."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Literal, Protocol

from trysquare.core.result import jsonable
from trysquare.core.types import JsonObject

ANSWER_LIFETIME = 600.0
"""Seconds for which an answer to a question for consent can be used."""
_CONTINUED = "+"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsentRequest:
    """One call that waits for a human: who wants what, and the words they are asked with."""

    tool: str
    principal: str
    digest: str
    """Digest of the exact arguments: consent to one call is no consent to another."""
    question: str
    arguments: JsonObject
    """The whole arguments as a human may see them, without secret values."""
    remember_for: float | None = None
    """Seconds for which the same call needs no new consent; None asks every time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsentDecision:
    """What is known about a request: agreed, refused, or waiting, with a code where a terminal can approve it."""

    state: Literal["approved", "refused", "waiting"]
    code: str | None = None
    expires_in: float | None = None
    command: str | None = None
    """What to type to decide, where it takes more than the code."""
    by: str | None = None
    """Who agreed, where somebody did."""
    how: str | None = None
    at: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """That a human agreed: who, how they were asked, and when (UTC), as far as it is known."""

    by: str | None = None
    how: str | None = None
    at: str | None = None
    ticket: str | None = None
    """What let the call run, where it was an answer that came through the client."""


class Approvals(Protocol):
    """Where decisions are kept. The methods may wait for a disk; they are called in threads."""

    def decide(self, request: ConsentRequest, *, open_code: bool) -> ConsentDecision:
        """Use up an approval of this very call, or report its refusal; else it waits.

        `open_code` opens it for a decision in a terminal. A call whose client can ask does not need that.
        """
        ...

    def ticket(self, *, continued: bool = False) -> str:
        """A ticket for one question to the client; a continued one goes on with a call that was agreed to before."""
        ...

    def answer(self, request: ConsentRequest, *, ticket: str, approved: bool, by: str, how: str) -> bool:
        """Take an answer that came through the client, once: False for a ticket that was used or is too old."""
        ...


@dataclass(kw_only=True, slots=True)
class ConsentProof:
    """That a call around this one has just asked: for the same tool and the same arguments, and once."""

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
    """A ticket that tells when it was made, and by whom if only they can take it back."""
    return f"{int(now):x}.{secrets.token_hex(12)}.{issuer}{_CONTINUED if continued else ''}"


def is_continued(ticket: str) -> bool:
    """Whether the ticket goes on with a call that was agreed to, and has its receipt."""
    return ticket.endswith(_CONTINUED)


def ticket_age(ticket: str, now: float) -> float:
    """Seconds since the ticket was made."""
    return now - int(ticket.partition(".")[0], 16)


def ticket_issuer(ticket: str) -> str:
    """Who made the ticket, where only they can take it back."""
    return ticket.rpartition(".")[2].removesuffix(_CONTINUED)

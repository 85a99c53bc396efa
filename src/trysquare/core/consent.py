"""Consent as values: what a person is asked, what became of it, and the digest that binds it to one call."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from trysquare.core.result import jsonable
from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsentRequest:
    """One call that waits for a person: who wants what, and the words they are asked with."""

    tool: str
    principal: str
    digest: str
    """Digest of the exact arguments: consent to one call is no consent to another."""
    question: str
    arguments: JsonObject
    """The arguments as a person may see them, without secret values."""
    remember_for: float | None = None
    """Seconds for which the same call needs no new consent; None asks every time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsentDecision:
    """What is known about a request: agreed, refused, or a code with which a person can agree in their terminal."""

    state: Literal["approved", "refused", "waiting"]
    code: str | None = None
    expires_in: float | None = None
    command: str | None = None
    """What the person types to decide, where it takes more than the code."""
    by: str | None = None
    """Who agreed, where somebody did."""
    how: str | None = None
    at: str | None = None


def arguments_digest(arguments: JsonObject) -> str:
    """SHA-256 of the arguments in one canonical form, whatever order their names came in."""
    text = json.dumps(arguments, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=jsonable)
    return hashlib.sha256(text.encode("ascii")).hexdigest()

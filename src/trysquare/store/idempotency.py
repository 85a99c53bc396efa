"""Idempotency keys: a call that is sent again with the same key gets the first answer and is not run twice.

A key belongs to one principal and one tool, and to the exact arguments it came with. While the first call runs, its
key is claimed. A process that dies in between leaves the claim behind: nobody knows then whether the call took effect,
so the key is never simply run again.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.store.database import Database
from trysquare.store.statements import Statements

LEASE = 900.0
"""Seconds after which a claim without an answer counts as left behind."""
KEPT = 86400.0
"""Seconds for which an answer is kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The right to run one call under a key, and the duty to `finish` or `release` it."""

    key: str
    tool: str
    principal: str
    token: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierAnswer:
    """The key was used before for the same call, and this was the answer."""

    result: JsonObject


class IdempotencyKeys:
    """The keys of one state file."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def claim(self, key: str, *, tool: str, principal: str, digest: str) -> Claim | EarlierAnswer:
        """Claim a key for a call, or get the answer that it had before."""
        with self._database.write() as connection:
            return claim(connection, key, tool=tool, principal=principal, digest=digest, now=self._clock())

    def finish(self, claimed: Claim, result: JsonObject) -> None:
        """Keep the answer, in a transaction of its own."""
        with self._database.write() as connection:
            finish(connection, claimed, result, now=self._clock())

    def release(self, claimed: Claim) -> None:
        """Give the key back: the call failed before it changed anything, and may be sent again."""
        with self._database.write() as connection:
            release(connection, claimed)


def claim(
    connection: Statements, key: str, *, tool: str, principal: str, digest: str, now: float
) -> Claim | EarlierAnswer:
    """Claim a key inside a transaction of the caller."""
    connection.execute("DELETE FROM idempotency WHERE result IS NOT NULL AND expires <= ?", (now,))
    earlier = find_answer(connection, key, tool=tool, principal=principal, digest=digest, now=now)
    if earlier is not None:
        return earlier
    claimed = Claim(key=key, tool=tool, principal=principal, token=secrets.token_hex(16))
    connection.execute(
        "INSERT INTO idempotency (principal, tool, request_key, digest, claim, started, expires)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (principal, tool, key, digest, claimed.token, now, now + LEASE),
    )
    return claimed


def find_answer(
    connection: Statements, key: str, *, tool: str, principal: str, digest: str, now: float
) -> EarlierAnswer | None:
    """The answer that a key had before, if it was used and its answer is kept. Nothing is written."""
    found = connection.execute(
        "SELECT digest, result, expires FROM idempotency WHERE principal = ? AND tool = ? AND request_key = ?"
        " AND (result IS NULL OR expires > ?)",
        (principal, tool, key, now),
    ).fetchone()
    return None if found is None else EarlierAnswer(result=_answer(found, key, tool, digest, now))


def finish(connection: Statements, claimed: Claim, result: JsonObject, *, now: float, kept: float = KEPT) -> None:
    """Keep the answer inside the transaction that makes the change itself, so that both stand or neither does."""
    done = connection.execute(
        "UPDATE idempotency SET result = ?, expires = ? WHERE claim = ? AND result IS NULL",
        (json.dumps(result), now + kept, claimed.token),
    )
    if done.rowcount != 1:
        raise ToolError(
            f"The claim on request key `{claimed.key}` is gone: the call was finished or released before.",
            code=ErrorCode.STATE_CONFLICT,
        )


def release(connection: Statements, claimed: Claim) -> None:
    """Give a key back inside a transaction of the caller."""
    connection.execute("DELETE FROM idempotency WHERE claim = ? AND result IS NULL", (claimed.token,))


def _answer(found: Any, key: str, tool: str, digest: str, now: float) -> JsonObject:
    kept_digest, result, expires = found
    shown = key if len(key) <= 80 else key[:79] + "…"
    if kept_digest != digest:
        raise ToolError(
            f"Request key `{shown}` was used for `{tool}` with other arguments.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Use a new request key for a new call, or repeat the first call exactly.",
        )
    if result is not None:
        return json.loads(result)
    if expires > now:
        raise ToolError(
            f"The call with request key `{shown}` is still running.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Wait, then send the same call with the same key to get its answer.",
        )
    raise ToolError(
        f"The call with request key `{shown}` was interrupted, and nobody knows whether it took effect.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Look at the present state first. If the change is not there, send the call with a new key.",
    )

"""Idempotency keys: a repeated call with the same key gets the first answer and does not run twice.

A key belongs to one principal, one tool and the exact arguments. It is claimed while the first call runs. A process
that dies in between leaves the claim behind: the outcome is unknown then, so the key never runs again.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.store.database import Statements

LEASE = 900.0
"""Seconds after which a claim without an answer counts as interrupted."""
RETENTION = 86400.0
"""Seconds for which an answer is stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The right to run one call under a key; it must be finished or released."""

    key: str
    tool: str
    principal: str
    token: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedAnswer:
    """Answer of an earlier call with the same key."""

    result: JsonObject


def claim(
    connection: Statements, key: str, *, tool: str, principal: str, digest: str, now: float
) -> Claim | RecordedAnswer:
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
) -> RecordedAnswer | None:
    """Stored answer of a key. Nothing is written."""
    found = connection.execute(
        "SELECT digest, result, expires FROM idempotency WHERE principal = ? AND tool = ? AND request_key = ?"
        " AND (result IS NULL OR expires > ?)",
        (principal, tool, key, now),
    ).fetchone()
    if found is None:
        return None
    stored_digest, result, expires = found
    shown = key if len(key) <= 80 else key[:79] + "…"
    if stored_digest != digest:
        raise ToolError(
            f"Request key `{shown}` was used for `{tool}` with other arguments.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Use a new request key for a new call, or repeat the first call exactly.",
        )
    if result is not None:
        return RecordedAnswer(result=json.loads(result))
    if expires > now:
        raise ToolError(
            f"The call with request key `{shown}` is still running.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Wait, then send the same call with the same key to get its answer.",
        )
    raise ToolError(
        f"The call with request key `{shown}` was interrupted; it may or may not have taken effect.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Read the current state. If the change is missing, send the call with a new key.",
    )


def finish(
    connection: Statements, claimed: Claim, result: JsonObject, *, now: float, retention: float = RETENTION
) -> None:
    """Store the answer inside the transaction that makes the change, so that both are committed or neither."""
    done = connection.execute(
        "UPDATE idempotency SET result = ?, expires = ? WHERE claim = ? AND result IS NULL",
        (json.dumps(result), now + retention, claimed.token),
    )
    if done.rowcount != 1:
        raise ToolError(
            f"The claim on request key `{claimed.key}` was already finished or released.", code=ErrorCode.STATE_CONFLICT
        )


def release(connection: Statements, claimed: Claim) -> None:
    """Release a key inside a transaction of the caller."""
    connection.execute("DELETE FROM idempotency WHERE claim = ? AND result IS NULL", (claimed.token,))

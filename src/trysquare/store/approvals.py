"""Approvals: calls that wait for a person, what the person decided, and the receipts that are kept of it.

A call that waits has a code. Where no client could ask, the person approves or refuses the code in their own terminal,
and the same call by the same principal with the same arguments then runs, once. Deciding needs this class, which only
the command line opens: no tool reaches it, so a model that knows the code gains nothing by it. Where a client asks,
nothing waits here: the question has a ticket, and a ticket that was used is kept, so that an answer counts for one run
however often a client sends it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from trysquare.core.consent import (
    ANSWER_LIFETIME,
    ConsentDecision,
    ConsentRequest,
    is_continued,
    new_ticket,
    ticket_age,
)
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.types import JsonObject
from trysquare.store.audit import append, utc_now
from trysquare.store.codes import new_code, normalized
from trysquare.store.database import Database

LIFETIME = 600.0
MAX_PENDING = 20
"""Calls of one principal that wait for a terminal; a further one takes the place of the oldest."""
MAX_MISSES = 10
MISS_WINDOW = 60.0

_SAME_CALL = "principal = ? AND tool = ? AND digest = ? AND question = ?"
"""The question too: tools of two servers that keep their approvals together may have the same name."""
_COLUMNS = "code, tool, principal, question, arguments, digest, expires"
_RECEIPT_COLUMNS = "id, tool, principal, digest, question, approved, by, how, at"


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingApproval:
    """A call that waits for a person."""

    code: str
    tool: str
    principal: str
    question: str
    arguments: JsonObject
    digest: str
    expires_in: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What a person decided: about which call, who they were, how they were asked, and when (UTC)."""

    id: int
    tool: str
    principal: str
    digest: str
    question: str
    approved: bool
    by: str
    how: str
    at: str


class StoredApprovals:
    """The approvals of one state file, safe among threads and processes."""

    def __init__(
        self, database: Database, *, lifetime: float = LIFETIME, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._lifetime = lifetime
        self._clock = clock

    # What a wrapped tool needs.

    def decide(self, request: ConsentRequest, *, open_code: bool = True) -> ConsentDecision:
        """Use up an approval of this very call, or report its refusal; else it waits, with a code if it is opened."""
        now = self._clock()
        with self._database.write() as connection:
            _forget_expired(connection, now)
            if _is_remembered(connection, request, now) or self._used_up(connection, request, now):
                return _approved(connection, request)
            found = _latest(connection, request)
            if found is not None and found[1] == "refused":
                return ConsentDecision(state="refused")
            if not open_code:
                return ConsentDecision(state="waiting")
            code, expires = (found[0], found[2]) if found else self._open(connection, request, now)
            return ConsentDecision(state="waiting", code=code, expires_in=expires - now)

    def ticket(self, *, continued: bool = False) -> str:
        """A ticket for one question to the client; every process that has this state file takes it back."""
        return new_ticket(self._clock(), continued=continued)

    def answer(self, request: ConsentRequest, *, ticket: str, approved: bool, by: str, how: str) -> bool:
        """Take an answer that came through the client, once: False for a ticket that was used or is too old."""
        now = self._clock()
        if ticket_age(ticket, now) > ANSWER_LIFETIME:
            return False
        with self._database.write() as connection:
            _forget_expired(connection, now)
            used = connection.execute(
                "INSERT INTO approvals (code, tool, principal, digest, question, arguments, state, created, expires)"
                " VALUES (?, ?, ?, ?, '', '{}', 'used', ?, ?) ON CONFLICT DO NOTHING",
                (ticket, request.tool, request.principal, request.digest, now, now + 2 * ANSWER_LIFETIME),
            )
            if used.rowcount == 0:
                return False
            if approved:
                # The same call may have been opened for a terminal before; it is decided now.
                connection.execute(f"DELETE FROM approvals WHERE state = 'pending' AND {_SAME_CALL}", _call(request))
            if not is_continued(ticket):
                _keep_receipt(connection, request, approved=approved, by=by, how=how, now=now)
        return True

    # What the person needs.

    def pending(self) -> list[PendingApproval]:
        """The calls that wait, oldest first."""
        query = f"SELECT {_COLUMNS} FROM approvals WHERE state = 'pending' AND expires > ? ORDER BY created, code"
        now = self._clock()
        with self._database.read() as connection:
            return [_pending(row, now) for row in connection.execute(query, (now,)).fetchall()]

    def show(self, code: str) -> PendingApproval:
        """The call behind a code. A wrong code counts as a try."""
        now = self._clock()
        with self._database.write() as connection:
            _refuse_guessing(connection, now)
            found = _find_pending(connection, code, now)
        return found or self._missed(code, now)

    def approve(self, code: str, *, by: str, how: str = "cli") -> Receipt:
        """The person agrees: the call that waits under this code may run once."""
        return self._settle(code, "approved", by=by, how=how)

    def refuse(self, code: str, *, by: str, how: str = "cli") -> Receipt:
        """The person refuses: the call that waits under this code fails when it is sent again."""
        return self._settle(code, "refused", by=by, how=how)

    def receipts(self, *, limit: int = 100) -> list[Receipt]:
        """What was decided, latest first."""
        query = f"SELECT {_RECEIPT_COLUMNS} FROM receipts ORDER BY id DESC LIMIT ?"
        with self._database.read() as connection:
            return [_receipt(row) for row in connection.execute(query, (limit,)).fetchall()]

    def _open(self, connection: sqlite3.Connection, request: ConsentRequest, now: float) -> tuple[str, float]:
        # Bounded, but never full: nobody can lock others out by asking for what nobody answers.
        connection.execute(
            "DELETE FROM approvals WHERE code IN (SELECT code FROM approvals WHERE principal = ? AND state = 'pending'"
            " ORDER BY created DESC, rowid DESC LIMIT -1 OFFSET ?)",
            (request.principal, MAX_PENDING - 1),
        )
        code, expires = new_code(), now + self._lifetime
        connection.execute(
            "INSERT INTO approvals (code, tool, principal, digest, question, arguments, remember_for, state, created,"
            " expires) VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
            (code, request.tool, request.principal, request.digest, request.question, json.dumps(request.arguments),
             request.remember_for, now, expires),
        )  # fmt: skip
        return code, expires

    def _used_up(self, connection: sqlite3.Connection, request: ConsentRequest, now: float) -> bool:
        """Take one approval of this call, if there is one; the transaction lets only one caller have it."""
        found = _latest(connection, request)
        if found is None or found[1] != "approved":
            return False
        connection.execute("UPDATE approvals SET state = 'used' WHERE code = ?", (found[0],))
        if request.remember_for is not None:
            connection.execute(
                "UPDATE receipts SET remembered_until = ? WHERE id = (SELECT max(id) FROM receipts"
                f" WHERE {_SAME_CALL} AND approved = 1)",
                (now + request.remember_for, *_call(request)),
            )
        append(connection, kind="consent.used", principal=request.principal, body=_body(request, code=found[0]))
        return True

    def _settle(self, code: str, state: Literal["approved", "refused"], *, by: str, how: str) -> Receipt:
        now = self._clock()
        with self._database.write() as connection:
            _refuse_guessing(connection, now)
            found = _find_pending(connection, code, now)
            if found is not None:
                # The person took their time: the call gets its own.
                connection.execute(
                    "UPDATE approvals SET state = ?, expires = ? WHERE code = ?",
                    (state, now + self._lifetime, found.code),
                )
                request = _request_of(found)
                return _keep_receipt(connection, request, approved=state == "approved", by=by, how=how, now=None)
        return self._missed(code, now)

    def _missed(self, code: str, now: float) -> Any:
        with self._database.write() as connection:
            connection.execute("INSERT INTO approval_misses (at) VALUES (?)", (now,))
        raise NotFound(
            f"No call waits under the code `{code[:20]}`: it was mistyped, has expired, or was decided already.",
            code=ErrorCode.HANDLE_NOT_FOUND,
            instruction="Run `trysquare approve` without a code to see what waits.",
        )


def _call(request: ConsentRequest) -> tuple[str, str, str, str]:
    return request.principal, request.tool, request.digest, request.question


def _approved(connection: sqlite3.Connection, request: ConsentRequest) -> ConsentDecision:
    """The decision with what its latest receipt says of it."""
    query = f"SELECT by, how, at FROM receipts WHERE {_SAME_CALL} AND approved = 1 ORDER BY id DESC LIMIT 1"
    by, how, at = connection.execute(query, _call(request)).fetchone()
    return ConsentDecision(state="approved", by=by, how=how, at=at)


def _body(request: ConsentRequest, **more: Any) -> JsonObject:
    return {"tool": request.tool, "digest": request.digest, "question": request.question, **more}


def _is_remembered(connection: sqlite3.Connection, request: ConsentRequest, now: float) -> bool:
    if request.remember_for is None:
        return False
    query = f"SELECT 1 FROM receipts WHERE {_SAME_CALL} AND remembered_until > ?"
    return connection.execute(query, (*_call(request), now)).fetchone() is not None


def _latest(connection: sqlite3.Connection, request: ConsentRequest) -> tuple[str, str, float] | None:
    """Code, state and end of this call's open approval; those that expired were forgotten before."""
    query = (
        f"SELECT code, state, expires FROM approvals WHERE {_SAME_CALL}"
        " AND state != 'used' ORDER BY created DESC, code LIMIT 1"
    )
    return connection.execute(query, _call(request)).fetchone()


def _forget_expired(connection: sqlite3.Connection, now: float) -> None:
    connection.execute("DELETE FROM approvals WHERE expires <= ?", (now,))


def _find_pending(connection: sqlite3.Connection, code: str, now: float) -> PendingApproval | None:
    query = f"SELECT {_COLUMNS} FROM approvals WHERE code = ? AND state = 'pending' AND expires > ?"
    row = connection.execute(query, (normalized(code), now)).fetchone()
    return None if row is None else _pending(row, now)


def _refuse_guessing(connection: sqlite3.Connection, now: float) -> None:
    connection.execute("DELETE FROM approval_misses WHERE at <= ? OR at > ?", (now - MISS_WINDOW, now))
    if connection.execute("SELECT count(*) FROM approval_misses").fetchone()[0] >= MAX_MISSES:
        raise ToolError(
            f"{MAX_MISSES} wrong codes within {MISS_WINDOW:.0f} seconds: no code is taken for a minute.",
            code=ErrorCode.CONSENT_REFUSED,
            instruction="Wait a minute, then run `trysquare approve` without a code to see what waits.",
        )


def _keep_receipt(
    connection: sqlite3.Connection, request: ConsentRequest, *, approved: bool, by: str, how: str, now: float | None
) -> Receipt:
    """Write the receipt and its row of the audit. `now` is given where the call runs at once."""
    at = utc_now()
    until = now + request.remember_for if approved and now is not None and request.remember_for is not None else 0.0
    append(
        connection, kind="consent.approved" if approved else "consent.refused", principal=request.principal,
        body=_body(request, by=by, how=how),
    )  # fmt: skip
    row = connection.execute(
        "INSERT INTO receipts (principal, tool, digest, question, approved, by, how, at, remembered_until)"
        f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_RECEIPT_COLUMNS}",
        (*_call(request), int(approved), by, how, at, until),
    ).fetchone()
    return _receipt(row)


def _pending(row: Any, now: float) -> PendingApproval:
    code, tool, principal, question, arguments, digest, expires = row
    return PendingApproval(
        code=code, tool=tool, principal=principal, question=question, arguments=json.loads(arguments), digest=digest,
        expires_in=expires - now,
    )  # fmt: skip


def _request_of(pending: PendingApproval) -> ConsentRequest:
    return ConsentRequest(
        tool=pending.tool, principal=pending.principal, digest=pending.digest, question=pending.question,
        arguments=pending.arguments,
    )  # fmt: skip


def _receipt(row: Any) -> Receipt:
    id, tool, principal, digest, question, approved, by, how, at = row
    return Receipt(
        id=id, tool=tool, principal=principal, digest=digest, question=question, approved=bool(approved), by=by,
        how=how, at=at,
    )  # fmt: skip

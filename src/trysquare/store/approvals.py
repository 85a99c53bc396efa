"""Pending approvals, receipts and one-time codes."""

from __future__ import annotations

import json
import secrets
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from trysquare.core import approvals
from trysquare.core.approvals import ANSWER_LIFETIME, ConsentDecision, ConsentRequest, SignedStatement
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.store.approvers import SIGNATURE, Approvers
from trysquare.store.audit import append, utc_now
from trysquare.store.database import Transactions
from trysquare.store.lazy import LazyDatabase
from trysquare.store.location import project_state, user_state
from trysquare.store.passkeys import PasskeySignature, is_passkey_signature, read_passkey_signature
from trysquare.store.signatures import InvalidSignature, gate_fields, shown_time, write_statement
from trysquare.store.watchers import is_watched

ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUP = 4


def new_code() -> str:
    """Create a code such as `7KQM-X2PD`: about 39 bits, enough for ten minutes and a few attempts."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(2 * _GROUP))
    return f"{letters[:_GROUP]}-{letters[_GROUP:]}"


def normalize_code(typed: str) -> str:
    """Normalize a typed code: lower case, spaces and a missing dash are fine."""
    letters = "".join(letter for letter in typed.upper() if letter.isalnum())
    return f"{letters[:_GROUP]}-{letters[_GROUP:]}"


LIFETIME = 600.0
MAX_PENDING = 20
"""Maximum pending calls of one principal; a further one replaces the oldest."""
MAX_MISSES = 10
MISS_WINDOW = 60.0

_SAME_CALL = "principal = ? AND tool = ? AND digest = ? AND question = ?"
"""With the question: tools of two servers that share a state file may have the same name."""
_DELETE_EXPIRED = "DELETE FROM approvals WHERE expires <= ?"
_COLUMNS = "code, tool, principal, question, arguments, digest, created, expires, client, job, gate, signs"
_RECEIPT_COLUMNS = "id, tool, principal, digest, question, approved, by, how, at, reason, statement, signature"
PATIENCE = 50.0
"""Seconds for which a call waits while a page is open. Many clients give up after 60."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingApproval:
    """A call that waits for a human."""

    code: str
    tool: str
    principal: str
    question: str
    arguments: JsonObject
    digest: str
    created: float
    """When it was first sent, in seconds since 1970."""
    expires_in: float
    client: str | None = None
    """The client program, as it calls itself."""
    job: str | None = None
    """The job of the agent that makes it."""
    gate: bool = False
    """Whether it closes a gate of a workflow."""
    signs: bool = False
    """Whether only an approver's signature lets it run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """Decision of a human on a call: by whom, how they were asked, and when (UTC)."""

    id: int
    tool: str
    principal: str
    digest: str
    question: str
    approved: bool
    by: str
    how: str
    at: str
    reason: str = ""
    """What the human wrote with it."""
    statement: str | None = None
    """What they signed, where they did."""
    signature: str | None = None
    unsigned: bool = False
    """Whether the call still waits: a human confirmed it, and only an approver's signature proves anything."""


class StoredApprovals:
    """Approvals of one state file, safe among threads and processes.

    Where no client can ask, a pending call has a code. A human approves or refuses the code in a terminal, and the same
    call by the same principal with the same arguments then runs once. Only the command line opens `approve`: no tool
    reaches it, so a model gains nothing by the code. Where a client asks, nothing is pending: the question has a
    ticket, and used tickets are stored, so that an answer counts for one run however often a client sends it.
    In a strict project with `approvers`, nothing but the signature of one of them approves.
    """

    def __init__(
        self,
        database: Transactions,
        *,
        lifetime: float = LIFETIME,
        clock: Callable[[], float] = time.time,
        approvers: Approvers | None = None,
        strict: bool = False,
    ) -> None:
        self._database = database
        self.approvers = approvers
        self._strict = strict
        self._lifetime = lifetime
        self._clock = clock

    def decide(self, request: ConsentRequest, *, open_code: bool = True) -> ConsentDecision:
        """Use an approval of this call or report its refusal; otherwise it is pending, with a code if `open_code`."""
        now = self._clock()
        if self.needs_signature(request):
            return self._decide_signed(request, now)
        with self._database.write() as connection:
            connection.execute(_DELETE_EXPIRED, (now,))
            if _is_remembered(connection, request, now) or self._use_approval(connection, request, now):
                latest = (
                    f"SELECT by, how, at FROM receipts WHERE {_SAME_CALL} AND approved = 1 ORDER BY id DESC LIMIT 1"
                )
                by, how, at = connection.execute(latest, _call(request)).fetchone()
                return ConsentDecision(state="approved", by=by, how=how, at=at)
            found = _latest(connection, request)
            if found is not None and found[1] == "refused":
                return ConsentDecision(state="refused", reason=found[3])
            if not open_code:
                return ConsentDecision(state="waiting")
            code, expires = (found[0], found[2]) if found else self._open(connection, request, now)
            return ConsentDecision(state="waiting", code=code, expires_in=expires - now)

    def needs_signature(self, request: ConsentRequest) -> bool:
        """Whether nothing but the signature of an approver lets this call run."""
        return (self._strict or request.strict) and self.approvers is not None and self.approvers.is_configured()

    def _decide_signed(self, request: ConsentRequest, now: float) -> ConsentDecision:
        """Use a signed approval of this call. What the tables say counts for nothing without its signature."""
        with self._database.write() as connection:
            connection.execute(_DELETE_EXPIRED, (now,))
            found, reason = _latest(connection, request), ""
            if found is not None and found[1] == "refused":
                return ConsentDecision(state="refused", reason=found[3])
            if found is not None and found[1] == "approved":
                try:
                    return self._use_signature(connection, request, found[0], now)
                except InvalidSignature as error:
                    reason = f"Its approval does not count: {error}."
                    _withdraw(connection, request, found[0], str(error), kind="consent.unsigned")
                    found = None
            code, expires = (found[0], found[2]) if found else self._open(connection, request, now)
        left, command = expires - now, None if self.approvers is None else self.approvers.sign_command(code)
        return ConsentDecision(state="waiting", code=code, expires_in=left, command=command, reason=reason)

    def _use_signature(
        self, connection: sqlite3.Connection, request: ConsentRequest, code: str, now: float
    ) -> ConsentDecision:
        query = "SELECT created, statement, signature FROM approvals WHERE code = ?"
        created, statement, signature = connection.execute(query, (code,)).fetchone()
        if not isinstance(statement, str) or not isinstance(signature, str) or self.approvers is None:
            raise InvalidSignature("it has no signature")
        signed = SignedStatement(text=statement, signature=signature)
        by, fields = self.approvers.verify(signed)
        asked = {name: fields.get(name) for name in ("asked", "signed", "expires")}
        expected = _statement_of(request, self.approvers, code=code, gate=request.gate, given=_given(fields))
        if expected != statement or shown_time(created) != asked["asked"]:
            raise InvalidSignature("something else was signed")
        if shown_time(now) > str(asked["expires"]):
            raise InvalidSignature("the signature has expired")
        if _was_used(connection, code):
            raise InvalidSignature("it was used before")
        connection.execute("UPDATE approvals SET state = 'used' WHERE code = ?", (code,))
        append(connection, kind="consent.used", principal=request.principal, body=_body(request, code=code, by=by))
        return ConsentDecision(state="approved", by=by, how=SIGNATURE, at=str(asked["signed"]), signed=signed)

    def statement(self, code: str, *, page: str | None = None) -> str:
        """The text that an approver signs to approve a pending call, until the lifetime of an approval has passed.

        `page` is the origin of the page on which a passkey signs it.
        """
        pending, now = self.show(code), self._clock()
        if self.approvers is None:
            raise InvalidSignature("this project has no approvers")
        times = {"asked": shown_time(pending.created), "signed": shown_time(now)}
        times["expires"] = shown_time(now + self._lifetime)
        given = times if page is None else {**times, "page": page}
        return _statement_of(pending, self.approvers, code=pending.code, gate=pending.gate, given=given)

    def approve_signed(self, code: str, signed: SignedStatement) -> Receipt:
        """Approve a pending call with an approver's signature of its `statement`, or raise `InvalidSignature`."""
        pending = self.show(code)
        if self.approvers is None:
            raise InvalidSignature("this project has no approvers")
        by, fields = self.approvers.verify(signed)
        expected = _statement_of(pending, self.approvers, code=pending.code, gate=pending.gate, given=_given(fields))
        if expected != signed.text:
            raise InvalidSignature("something else was signed")
        if is_passkey_signature(signed.signature):
            self._require_new_counter(read_passkey_signature(signed.signature))
        return self._settle(code, "approved", by=by, how=SIGNATURE, reason="", signed=signed)

    def _require_new_counter(self, proof: PasskeySignature) -> None:
        """Refuse a passkey that counts and has not counted on since its last signature here: it was copied."""
        with self._database.read() as connection:
            before = [read_passkey_signature(each.signature) for each in receipts_in(connection) if each.signature and
                      is_passkey_signature(each.signature)]  # fmt: skip
        last = max((each.counter for each in before if each.credential == proof.credential), default=0)
        if max(last, proof.counter) > 0 and proof.counter <= last:
            raise InvalidSignature("the passkey's counter did not go on, so there may be a copy of it")

    def ticket(self, *, continued: bool = False) -> str:
        """Ticket for one question to the client, valid in every process with this state file."""
        return approvals.new_ticket(self._clock(), continued=continued)

    def answer(self, request: ConsentRequest, *, ticket: str, approved: bool, by: str, how: str) -> bool:
        """Accept an answer from the client; False if the ticket was used or has expired."""
        now = self._clock()
        if approvals.ticket_age(ticket, now) > min(self._lifetime, ANSWER_LIFETIME):
            return False
        with self._database.write() as connection:
            connection.execute(_DELETE_EXPIRED, (now,))
            used = connection.execute(
                "INSERT INTO approvals (code, tool, principal, digest, question, arguments, state, created, expires)"
                " VALUES (?, ?, ?, ?, '', '{}', 'used', ?, ?) ON CONFLICT DO NOTHING",
                (ticket, request.tool, request.principal, request.digest, now, now + 2 * ANSWER_LIFETIME),
            )
            if used.rowcount == 0:
                return False
            if approved:
                # The same call may also be pending for a terminal or a page; it is decided now.
                connection.execute(f"DELETE FROM approvals WHERE state = 'pending' AND {_SAME_CALL}", _call(request))
            if not approvals.is_continued(ticket):
                _add_receipt(connection, request, approved=approved, by=by, how=how, now=now)
        return True

    def pending(self) -> list[PendingApproval]:
        """Pending calls, oldest first."""
        query = f"SELECT {_COLUMNS} FROM approvals WHERE state = 'pending' AND expires > ? ORDER BY created, code"
        now = self._clock()
        with self._database.read() as connection:
            return [_pending(row, now) for row in connection.execute(query, (now,)).fetchall()]

    def show(self, code: str) -> PendingApproval:
        """Pending call of a code. A wrong code counts as an attempt."""
        now = self._clock()
        with self._database.write() as connection:
            _refuse_guessing(connection, now)
            found = _find_pending(connection, code, now)
        return found or self._report_miss(code, now)

    def approve(self, code: str, *, by: str, how: str = "cli", reason: str = "") -> Receipt:
        """Approve a pending call: it may run once."""
        return self._settle(code, "approved", by=by, how=how, reason=reason)

    def refuse(self, code: str, *, by: str, how: str = "cli", reason: str = "") -> Receipt:
        """Refuse a pending call: it fails when it is sent again, with the reason."""
        return self._settle(code, "refused", by=by, how=how, reason=reason)

    def state_of(self, code: str) -> Literal["pending", "decided"] | None:
        """Where a call with a code stands; None once it was used, withdrawn or has expired."""
        query = "SELECT state FROM approvals WHERE code = ? AND expires > ?"
        with self._database.read() as connection:
            row = connection.execute(query, (code, self._clock())).fetchone()
        state = "used" if row is None else row[0]
        return "pending" if state == "pending" else "decided" if state in ("approved", "refused") else None

    def withdraw(self, code: str) -> None:
        """Forget a pending call and its decision: its question was answered in another way."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM approvals WHERE code = ? AND state != 'used'", (code,))

    def receipts(self, *, limit: int = 100) -> list[Receipt]:
        """Decisions, latest first."""
        with self._database.read() as connection:
            return list(receipts_in(connection, limit=limit))

    def _open(self, connection: sqlite3.Connection, request: ConsentRequest, now: float) -> tuple[str, float]:
        # Bounded by replacing the oldest: unanswered calls cannot block others.
        connection.execute(
            "DELETE FROM approvals WHERE code IN (SELECT code FROM approvals WHERE principal = ? AND state = 'pending'"
            " ORDER BY created DESC, rowid DESC LIMIT -1 OFFSET ?)",
            (request.principal, MAX_PENDING - 1),
        )
        code, expires = new_code(), now + self._lifetime
        connection.execute(
            "INSERT INTO approvals (code, tool, principal, digest, question, arguments, remember_for, state, created,"
            " expires, client, job, gate, signs) VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?)",
            (code, request.tool, request.principal, request.digest, request.question, json.dumps(request.arguments),
             request.remember_for, now, expires, request.client, request.job, int(request.gate),
             int(self.needs_signature(request))),
        )  # fmt: skip
        return code, expires

    def _use_approval(self, connection: sqlite3.Connection, request: ConsentRequest, now: float) -> bool:
        """Use one approval of this call, if there is one; the transaction gives it to one caller only."""
        found = _latest(connection, request)
        if found is None or found[1] != "approved":
            return False
        given = f"SELECT 1 FROM receipts WHERE {_SAME_CALL} AND approved = 1"
        if connection.execute(given, _call(request)).fetchone() is None:
            _withdraw(connection, request, found[0], "it has no receipt", kind="consent.unrecorded")
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

    def _settle(
        self,
        code: str,
        state: Literal["approved", "refused"],
        *,
        by: str,
        how: str,
        reason: str,
        signed: SignedStatement | None = None,
    ) -> Receipt:
        now = self._clock()
        with self._database.write() as connection:
            _refuse_guessing(connection, now)
            found = _find_pending(connection, code, now)
            if found is not None:
                decided = state == "approved"
                unsigned = decided and found.signs and signed is None
                if not unsigned:
                    # The time to decide must not shorten the time to run.
                    connection.execute(
                        "UPDATE approvals SET state = ?, expires = ?, reason = ?, statement = ?, signature = ?"
                        " WHERE code = ?",
                        (state, now + self._lifetime, reason, *_columns_of(signed), found.code),
                    )
                request = ConsentRequest(
                    tool=found.tool, principal=found.principal, digest=found.digest, question=found.question,
                    arguments=found.arguments,
                )  # fmt: skip
                receipt = _add_receipt(
                    connection, request, approved=decided, by=by, how=how, now=None, reason=reason, signed=signed
                )
                return replace(receipt, unsigned=unsigned)
        return self._report_miss(code, now)

    def _report_miss(self, code: str, now: float) -> Any:
        with self._database.write() as connection:
            connection.execute("INSERT INTO approval_misses (at) VALUES (?)", (now,))
        raise NotFound(
            f"Unknown code `{code[:20]}`: mistyped, expired or already decided.",
            code=ErrorCode.HANDLE_NOT_FOUND,
            instruction="Run `trysquare approve` without a code to list the pending calls.",
        )


def _statement_of(
    asked: ConsentRequest | PendingApproval, approvers: Approvers, *, code: str, gate: bool, given: JsonObject
) -> str:
    """The canonical text of an approval."""
    arguments = asked.arguments
    place = Path(str(arguments["project"])) if gate and "project" in arguments else None
    return write_statement(
        {
            "decision": "approve",
            "project": approvers.project_name(place),
            "tool": asked.tool,
            **(gate_fields(arguments) if gate else {}),
            "arguments": arguments,
            "caller": asked.principal,
            "question": asked.question,
            "digest": asked.digest,
            "code": code,
            **given,
        }
    )


def _given(fields: JsonObject) -> JsonObject:
    """What whoever signs adds to a statement: the times, and the page of a passkey."""
    return {name: fields[name] for name in ("asked", "signed", "expires", "page") if name in fields}


def _columns_of(signed: SignedStatement | None) -> tuple[str | None, str | None]:
    return (None, None) if signed is None else (signed.text, signed.signature)


def _withdraw(connection: sqlite3.Connection, request: ConsentRequest, code: str, why: str, *, kind: str) -> None:
    """Forget an approval that proves nothing, with a trace."""
    connection.execute("DELETE FROM approvals WHERE code = ?", (code,))
    body = _body(request, code=code, problem=why)
    append(connection, kind=kind, principal=request.principal, body=body)


def _was_used(connection: sqlite3.Connection, code: str) -> bool:
    query = "SELECT body FROM audit WHERE kind = 'consent.used' AND body LIKE ?"
    found = connection.execute(query, (f'%"code":"{code}"%',)).fetchall()
    return any(json.loads(body).get("code") == code for (body,) in found)


def _call(request: ConsentRequest) -> tuple[str, str, str, str]:
    return request.principal, request.tool, request.digest, request.question


def _body(request: ConsentRequest, **more: Any) -> JsonObject:
    return {"tool": request.tool, "digest": request.digest, "question": request.question, **more}


def _is_remembered(connection: sqlite3.Connection, request: ConsentRequest, now: float) -> bool:
    if request.remember_for is None:
        return False
    query = f"SELECT 1 FROM receipts WHERE {_SAME_CALL} AND remembered_until > ?"
    return connection.execute(query, (*_call(request), now)).fetchone() is not None


def _latest(connection: sqlite3.Connection, request: ConsentRequest) -> tuple[str, str, float, str] | None:
    """Code, state, expiry and reason of this call's open approval; expired ones were deleted before."""
    query = (
        f"SELECT code, state, expires, reason FROM approvals WHERE {_SAME_CALL}"
        " AND state != 'used' ORDER BY created DESC, code LIMIT 1"
    )
    return connection.execute(query, _call(request)).fetchone()


def _find_pending(connection: sqlite3.Connection, code: str, now: float) -> PendingApproval | None:
    query = f"SELECT {_COLUMNS} FROM approvals WHERE code = ? AND state = 'pending' AND expires > ?"
    row = connection.execute(query, (normalize_code(code), now)).fetchone()
    return None if row is None else _pending(row, now)


def _refuse_guessing(connection: sqlite3.Connection, now: float) -> None:
    connection.execute("DELETE FROM approval_misses WHERE at <= ? OR at > ?", (now - MISS_WINDOW, now))
    if connection.execute("SELECT count(*) FROM approval_misses").fetchone()[0] >= MAX_MISSES:
        raise ToolError(
            f"Too many wrong codes ({MAX_MISSES} within {MISS_WINDOW:.0f} seconds).",
            code=ErrorCode.CONSENT_REFUSED,
            instruction="Wait a minute, then run `trysquare approve` without a code to list the pending calls.",
        )


def _add_receipt(
    connection: sqlite3.Connection,
    request: ConsentRequest,
    *,
    approved: bool,
    by: str,
    how: str,
    now: float | None,
    reason: str = "",
    signed: SignedStatement | None = None,
) -> Receipt:
    """Store the receipt and its audit row. `now` is given if the call runs at once."""
    at = utc_now()
    until = now + request.remember_for if approved and now is not None and request.remember_for is not None else 0.0
    append(
        connection, kind="consent.approved" if approved else "consent.refused", principal=request.principal,
        body=_body(request, by=by, how=how, **({"reason": reason} if reason else {})),
    )  # fmt: skip
    row = connection.execute(
        "INSERT INTO receipts (principal, tool, digest, question, approved, by, how, at, remembered_until, reason,"
        f" statement, signature) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_RECEIPT_COLUMNS}",
        (*_call(request), int(approved), by, how, at, until, reason, *_columns_of(signed)),
    ).fetchone()
    return _receipt(row)


def _pending(row: Any, now: float) -> PendingApproval:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    arguments, expires = json.loads(values.pop("arguments")), values.pop("expires")
    values |= {name: bool(values[name]) for name in ("gate", "signs")}
    return PendingApproval(**values, arguments=arguments, expires_in=expires - now)


def _receipt(row: Any) -> Receipt:
    receipt = Receipt(**dict(zip(_RECEIPT_COLUMNS.split(", "), row, strict=True)))
    return replace(receipt, approved=bool(receipt.approved))


def receipts_in(connection: sqlite3.Connection, *, limit: int = -1) -> Iterator[Receipt]:
    """Decisions of a file, latest first, inside a transaction of the caller."""
    query = f"SELECT {_RECEIPT_COLUMNS} FROM receipts ORDER BY id DESC LIMIT ?"
    return map(_receipt, connection.execute(query, (limit,)))


def project_approvals(project: Path) -> LazyApprovals:
    """Approvals of a project, for servers built in Python; `trysquare approve` finds them there."""
    return LazyApprovals(LazyDatabase(project_state(project)))


class LazyApprovals(StoredApprovals):
    """Stored approvals whose state file is opened at the first question."""

    def __init__(
        self,
        state: LazyDatabase,
        *,
        approvers: Approvers | None = None,
        strict: bool = False,
        lifetime: float = LIFETIME,
    ) -> None:
        super().__init__(state, approvers=approvers, strict=strict, lifetime=lifetime)
        self._state = state
        self.patience = PATIENCE

    def is_watched(self) -> bool:
        """Whether a page is open that shows the pending calls of this file."""
        return is_watched(self._state.path.parent)

    def decide(self, request: ConsentRequest, *, open_code: bool = True) -> ConsentDecision:
        decision = super().decide(request, open_code=open_code)
        if decision.code is None or self._state.path == user_state():
            return decision
        # The user's terminal may be in any directory, so the command names the project.
        project = shlex.quote(str(self._state.path.parent.parent.resolve()))
        if self.approvers is not None and self.needs_signature(request):
            return replace(decision, command=self.approvers.sign_command(decision.code, project=project))
        return replace(decision, command=f"trysquare approve {decision.code} --project {project}")

    def ticket(self, *, continued: bool = False) -> str:
        # Fails before the user is asked, not after they have answered.
        self._state.database()
        return super().ticket(continued=continued)

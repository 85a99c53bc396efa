"""The rows of the ledger of calls, and the statements that write and read them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

from trysquare.core.result import clean

CallState: TypeAlias = Literal["sending", "not_sent", "sent_unknown", "done"]

BEGIN_COLUMNS = ("id", "owner", "started", "principal", "server", "tool", "arguments", "digest")
END_COLUMNS = ("ended", "state", "is_error", "result_digest", "result_bytes", "note")
_ALL = ", ".join((*BEGIN_COLUMNS, *END_COLUMNS))
_ROW = f"({', '.join('?' * (len(BEGIN_COLUMNS) + len(END_COLUMNS)))})"
_TOGETHER = (64, 8, 1)
"""Rows in one statement, as many as fit: half the work of a statement each."""
_END = f"UPDATE gateway_calls SET {', '.join(f'{column} = ?' for column in END_COLUMNS)} WHERE id = ?"
_RECORD = (
    "id, started, ended, principal, server, tool, arguments, digest, state, is_error, result_digest, result_bytes,"
    " note, request_key"
)

KEPT = 86400.0
"""Seconds for which a key and the result of its call are kept."""


class NewCall(NamedTuple):
    """A call that is about to be sent. `arguments` is JSON without secrets, `digest` that of the true ones."""

    principal: str
    server: str
    tool: str
    arguments: str
    digest: str


class CallEnd(NamedTuple):
    """What became of a call."""

    state: CallState
    ended: float
    is_error: bool | None = None
    result_digest: str | None = None
    result_bytes: int | None = None
    note: str | None = None

    def columns(self) -> list[Any]:
        """The values of `END_COLUMNS`."""
        return [self.ended, self.state, self.is_error, self.result_digest, self.result_bytes, self.note]

    @staticmethod
    def from_columns(columns: Sequence[Any]) -> CallEnd:
        """What `columns` gave."""
        ended, state, is_error, result_digest, result_bytes, note = columns
        return CallEnd(
            state=state, ended=ended, is_error=is_error, result_digest=result_digest, result_bytes=result_bytes,
            note=note,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyedCall:
    """A call that was made with a request key before. `result` is its answer, where that was small enough to keep."""

    id: str
    owner: str
    state: CallState
    digest: str
    is_error: bool
    result: bytes | None
    result_bytes: int | None
    note: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRecord:
    """One call, as the ledger shows it. Times are seconds since 1970."""

    id: str
    started: float
    ended: float | None
    principal: str
    server: str
    tool: str
    arguments: str
    digest: str
    state: CallState
    is_error: bool | None
    result_digest: str | None
    result_bytes: int | None
    note: str | None
    request_key: str | None


def begin_row(call: NewCall, id: str, owner: str, now: float) -> list[Any]:
    """The row of a call that is under way."""
    return [
        id, owner, now, clean(call.principal), clean(call.server), clean(call.tool), clean(call.arguments), call.digest,
        None, "sending", None, None, None, None,
    ]  # fmt: skip


def insert_calls(connection: sqlite3.Connection, rows: Iterable[Sequence[Any]]) -> None:
    """Add calls. One that is there already stays as it is."""
    waiting = list(rows)
    for count in _TOGETHER:
        while len(waiting) >= count:
            connection.execute(_insert(count), list(chain.from_iterable(waiting[:count])))
            del waiting[:count]


@cache
def _insert(count: int) -> str:
    return f"INSERT INTO gateway_calls ({_ALL}) VALUES {', '.join([_ROW] * count)} ON CONFLICT (id) DO NOTHING"


def end_calls(connection: sqlite3.Connection, ends: Mapping[str, CallEnd]) -> None:
    """Write what became of some calls, by their ids."""
    connection.executemany(_END, [(*end.columns(), id) for id, end in ends.items()])


def lose_calls(connection: sqlite3.Connection, owner: str, now: float) -> int:
    """Mark what a process left under way; returns how many calls that were."""
    found = connection.execute(
        "UPDATE gateway_calls SET state = 'sent_unknown', ended = ?, note = 'the gateway ended during the call'"
        " WHERE owner = ? AND state = 'sending'",
        (now, owner),
    )
    return found.rowcount


def find_key(connection: sqlite3.Connection, principal: str, server: str, tool: str, key: str) -> KeyedCall | None:
    """The call that has a key, if one has."""
    row: Any = connection.execute(
        "SELECT id, owner, state, digest, is_error, result, result_bytes, note FROM gateway_calls"
        " WHERE principal = ? AND server = ? AND tool = ? AND request_key = ?",
        (principal, server, tool, key),
    ).fetchone()
    if row is None:
        return None
    id, owner, state, digest, is_error, result, result_bytes, note = row
    return KeyedCall(
        id=id, owner=owner, state=state, digest=digest, is_error=bool(is_error), result=result,
        result_bytes=result_bytes, note=note,
    )  # fmt: skip


def select_calls(
    connection: sqlite3.Connection, *, limit: int, server: str | None, state: str | None
) -> list[CallRecord]:
    """The latest calls, latest first, of one server or in one state where that is said."""
    wanted = {"server": server, "state": state}
    given = {column: value for column, value in wanted.items() if value is not None}
    where = " AND ".join(f"{column} = ?" for column in given) or "1"
    query = f"SELECT {_RECORD} FROM gateway_calls WHERE {where} ORDER BY started DESC, rowid DESC LIMIT ?"
    return [_record(row) for row in connection.execute(query, (*given.values(), limit)).fetchall()]


def clear_old(connection: sqlite3.Connection, *, kept: int, keys_before: float) -> None:
    """Free the keys of long ago, and forget all calls but the latest. One that has a key stays as long as the key."""
    connection.execute(
        "UPDATE gateway_calls SET request_key = NULL, result = NULL WHERE request_key IS NOT NULL AND ended < ?",
        (keys_before,),
    )
    connection.execute(
        "DELETE FROM gateway_calls WHERE rowid <= (SELECT max(rowid) FROM gateway_calls) - ?"
        " AND request_key IS NULL AND state != 'sending'",
        (kept,),
    )


def _record(row: Any) -> CallRecord:
    names = [name.strip() for name in _RECORD.split(",")]
    values = dict(zip(names, row, strict=True))
    is_error = values.pop("is_error")
    return CallRecord(**values, is_error=None if is_error is None else bool(is_error))

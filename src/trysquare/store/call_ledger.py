"""Ledger of upstream calls, with a write-ahead journal per process."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from pydantic_core import to_json

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.text import encodable
from trysquare.store.database import Database, open_database

_FLAGS = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


class Journal:
    """Write-ahead journal of one process, locked as long as it lives; not thread-safe.

    Lines go to one of two files in turn: while one is flushed to the database, new lines go to the other. A written
    line survives `kill -9`, but the last moments before a power failure can be lost. The next process takes over the
    journal of a killed one, which is unlocked.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._paths = tuple(folder / f"{owner}.{number}" for number in (0, 1))
        # Locked before it has its name, so that it never looks orphaned.
        unnamed = folder / f"{owner}.new"
        first = os.open(unnamed, _FLAGS, 0o600)
        fcntl.flock(first, fcntl.LOCK_EX)
        unnamed.rename(self._paths[0])
        self._files = (first, os.open(self._paths[1], _FLAGS, 0o600))
        self._current = 0
        self._torn = False
        self.has_unflushed = False

    def append(self, line: bytes) -> None:
        """Append a line, which must not contain a line break. Raises `OSError` if it was written only in part."""
        whole = b"\n" + line + b"\n" if self._torn else line + b"\n"
        written = os.write(self._files[self._current], whole)
        # The next line must not join a partial one.
        self._torn = written < len(whole)
        if self._torn:
            raise OSError("the line was written only in part")

    def rotate(self) -> None:
        """Write the next lines to the other file, which must be empty."""
        self._current = 1 - self._current
        self.has_unflushed = True

    def clear_other(self) -> None:
        """Empty the inactive file, whose lines are in the database."""
        os.ftruncate(self._files[1 - self._current], 0)
        self.has_unflushed = False

    def remove(self) -> None:
        """Delete the journal, whose lines are in the database."""
        _remove(self._paths)
        self.close()

    def close(self) -> None:
        """Close the journal and leave it to the next process."""
        for file in self._files:
            os.close(file)


@contextmanager
def orphaned_journals(folder: Path) -> Generator[dict[str, list[bytes]]]:
    """Lock the journals of ended processes, by owner; they are deleted at the end of the block, unless it raises."""
    locked: list[int] = []
    try:
        first = [path for path in sorted(folder.glob("*.0")) if _try_lock(path, locked)]
        files = {path.stem: (path, path.with_suffix(".1")) for path in first}
        yield {
            owner: [line for path in paths if path.exists() for line in path.read_bytes().split(b"\n") if line]
            for owner, paths in files.items()
        }
        for paths in files.values():
            _remove(paths)
    finally:
        for file in locked:
            os.close(file)


def _try_lock(path: Path, locked: list[int]) -> bool:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    locked.append(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # Another process may have taken it over and deleted it before.
    return path.exists()


def _remove(paths: tuple[Path, ...]) -> None:
    # The locked file last: until then the other one is known to belong to it.
    for path in sorted(paths, reverse=True):
        path.unlink(missing_ok=True)


T = TypeVar("T")
CallState: TypeAlias = Literal["sending", "not_sent", "sent_unknown", "done"]

_BATCHES = (64, 8, 1)
"""Batch sizes of inserts; a batch takes half the time of single rows."""
RETENTION = 86400.0
"""Seconds for which a key and the result of its call are stored."""


class NewCall(NamedTuple):
    """A call about to be sent. `arguments` is JSON with secrets masked; `digest` covers the real ones."""

    principal: str
    server: str
    tool: str
    arguments: str
    digest: str


class CallEnd(NamedTuple):
    """Outcome of a call, in the order of the columns and of a journal's line."""

    ended: float | None
    state: CallState
    is_error: bool | None = None
    result_digest: str | None = None
    result_bytes: int | None = None
    note: str | None = None


_UNFINISHED = CallEnd(None, "sending")
_COLUMNS = ("id", "owner", "started", *NewCall._fields, *CallEnd._fields)
_ROW = f"({', '.join('?' * len(_COLUMNS))})"
_END = f"UPDATE gateway_calls SET {', '.join(f'{column} = ?' for column in CallEnd._fields)} WHERE id = ?"


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """Earlier call with a request key. `result` is its answer, if that was small enough to store."""

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
    """Ledger entry of a call. Times are seconds since 1970."""

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


_RECORD = ", ".join(field.name for field in fields(CallRecord))


def begin_row(call: NewCall, id: str, owner: str, now: float) -> list[Any]:
    """Row of a call in progress."""
    return [id, owner, now, *(text if text.isascii() else encodable(text) for text in call), *_UNFINISHED]


def insert_calls(connection: sqlite3.Connection, rows: Iterable[Sequence[Any]]) -> None:
    """Insert calls; existing ones stay unchanged."""
    waiting = list(rows)
    for count in _BATCHES:
        while len(waiting) >= count:
            connection.execute(_insert(count), list(chain.from_iterable(waiting[:count])))
            del waiting[:count]


@cache
def _insert(count: int) -> str:
    rows = ", ".join([_ROW] * count)
    return f"INSERT INTO gateway_calls ({', '.join(_COLUMNS)}) VALUES {rows} ON CONFLICT (id) DO NOTHING"


def end_calls(connection: sqlite3.Connection, ends: Mapping[str, CallEnd]) -> None:
    """Store the outcomes of calls, by id."""
    connection.executemany(_END, [(*end, id) for id, end in ends.items()])


def lose_calls(connection: sqlite3.Connection, owner: str, now: float) -> int:
    """Mark the unfinished calls of a process as `sent_unknown`; return their number."""
    found = connection.execute(
        "UPDATE gateway_calls SET state = 'sent_unknown', ended = ?, note = 'the gateway ended during the call'"
        " WHERE owner = ? AND state = 'sending'",
        (now, owner),
    )
    return found.rowcount


def find_key(connection: sqlite3.Connection, principal: str, server: str, tool: str, key: str) -> KeyedCall | None:
    """Call with a request key, if there is one."""
    row: Any = connection.execute(
        "SELECT id, owner, state, digest, is_error, result, result_bytes, note FROM gateway_calls"
        " WHERE principal = ? AND server = ? AND tool = ? AND request_key = ?",
        (principal, server, tool, key),
    ).fetchone()
    if row is None:
        return None
    id, owner, state, digest, is_error, *rest = row
    return KeyedCall(id, owner, state, digest, bool(is_error), *rest)


@dataclass(frozen=True, kw_only=True, slots=True)
class CallFilter:
    """Which calls are wanted; None takes all."""

    id: str | None = None
    server: str | None = None
    tool: str | None = None
    principal: str | None = None
    state: str | None = None
    is_error: bool | None = None
    since: float | None = None
    slower_than: float | None = None
    """Seconds."""

    def conditions(self) -> dict[str, Any]:
        """The conditions in SQL, each with its value."""
        named = {
            "id = ?": self.id, "server = ?": self.server, "tool = ?": self.tool, "principal = ?": self.principal,
            "state = ?": self.state, "coalesce(is_error, 0) = ?": self.is_error, "started >= ?": self.since,
            "ended - started > ?": self.slower_than,
        }  # fmt: skip
        return {condition: value for condition, value in named.items() if value is not None}


def select_calls(connection: sqlite3.Connection, wanted: CallFilter, *, limit: int) -> list[CallRecord]:
    """Latest calls first."""
    given = wanted.conditions()
    where = " AND ".join(given) or "1"
    query = f"SELECT {_RECORD} FROM gateway_calls WHERE {where} ORDER BY started DESC, rowid DESC LIMIT ?"
    return [_record(row) for row in connection.execute(query, (*given.values(), limit)).fetchall()]


class CallTiming(NamedTuple):
    """When a call was sent and how it ended, without what it was about."""

    server: str
    started: float
    ended: float | None
    state: CallState
    is_error: bool | None


def select_timings(connection: sqlite3.Connection, *, since: float, limit: int) -> list[CallTiming]:
    """Latest calls first."""
    query = (
        f"SELECT {', '.join(CallTiming._fields)} FROM gateway_calls WHERE started >= ? ORDER BY started DESC LIMIT ?"
    )
    return [CallTiming(*row) for row in connection.execute(query, (since, limit)).fetchall()]


def clear_old(connection: sqlite3.Connection, *, keep: int, keys_before: float) -> None:
    """Release old keys, and delete all but the latest calls; one with a key stays as long as the key."""
    connection.execute(
        "UPDATE gateway_calls SET request_key = NULL, result = NULL WHERE request_key IS NOT NULL AND ended < ?",
        (keys_before,),
    )
    connection.execute(
        "DELETE FROM gateway_calls WHERE rowid <= (SELECT max(rowid) FROM gateway_calls) - ?"
        " AND request_key IS NULL AND state != 'sending'",
        (keep,),
    )


def _record(row: Any) -> CallRecord:
    values = dict(zip(_RECORD.split(", "), row, strict=True))
    is_error = values.pop("is_error")
    return CallRecord(**values, is_error=None if is_error is None else bool(is_error))


logger = logging.getLogger("trysquare.store")

GATHER_SECONDS = 1.0
"""Seconds for which calls are collected before they are flushed in one transaction."""
MAX_WAITING = 100_000
"""Maximum calls that wait for a failing database before new ones are refused."""
MAX_CALLS = 100_000
_CLEAR_EVERY = 2_000


class CallLedger:
    """Ledger in one file, created at the first call.

    A call is in the journal before it is sent, and its outcome before it is returned. A thread flushes the journal to
    the database, many calls in one transaction. Unfinished calls of a killed process become `sent_unknown`. Calls with
    a request key go to the database at once, so that two processes never run the same key twice.
    """

    def __init__(self, path: Path, *, max_calls: int = MAX_CALLS, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._folder = path.with_name(path.name + "-journals")
        self.owner = secrets.token_hex(4)
        self._max_calls = max_calls
        self._clock = clock
        self._lock = threading.Lock()
        self._opening = threading.RLock()
        self._flushing = threading.Lock()
        self._number = 0
        self._begun: dict[str, list[Any]] = {}
        self._ended: dict[str, CallEnd] = {}
        self._journal: Journal | None = None
        self._database: Database | None = None
        self._writer: threading.Thread | None = None
        self._work = threading.Event()
        self._closing = threading.Event()
        self._until_clearing = 0

    def open(self) -> Journal:
        """Open the journal and the database, which takes some milliseconds the first time."""
        if self._journal is None:
            with self._opening:
                if self._journal is None:
                    self._journal = self._start()
        return self._journal

    def begin(self, call: NewCall) -> str:
        """Record that a call is about to be sent, and return its id. Raises if that fails."""
        journal = self.open()
        with self._lock:
            if len(self._begun) >= MAX_WAITING:
                raise self._unavailable(f"{MAX_WAITING:,} calls wait for it")
            row = begin_row(call, self._next_id(), self.owner, self._clock())
            self._append(journal, ["b", *row[: -len(_UNFINISHED)]])
            self._begun[row[0]] = row
            self._wake()
            return row[0]

    def end(self, id: str, end: CallEnd) -> None:
        """Record the outcome of a call; a failing journal is logged only, since the call has happened."""
        journal = self.open()
        with self._lock:
            try:
                self._append(journal, ["e", id, *end])
            except ToolError as error:
                logger.warning("call outcome not journaled, kept in memory: call=%s error=%s", id, error)
            row = self._begun.get(id)
            if row is None:
                self._ended[id] = end
            else:
                row[-len(end) :] = end
            self._wake()

    def claim(self, call: NewCall, key: str) -> str | KeyedCall:
        """Claim a key and return the id of the call, or return the earlier call with the key."""
        self.open()
        found = self._try_claim(call, key)
        if isinstance(found, KeyedCall) and found.state == "sending" and found.owner != self.owner:
            self.take_over()
            found = self._try_claim(call, key)
        return found

    def end_claimed(self, id: str, end: CallEnd, result: bytes | None = None) -> None:
        """Record the outcome and result of a call with a key."""
        with self._opened().write() as connection:
            end_calls(connection, {id: end})
            if end.state == "not_sent":
                # Nothing has happened, so the key is free again.
                connection.execute("UPDATE gateway_calls SET request_key = NULL WHERE id = ?", (id,))
            elif result is not None:
                connection.execute("UPDATE gateway_calls SET result = ? WHERE id = ?", (result, id))

    def recent(self, *, limit: int = 100, server: str | None = None, state: str | None = None) -> list[CallRecord]:
        """Latest calls first, of all processes."""
        return self.find_all(CallFilter(server=server, state=state), limit=limit)

    def find_all(self, wanted: CallFilter, *, limit: int) -> list[CallRecord]:
        """The latest calls that a filter takes, of all processes. Settles the calls of killed processes."""
        return self._read(lambda connection: select_calls(connection, wanted, limit=limit))

    def timings(self, *, since: float, limit: int) -> list[CallTiming]:
        """The latest calls since a time, of all processes, for what only counts them."""
        return self._read(lambda connection: select_timings(connection, since=since, limit=limit))

    def _read(self, select: Callable[[sqlite3.Connection], list[T]]) -> list[T]:
        if self._database is None and not self.path.exists():
            return []
        self.flush()
        self.take_over()
        with self._opened().read() as connection:
            return select(connection)

    def flush(self) -> None:
        """Write the journal to the database."""
        with self._flushing:
            with self._lock:
                begun, ended = self._begun, self._ended
                if not begun and not ended:
                    return
                self._begun, self._ended = {}, {}
                if self._journal is not None and not self._journal.has_unflushed:
                    self._journal.rotate()
            try:
                self._store(begun, ended)
            except BaseException:
                with self._lock:
                    self._restore(begun, ended)
                raise
            with self._lock:
                if self._journal is not None:
                    self._journal.clear_other()

    def take_over(self) -> int:
        """Flush the journals of killed processes; return the number of calls with unknown outcome."""
        with orphaned_journals(self._folder) as orphans:
            if not orphans:
                return 0
            with self._opened().write() as connection:
                return sum(_flush_orphan(connection, *orphan, self._clock()) for orphan in orphans.items())

    def close(self) -> None:
        """Flush and close. Unfinished calls become `sent_unknown`."""
        self._closing.set()
        self._work.set()
        if self._writer is not None:
            self._writer.join()
        if self._journal is not None:
            self._end_journal(self._journal)
            self._journal = None
        if self._database is not None:
            self._database.close()
            self._database = None

    def _end_journal(self, journal: Journal) -> None:
        try:
            self.flush()
            with self._opened().write() as connection:
                lose_calls(connection, self.owner, self._clock())
        except ToolError as error:
            logger.warning("ledger not flushed, left to the next process: %s", error)
            journal.close()
        else:
            journal.remove()

    def _opened(self) -> Database:
        with self._opening:
            if self._database is None:
                self._database = open_database(self.path)
            return self._database

    def _next_id(self) -> str:
        self._number += 1
        return f"{self.owner}-{self._number}"

    def _append(self, journal: Journal, line: list[Any]) -> None:
        try:
            journal.append(to_json(line))
        except OSError as error:
            raise self._unavailable(error) from error

    def _start(self) -> Journal:
        try:
            self._opened()
            self.take_over()
            journal = Journal(self._folder, self.owner)
        except (ConfigurationError, OSError) as error:
            raise self._unavailable(error) from error
        self._writer = threading.Thread(target=self._write, name="trysquare-ledger", daemon=True)
        self._writer.start()
        return journal

    def _unavailable(self, error: Exception | str) -> ToolError:
        return ToolError(
            f"Nothing was sent: the ledger of calls cannot be written ({error}).",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction=f"Ask the user to free disk space or to fix {self.path}, then send the call again.",
            fields={"outcome": "not_sent"},
        )

    def _wake(self) -> None:
        if not self._work.is_set():
            self._work.set()

    def _write(self) -> None:
        while not self._closing.is_set():
            self._work.wait()
            self._closing.wait(GATHER_SECONDS)
            self._work.clear()
            try:
                self.flush()
            except ToolError as error:
                logger.warning("ledger not flushed, retrying: %s", error)
                self._work.set()

    def _store(self, begun: dict[str, list[Any]], ended: dict[str, CallEnd]) -> None:
        with self._opened().write() as connection:
            insert_calls(connection, begun.values())
            end_calls(connection, ended)
            self._until_clearing -= len(begun)
            if self._until_clearing < 0:
                self._until_clearing = _CLEAR_EVERY
                clear_old(connection, keep=self._max_calls, keys_before=self._clock() - RETENTION)

    def _restore(self, begun: dict[str, list[Any]], ended: dict[str, CallEnd]) -> None:
        # Calls may have ended while the database failed.
        for id in [id for id in self._ended if id in begun]:
            begun[id][-len(_UNFINISHED) :] = self._ended.pop(id)
        self._begun = {**begun, **self._begun}
        self._ended = {**ended, **self._ended}

    def _try_claim(self, call: NewCall, key: str) -> str | KeyedCall:
        with self._opened().write() as connection:
            found = find_key(connection, call.principal, call.server, call.tool, key)
            if found is not None:
                return found
            with self._lock:
                id = self._next_id()
            row = begin_row(call, id, self.owner, self._clock())
            insert_calls(connection, [row])
            connection.execute("UPDATE gateway_calls SET request_key = ? WHERE id = ?", (key, id))
            return id


def _flush_orphan(connection: sqlite3.Connection, owner: str, lines: list[bytes], now: float) -> int:
    """Store the journal of a killed process, and mark its unfinished calls as `sent_unknown`."""
    parsed: list[list[Any]] = []
    for raw in lines:
        # A line may be torn.
        with suppress(ValueError):
            line: Any = json.loads(raw)
            if isinstance(line, list) and line:
                parsed.append(cast(list[Any], line))
    insert_calls(connection, [[*line[1:], *_UNFINISHED] for line in parsed if line[0] == "b"])
    end_calls(connection, {line[1]: CallEnd(*line[2:]) for line in parsed if line[0] == "e"})
    return lose_calls(connection, owner, now)

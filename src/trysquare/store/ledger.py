"""The ledger of calls to servers behind the gateway: what was sent, and what is known of its outcome.

| state | what it says |
|---|---|
| `sending` | it is under way: perhaps sent, and not answered yet |
| `not_sent` | nothing of it reached the server |
| `sent_unknown` | it was, or may have been, sent, and nobody knows whether it took effect |
| `done` | the server answered, with a result or an error of its own |

A call stands in the journal before it is sent, and its outcome before it is told. A thread carries the journal into
the database, many calls in one transaction. What a process that was killed left under way becomes `sent_unknown`.
Calls with a request key go to the database at once, so that two processes never run the same key twice.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pydantic_core import to_json

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.store.database import Database, open_database
from trysquare.store.journal import Journal, LeftJournal, left_journals
from trysquare.store.ledger_rows import (
    END_COLUMNS,
    KEPT,
    CallEnd,
    CallRecord,
    KeyedCall,
    NewCall,
    begin_row,
    clear_old,
    end_calls,
    find_key,
    insert_calls,
    lose_calls,
    select_calls,
)

logger = logging.getLogger("trysquare.store")

GATHER_SECONDS = 1.0
"""How long calls are gathered before they are carried into the database together: the more, the less each costs."""
MAX_WAITING = 100_000
"""So many calls may wait for a database that cannot be written; then no more are sent."""
KEPT_CALLS = 100_000
_CLEAR_EVERY = 2_000


class CallLedger:
    """The ledger in one file. Nothing is made on the disk before the first call."""

    def __init__(self, path: Path, *, kept_calls: int = KEPT_CALLS, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.owner = secrets.token_hex(4)
        self._kept_calls = kept_calls
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
        """Make everything ready, once. It takes some milliseconds the first time."""
        if self._journal is None:
            with self._opening:
                if self._journal is None:
                    self._journal = self._start()
        return self._journal

    # The way of an ordinary call: two lines in the journal.

    def begin(self, call: NewCall) -> str:
        """Put down that a call is about to be sent, and return its id. Raises where that cannot be put down."""
        journal = self.open()
        with self._lock:
            self._require_room()
            row = begin_row(call, self._next_id(), self.owner, self._clock())
            self._append(journal, ["b", *row[: -len(END_COLUMNS)]])
            self._begun[row[0]] = row
            self._wake()
            return row[0]

    def end(self, id: str, end: CallEnd) -> None:
        """Put down what became of a call. A journal that cannot be written does not undo what has happened."""
        journal = self.open()
        with self._lock:
            try:
                self._append(journal, ["e", id, *end.columns()])
            except ToolError as error:
                logger.warning("The outcome of call %s waits in memory for the ledger: %s", id, error)
            row = self._begun.get(id)
            if row is None:
                self._ended[id] = end
            else:
                row[-len(END_COLUMNS) :] = end.columns()
            self._wake()

    # The way of a call with a request key: a transaction before and one after.

    def claim(self, call: NewCall, key: str) -> str | KeyedCall:
        """Claim a key for a call and return its id, or return what became of the call that has the key."""
        self.open()
        found = self._claimed(call, key)
        if isinstance(found, KeyedCall) and found.state == "sending" and found.owner != self.owner:
            self.take_over()
            found = self._claimed(call, key)
        return found

    def end_claimed(self, id: str, end: CallEnd, result: bytes | None = None) -> None:
        """Put down what became of a call with a key, and its result, for whoever sends it again."""
        with self._opened().write() as connection:
            end_calls(connection, {id: end})
            if end.state == "not_sent":
                # Nothing has happened: the key is free again.
                connection.execute("UPDATE gateway_calls SET request_key = NULL WHERE id = ?", (id,))
            elif result is not None:
                connection.execute("UPDATE gateway_calls SET result = ? WHERE id = ?", (result, id))

    # For whoever reads it.

    def recent(self, *, limit: int = 100, server: str | None = None, state: str | None = None) -> list[CallRecord]:
        """The latest calls, latest first, of this process and of all others."""
        if self._database is None and not self.path.exists():
            return []
        self.flush()
        self.take_over()
        with self._opened().read() as connection:
            return select_calls(connection, limit=limit, server=server, state=state)

    def flush(self) -> None:
        """Carry what stands in the journal into the database."""
        with self._flushing:
            with self._lock:
                begun, ended = self._begun, self._ended
                if not begun and not ended:
                    return
                self._begun, self._ended = {}, {}
                self._turn()
            try:
                self._carry(begun, ended)
            except BaseException:
                with self._lock:
                    self._put_back(begun, ended)
                raise
            with self._lock:
                if self._journal is not None:
                    self._journal.clear_other()

    def take_over(self) -> int:
        """Settle what processes left behind that were killed; returns how many calls nobody knows the outcome of."""
        with left_journals(self._folder) as left:
            if not left:
                return 0
            with self._opened().write() as connection:
                return sum(_settle(connection, journal, self._clock()) for journal in left)

    def close(self) -> None:
        """Carry everything over and let go. Calls that are still under way count as `sent_unknown`."""
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
            logger.warning("The ledger is left to the next process: %s", error)
            journal.close()
        else:
            journal.remove()

    @property
    def _folder(self) -> Path:
        return self.path.with_name(self.path.name + "-journals")

    def _opened(self) -> Database:
        with self._opening:
            if self._database is None:
                self._database = open_database(self.path)
            return self._database

    def _next_id(self) -> str:
        self._number += 1
        return f"{self.owner}-{self._number}"

    def _require_room(self) -> None:
        if len(self._begun) >= MAX_WAITING:
            raise ToolError(
                "Nothing was sent: the ledger of calls cannot be written, and too many calls wait for it.",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction=f"Tell the person to look at {self.path}.",
                fields={"outcome": "not_sent"},
            )

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

    def _unavailable(self, error: Exception) -> ToolError:
        return ToolError(
            f"Nothing was sent: the ledger of calls cannot be written ({error}).",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction="Tell the person to free disk space or mend the file, then send the call again.",
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
                logger.warning("The ledger's journal waits for its database: %s", error)
                self._work.set()

    def _turn(self) -> None:
        if self._journal is not None and not self._journal.other_holds_lines:
            self._journal.turn()

    def _carry(self, begun: dict[str, list[Any]], ended: dict[str, CallEnd]) -> None:
        with self._opened().write() as connection:
            insert_calls(connection, begun.values())
            end_calls(connection, ended)
            self._until_clearing -= len(begun)
            if self._until_clearing < 0:
                self._until_clearing = _CLEAR_EVERY
                clear_old(connection, kept=self._kept_calls, keys_before=self._clock() - KEPT)

    def _put_back(self, begun: dict[str, list[Any]], ended: dict[str, CallEnd]) -> None:
        # What ended while the database refused belongs to its call.
        for id in [id for id in self._ended if id in begun]:
            begun[id][-len(END_COLUMNS) :] = self._ended.pop(id).columns()
        self._begun = {**begun, **self._begun}
        self._ended = {**ended, **self._ended}

    def _claimed(self, call: NewCall, key: str) -> str | KeyedCall:
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


def _settle(connection: sqlite3.Connection, journal: LeftJournal, now: float) -> int:
    """Carry over what a killed process wrote down, and mark the rest of its calls as lost."""
    parsed = [line for raw in journal.lines if (line := _parsed(raw)) is not None]
    begun = [[*line[1:], None, "sending", None, None, None, None] for line in parsed if line[0] == "b"]
    insert_calls(connection, begun)
    end_calls(connection, {line[1]: CallEnd.from_columns(line[2:]) for line in parsed if line[0] == "e"})
    return lose_calls(connection, journal.owner, now)


def _parsed(raw: bytes) -> list[Any] | None:
    with suppress(ValueError):
        line: Any = json.loads(raw)
        if isinstance(line, list) and line:
            return cast(list[Any], line)
    return None

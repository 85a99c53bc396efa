"""LazyDatabase: reading leaves no trace, the first write makes the file, and what another process made is seen."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from trysquare import ToolError
from trysquare.store import LazyDatabase
from trysquare.store.content import StoredFlags


def test_reading_finds_empty_tables_and_makes_nothing(tmp_path: Path) -> None:
    database = LazyDatabase(tmp_path / "state" / "state.db")
    assert StoredFlags(database, "feature").all() == {}
    database.close()
    assert list(tmp_path.iterdir()) == []


def test_the_empty_tables_cannot_be_written(tmp_path: Path) -> None:
    database = LazyDatabase(tmp_path / "state.db")
    with database.read() as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("INSERT INTO flags VALUES ('a', 'b', 'c', 'd', 'e')")


def test_the_first_write_makes_the_file_and_closing_lets_it_go(tmp_path: Path) -> None:
    database = LazyDatabase(tmp_path / "state.db")
    flags = StoredFlags(database, "feature")
    flags.set("workflow", True, by="ada")
    assert flags.all() == {"workflow": True}
    database.close()
    assert flags.all() == {"workflow": True}, "it is opened again when it is needed"
    database.close()


def test_what_another_one_wrote_meanwhile_is_seen(tmp_path: Path) -> None:
    mine, other = LazyDatabase(tmp_path / "state.db"), LazyDatabase(tmp_path / "state.db")
    assert StoredFlags(mine, "feature").all() == {}
    StoredFlags(other, "feature").set("workflow", "on", by="bob")
    assert StoredFlags(mine, "feature").all().get("workflow") == "on"
    mine.close()
    other.close()


def test_many_threads_read_the_empty_tables_at_once(tmp_path: Path) -> None:
    database = LazyDatabase(tmp_path / "state.db")
    found: list[object] = []

    def read() -> None:
        found.extend(StoredFlags(database, "feature").all() or ["none"] for _ in range(50))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["none"]] * 400


def test_a_file_that_cannot_be_made_fails_the_call_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    database = LazyDatabase(tmp_path / "file" / "state.db")
    with pytest.raises(ToolError, match="state file") as raised:
        StoredFlags(database, "feature").set("workflow", True, by="ada")
    assert raised.value.code == "STATE_UNAVAILABLE"

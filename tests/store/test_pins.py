"""Records of servers behind the gateway: read and written whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trysquare import ToolError
from trysquare.store import LazyDatabase
from trysquare.store.pins import ServerRecord, StoredDefinitions

RECORD = ServerRecord(tools=[{"name": "echo"}], held=[{"tool": "x"}], gone=[{"name": "y"}], offers={"prompts": []})


@pytest.fixture
def stored(tmp_path: Path) -> StoredDefinitions:
    return StoredDefinitions(LazyDatabase(tmp_path / "state.db"))


def test_a_server_that_nobody_has_seen_has_an_empty_record(stored: StoredDefinitions) -> None:
    assert stored.find("mcp.json", "files") == ServerRecord()
    assert stored.changes() == 0


def test_a_record_comes_back_as_it_was(stored: StoredDefinitions) -> None:
    assert stored.change("mcp.json", "files", lambda record: RECORD) == RECORD
    assert stored.find("mcp.json", "files") == RECORD
    assert stored.find("other.json", "files") == ServerRecord()


def test_changes_are_counted_and_what_stays_the_same_is_none(stored: StoredDefinitions) -> None:
    stored.change("mcp.json", "files", lambda record: RECORD)
    stored.change("mcp.json", "files", lambda record: record)
    assert stored.changes() == 1
    stored.change("mcp.json", "files", lambda record: replace(record, held=[]))
    assert stored.changes() == 2
    stored.forget("mcp.json", "files")
    assert stored.changes() == 3
    assert stored.find("mcp.json", "files") == ServerRecord()


def test_a_change_that_fails_leaves_the_record_as_it_was(stored: StoredDefinitions) -> None:
    stored.change("mcp.json", "files", lambda record: RECORD)

    def fail(record: ServerRecord) -> ServerRecord:
        raise ToolError("no")

    with pytest.raises(ToolError):
        stored.change("mcp.json", "files", fail)
    assert stored.find("mcp.json", "files") == RECORD

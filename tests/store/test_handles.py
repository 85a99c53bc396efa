"""Handles in the state file: shared by processes, owned by one principal, ended by time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import raises_code
from trysquare import CallContext, ErrorCode, tool
from trysquare.core.cache import Handles, KeepLimits, MemoryHandles, TooLargeToKeep
from trysquare.middleware.pagination import page_reader, paginate_results
from trysquare.store import Database
from trysquare.store.database import open_database
from trysquare.store.handles import StoredHandles


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path / "s" / "state.db")) as opened:
        yield opened


@pytest.fixture
def handles(database: Database) -> Handles:
    return StoredHandles(database)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_value_comes_back_as_it_was(handles: Handles, value: Any) -> None:
    assert handles.get(handles.put(value, principal="ada"), principal="ada") == value


def test_another_process_finds_it(handles: Handles, database: Database) -> None:
    handle = handles.put([1], principal="ada")
    with closing(open_database(database.path)) as other:
        assert StoredHandles(other).get(handle, principal="ada") == [1]


@pytest.mark.parametrize("principal", ["eve", "", "ADA"])
def test_somebody_elses_handle_does_not_exist(handles: Handles, principal: str) -> None:
    handle = handles.put([1], principal="ada")
    with raises_code(ErrorCode.HANDLE_NOT_FOUND) as raised:
        handles.get(handle, principal=principal)
    assert raised.value.code == ErrorCode.HANDLE_NOT_FOUND


def test_a_handle_ends_with_its_time_and_is_swept(database: Database) -> None:
    now = [0.0]
    handles = StoredHandles(database, clock=lambda: now[0])
    handle = handles.put([1], principal="ada", ttl=10.0)
    now[0] = 10.0
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        handles.get(handle, principal="ada")
    handles.put([2], principal="ada")
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM handles").fetchone() == (1,)


def test_a_dropped_handle_is_gone(handles: Handles) -> None:
    handle = handles.put([1], principal="ada")
    handles.drop(handle)
    handles.drop(handle)
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        handles.get(handle, principal="ada")


async def test_a_page_can_be_read_through_another_process(handles: Handles, database: Database) -> None:
    async def look() -> str:
        return "x" * 5000

    made = paginate_results(tool(look, result_limit=400))
    first = await made.call({}, CallContext(handles=handles))
    with closing(open_database(database.path)) as other:
        context = CallContext(handles=StoredHandles(other))
        second = await page_reader().call((first.next or {})["arguments"], context)
    assert second.to_json()["page"]["number"] == 2


def test_the_bytes_on_disk_are_bounded_for_each_caller_and_in_all(database: Database) -> None:
    handles = StoredHandles(database, limits=KeepLimits(total=1_000_000, per_caller=400_000))
    other = handles.put("y" * 10_000, principal="bob")
    own = [handles.put("x" * 100_000, principal="ada") for _ in range(40)]
    assert handles.get(own[-1], principal="ada") == "x" * 100_000
    assert handles.get(other, principal="bob") == "y" * 10_000
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        handles.get(own[0], principal="ada")
    assert kept_bytes(database) <= 410_100
    for number in range(40):
        handles.put("x" * 100_000, principal=f"caller {number}")
    assert kept_bytes(database) <= 1_000_000
    with pytest.raises(TooLargeToKeep):
        handles.put("x" * 500_000, principal="ada")


def test_the_file_does_not_grow_with_what_is_dropped_and_shrinks_when_all_has_expired(database: Database) -> None:
    now = [0.0]
    limits = KeepLimits(total=2_000_000, per_caller=2_000_000)
    handles = StoredHandles(database, limits=limits, clock=lambda: now[0])
    for _ in range(60):
        handles.put("x" * 200_000, principal="ada", ttl=60)
    with database.read() as connection:
        [pages] = connection.execute("PRAGMA page_count").fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    assert pages * size < 4_000_000
    now[0] += 61
    assert handles.sweep() is None
    with database.read() as connection:
        assert connection.execute("PRAGMA page_count").fetchone()[0] < pages / 4


def test_reading_drops_what_has_expired(database: Database) -> None:
    now = [0.0]
    handles = StoredHandles(database, clock=lambda: now[0])
    handles.put("x" * 1_000, principal="ada", ttl=60)
    now[0] += 61
    with raises_code(ErrorCode.HANDLE_NOT_FOUND):
        handles.get("unknown", principal="ada")
    assert kept_bytes(database) == 0


def kept_bytes(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute("SELECT coalesce(sum(length(value)), 0) FROM handles").fetchone()[0])


async def test_an_answer_that_is_too_large_to_keep_says_so() -> None:
    async def much() -> str:
        return "line\n" * 10_000

    context = CallContext(handles=MemoryHandles(limits=KeepLimits(total=20_000, per_caller=20_000)))
    made = paginate_results(tool(much, result_limit=1_000))
    envelope = (await made.call({}, context)).to_json()
    assert envelope["success"]
    assert len(envelope["value"]) < 1_000
    assert envelope["page"]["total"]["characters"] == 50_000
    assert "cursor" not in envelope["page"]
    assert "next" not in envelope
    assert envelope["warnings"]


async def test_a_dropped_page_is_an_error_that_says_what_to_do() -> None:
    def much(text: str) -> str:
        return text * 10_000

    context = CallContext(handles=MemoryHandles(limits=KeepLimits(total=90_000, per_caller=90_000)))
    made = paginate_results(tool(much, result_limit=1_000))
    first = (await made.call({"text": "abcde"}, context)).to_json()
    await made.call({"text": "fghij"}, context)
    with raises_code(ErrorCode.HANDLE_NOT_FOUND) as gone:
        await page_reader().call(first["next"]["arguments"], context)
    assert gone.value.code is ErrorCode.HANDLE_NOT_FOUND
    assert gone.value.instruction

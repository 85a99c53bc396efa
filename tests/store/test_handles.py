"""Handles in the state file: shared by processes, owned by one principal, ended by time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trysquare import CallContext, ErrorCode, tool
from trysquare.core.errors import NotFound
from trysquare.core.handles import Handles
from trysquare.store.database import Database, open_database
from trysquare.store.handles import StoredHandles
from trysquare.testing import call
from trysquare.wrappers.limited import limited


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
    with pytest.raises(NotFound) as refused:
        handles.get(handle, principal=principal)
    assert refused.value.code == ErrorCode.HANDLE_NOT_FOUND


def test_a_handle_ends_with_its_time_and_is_swept(database: Database) -> None:
    now = [0.0]
    handles = StoredHandles(database, clock=lambda: now[0])
    handle = handles.put([1], principal="ada", ttl=10.0)
    now[0] = 10.0
    with pytest.raises(NotFound):
        handles.get(handle, principal="ada")
    handles.put([2], principal="ada")
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM handles").fetchone() == (1,)


def test_a_dropped_handle_is_gone(handles: Handles) -> None:
    handle = handles.put([1], principal="ada")
    handles.drop(handle)
    handles.drop(handle)
    with pytest.raises(NotFound):
        handles.get(handle, principal="ada")


async def test_a_page_can_be_read_through_another_process(handles: Handles, database: Database) -> None:
    async def look() -> str:
        return "x" * 5000

    made = limited(tool(look, result_limit=400))
    first = await call(made, "look", context=CallContext(handles=handles))
    with closing(open_database(database.path)) as other:
        context = CallContext(handles=StoredHandles(other))
        second = await call(made, "look", cursor=first.fields["page"]["cursor"], context=context)
    assert second.fields["page"]["number"] == 2

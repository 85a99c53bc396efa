"""Flags: set, read and removed in a scope of their own, whole and at once."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trysquare.store import LazyDatabase
from trysquare.store.content import FlagValue, StoredFlags

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5),
)


@pytest.fixture
def database(tmp_path: Path) -> Generator[LazyDatabase]:
    opened = LazyDatabase(tmp_path / ".trysquare" / "state.db")
    yield opened
    opened.close()


def test_a_flag_that_nobody_set_is_none_and_reading_it_leaves_no_file(database: LazyDatabase) -> None:
    flags = StoredFlags(database, "project:team")
    assert flags.all().get("style") is None
    assert flags.all() == {}
    assert not database.path.exists()


def test_set_returns_the_value_before_and_none_removes(database: LazyDatabase) -> None:
    flags = StoredFlags(database, "project:team")
    assert flags.set("style", "plain", by="ada") is None
    assert flags.set("style", "full", by="ada") == "plain"
    assert flags.all().get("style") == "full"
    assert flags.set("style", None, by="ada") == "full"
    assert flags.set("style", None, by="ada") is None
    assert flags.all() == {}


def test_scopes_do_not_see_one_another(database: LazyDatabase) -> None:
    team, feature = StoredFlags(database, "project:team"), StoredFlags(database, "feature")
    team.set("style", "plain", by="ada")
    feature.set("style", "full", by="ada")
    feature.set("style", None, by="ada")
    assert (team.all().get("style"), feature.all().get("style")) == ("plain", None)


def test_all_flags_come_in_order_of_their_names(database: LazyDatabase) -> None:
    flags = StoredFlags(database, "feature")
    for name in ("b", "a", "c"):
        flags.set(name, True, by="ada")
    assert list(flags.all()) == ["a", "b", "c"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(value=VALUES)
def test_every_value_comes_back_as_it_went_in(database: LazyDatabase, value: FlagValue) -> None:
    flags = StoredFlags(database, "feature")
    flags.set("any", value, by="ada")
    kept = flags.all().get("any")
    assert (kept, type(kept)) == (value, type(value))


def test_who_set_a_flag_and_when_is_kept(database: LazyDatabase) -> None:
    StoredFlags(database, "feature").set("style", "plain", by="ada")
    with database.read() as connection:
        [(by, updated)] = connection.execute("SELECT by, updated FROM flags").fetchall()
    assert by == "ada"
    assert updated.endswith("+00:00")


def test_threads_that_set_flags_at_once_lose_none(database: LazyDatabase) -> None:
    def work(name: str) -> None:
        for number in range(10):
            StoredFlags(database, "feature").set(f"{name}-{number}", number, by=name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(StoredFlags(database, "feature").all()) == 40

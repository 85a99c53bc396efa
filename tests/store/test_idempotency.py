"""Request keys: a repeated call gets the first answer, and nothing runs twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.keys import Keys
from trysquare import ErrorCode, ToolError
from trysquare.store import Database
from trysquare.store.database import open_database
from trysquare.store.idempotency import LEASE, RETENTION, Claim, RecordedAnswer


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path / "s" / "state.db")) as opened:
        yield opened


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(database)


def test_the_first_call_runs_and_a_repetition_gets_its_answer(keys: Keys) -> None:
    keys.finish(keys.claimed(), {"success": True, "value": "é"})
    assert keys.use() == RecordedAnswer(result={"success": True, "value": "é"})


@pytest.mark.parametrize("finished", [True, False])
def test_the_same_key_with_other_arguments_is_a_conflict(keys: Keys, finished: bool) -> None:
    claimed = keys.claimed()
    if finished:
        keys.finish(claimed, {})
    with pytest.raises(ToolError, match="with other arguments") as refused:
        keys.use(digest="other")
    assert refused.value.code == ErrorCode.STATE_CONFLICT


def test_a_key_belongs_to_one_principal_and_one_tool(keys: Keys) -> None:
    keys.finish(keys.claimed(), {"mine": True})
    assert isinstance(keys.use(principal="bob", digest="x"), Claim)
    assert isinstance(keys.use(tool="open", digest="x"), Claim)


def test_a_call_that_still_runs_is_not_run_again(keys: Keys) -> None:
    keys.claimed()
    with pytest.raises(ToolError, match="still running") as refused:
        keys.use()
    assert refused.value.code == ErrorCode.STATE_CONFLICT


def test_a_call_that_was_interrupted_is_never_simply_run_again(keys: Keys) -> None:
    keys.claimed()
    for after in (LEASE + 1, RETENTION * 10):
        keys.now = after
        with pytest.raises(ToolError, match="may or may not have taken effect"):
            keys.use()


def test_a_call_that_changed_nothing_gives_its_key_back(keys: Keys) -> None:
    keys.release(keys.claimed())
    assert isinstance(keys.use(digest="other"), Claim)


def test_an_answer_cannot_be_taken_back_or_written_twice(keys: Keys) -> None:
    claimed = keys.claimed()
    keys.finish(claimed, {"n": 1})
    keys.release(claimed)
    with pytest.raises(ToolError, match="`k`"):
        keys.finish(claimed, {"n": 2})
    assert keys.use() == RecordedAnswer(result={"n": 1})


def test_an_answer_is_forgotten_after_its_time(keys: Keys) -> None:
    keys.finish(keys.claimed(), {})
    keys.now = RETENTION + 1
    assert isinstance(keys.use(digest="new"), Claim)


def test_of_many_callers_at_once_one_gets_the_key(database: Database) -> None:
    got: list[Claim | RecordedAnswer | ToolError] = []

    def use() -> None:
        try:
            got.append(Keys(database).use())
        except ToolError as error:
            got.append(error)

    threads = [threading.Thread(target=use) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, Claim) for one in got) == 1
    assert sum(isinstance(one, ToolError) for one in got) == 15

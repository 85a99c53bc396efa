"""Request keys: a repeated call gets the first answer, and nothing runs twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from trysquare import ErrorCode, ToolError
from trysquare.store.database import Database, open_database
from trysquare.store.idempotency import KEPT, LEASE, Claim, EarlierAnswer, IdempotencyKeys


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path / "s" / "state.db")) as opened:
        yield opened


class Keys(IdempotencyKeys):
    def __init__(self, database: Database) -> None:
        self.now = 0.0
        super().__init__(database, clock=lambda: self.now)

    def use(
        self, key: str = "k", *, tool: str = "close", principal: str = "ada", digest: str = "d"
    ) -> Claim | EarlierAnswer:
        return self.claim(key, tool=tool, principal=principal, digest=digest)

    def claimed(self, key: str = "k") -> Claim:
        got = self.use(key)
        assert isinstance(got, Claim)
        return got


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(database)


def test_the_first_call_runs_and_a_repetition_gets_its_answer(keys: Keys) -> None:
    keys.finish(keys.claimed(), {"success": True, "value": "é"})
    assert keys.use() == EarlierAnswer(result={"success": True, "value": "é"})


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
    for after in (LEASE + 1, KEPT * 10):
        keys.now = after
        with pytest.raises(ToolError, match="nobody knows whether it took effect"):
            keys.use()


def test_a_call_that_changed_nothing_gives_its_key_back(keys: Keys) -> None:
    keys.release(keys.claimed())
    assert isinstance(keys.use(digest="other"), Claim)


def test_an_answer_cannot_be_taken_back_or_written_twice(keys: Keys) -> None:
    claimed = keys.claimed()
    keys.finish(claimed, {"n": 1})
    keys.release(claimed)
    with pytest.raises(ToolError, match="claim on request key `k` is gone"):
        keys.finish(claimed, {"n": 2})
    assert keys.use() == EarlierAnswer(result={"n": 1})


def test_an_answer_is_forgotten_after_its_time(keys: Keys) -> None:
    keys.finish(keys.claimed(), {})
    keys.now = KEPT + 1
    assert isinstance(keys.use(digest="new"), Claim)


def test_of_many_callers_at_once_one_gets_the_key(database: Database) -> None:
    got: list[Claim | EarlierAnswer | ToolError] = []

    def use() -> None:
        try:
            got.append(IdempotencyKeys(database).claim("k", tool="t", principal="p", digest="d"))
        except ToolError as error:
            got.append(error)

    threads = [threading.Thread(target=use) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, Claim) for one in got) == 1
    assert sum(isinstance(one, ToolError) for one in got) == 15

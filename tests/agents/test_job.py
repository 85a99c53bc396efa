"""An agent's run as a job, killed at all that it does: the model is not paid twice, and nothing happens twice."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.jobs.agent_run import ASKS, DOINGS
from tests.jobs.nest import Hatchery, open_hatchery
from tests.support import size
from trysquare.jobs import open_reader

POINTS = ("within", "before")
ROUNDS = size(1, 6)


@pytest.fixture(scope="module")
def hatchery() -> Generator[Hatchery]:
    with open_hatchery() as opened:
        yield opened


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("half", [0, 1])
async def test_a_run_that_is_killed_at_all_that_it_does_ends_as_if_it_had_not_been(
    half: int, number: int, hatchery: Hatchery, tmp_path: Path
) -> None:
    nest = hatchery.nest(tmp_path)
    kills = {doing: POINTS[(place + number) % 2] for place, doing in enumerate(DOINGS[half::2])}
    answers: dict[str, str] = {}
    for place, (doing, point) in enumerate(kills.items()):
        assert nest.live("job", agent=True, kill=[doing, point], resume=place > 0, answers=answers) == -9, doing
        answers = {ASKS[doing]: "again" if point == "before" else "skip"} if doing in ASKS else {}
    assert nest.live("job", agent=True, resume=True, answers=answers) == 0
    async with open_reader(nest.url) as reader:
        ended = await reader.status("job")
    assert ended.state == "done"
    assert ended.result is not None
    assert (ended.result["status"], ended.result["summary"]) == ("finished", "Done.")

    ran = Counter(line.removeprefix("ran ") for line in nest.effects())
    for doing in DOINGS:
        # What was done and not recorded is done again, but not what may not be: the person had it skipped.
        again = kills.get(doing) == "within" and doing not in ASKS
        # Two looks run at the same time, so that each may be in flight when the other one kills.
        assert ran[doing] in ((1, 2, 3) if doing in ("look a", "look b") else (2 if again else 1,)), (doing, kills)
    with sqlite3.connect(tmp_path / "ledger.db") as ledger:
        happened = ledger.execute("SELECT key, name FROM happened ORDER BY key").fetchall()
    assert happened == [("job/call 2.1 pay", "pay 1"), ("job/call 4.1 pay", "pay 2")]

"""kill -9 at every step of a job: it goes on where it was, and nothing that counts happens twice."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.jobs.nest import STEPS, Hatchery, Nest, open_hatchery
from tests.jobs.worker import step_name
from tests.support import size
from trysquare.jobs import open_reader

POINTS = ("within", "before", "after")
JOBS = size(2, 20)
"""Each is killed once in every step."""


@pytest.fixture(scope="module")
def hatchery() -> Generator[Hatchery]:
    with open_hatchery() as opened:
        yield opened


def _kills(job: int) -> list[tuple[str, str]]:
    """One kill in every step, at a point that moves on from job to job."""
    return [(step_name(number), POINTS[(number + job) % len(POINTS)]) for number in range(STEPS)]


def _run_through(nest: Nest, job: str, kills: list[tuple[str, str]]) -> None:
    resume, answers = False, {}
    for name, point in kills:
        assert nest.live(job, kill=[name, point], resume=resume, answers=answers) == -9
        in_flight = name.endswith("unknown") and point != "after"
        resume, answers = True, {name: "skip"} if in_flight else {}
    assert nest.live(job, resume=True, answers=answers) == 0


@pytest.mark.parametrize("number", range(JOBS))
async def test_a_job_that_is_killed_in_every_step_goes_on_each_time_and_repeats_nothing_that_was_recorded(
    number: int, hatchery: Hatchery, tmp_path: Path
) -> None:
    kills = _kills(number)
    nest = hatchery.nest(tmp_path)
    _run_through(nest, "job", kills)
    async with open_reader(nest.url) as reader:
        ended = await reader.status("job")
        recorded = [each.name for each in await reader.steps("job")]
    assert ended.state == "done"
    assert recorded == [step_name(number) for number in range(STEPS)]

    ran = Counter(line.removeprefix("ran ") for line in nest.effects())
    for name, point in kills:
        # A step that was killed between its effect and its record runs once more, unless nobody knows of its effect.
        again = point == "within" and not name.endswith("unknown")
        never = point == "before" and name.endswith("unknown")
        assert ran[name] == (0 if never else 2 if again else 1), (name, point)


async def test_the_effect_of_a_call_with_a_key_happens_once_although_it_was_sent_twice(
    hatchery: Hatchery, tmp_path: Path
) -> None:
    name = step_name(2)
    nest = hatchery.nest(tmp_path)
    assert nest.live("job", steps=4, kill=[name, "within"]) == -9
    assert nest.live("job", steps=4, resume=True) == 0
    assert nest.effects().count(f"ran {name}") == 2
    with sqlite3.connect(tmp_path / "ledger.db") as ledger:
        happened = ledger.execute("SELECT key FROM happened WHERE name = ?", (name,)).fetchall()
    assert happened == [(f"job/{name}",)]


async def test_a_call_in_flight_without_a_key_is_sent_again_only_if_the_user_agrees(
    hatchery: Hatchery,
    tmp_path: Path,
) -> None:
    name = step_name(3)
    nest = hatchery.nest(tmp_path)
    assert nest.live("job", steps=4, kill=[name, "within"]) == -9
    assert nest.live("job", steps=4, resume=True, until="asks") == 0
    async with open_reader(nest.url) as reader:
        found = await reader.status("job")
        assert found.state == "interrupted"
        assert found.question is not None
        assert found.question.name == name
        assert "sent_unknown" in found.question.text
        assert found.question.choices == ("again", "skip")
    assert nest.effects().count(f"ran {name}") == 1

    assert nest.live("job", steps=4, resume=True, answers={name: "again"}) == 0
    assert nest.effects().count(f"ran {name}") == 2


async def test_an_answer_to_send_again_counts_for_one_sending_only(hatchery: Hatchery, tmp_path: Path) -> None:
    name = step_name(3)
    nest = hatchery.nest(tmp_path)
    assert nest.live("job", steps=4, kill=[name, "within"]) == -9
    assert nest.live("job", steps=4, resume=True, answers={name: "again"}, kill=[name, "within"]) == -9
    assert nest.live("job", steps=4, resume=True, until="asks") == 0
    assert nest.effects().count(f"ran {name}") == 2


async def test_the_model_reads_that_the_outcome_of_an_unsent_retry_is_unknown(
    hatchery: Hatchery,
    tmp_path: Path,
) -> None:
    name = step_name(3)
    nest = hatchery.nest(tmp_path)
    assert nest.live("job", steps=4, kill=[name, "before"]) == -9
    assert nest.live("job", steps=4, resume=True, answers={name: "skip"}) == 0
    async with open_reader(nest.url) as reader:
        result = (await reader.status("job")).result
    assert result is not None
    assert result["seen"][:3] == [0, 1, 2]
    assert result["seen"][3].startswith(f"sent_unknown: `{name}`")

"""Agents as jobs of a server: they belong to the person who started them, and outlive the server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from trysquare import ConfigurationError, ErrorCode, ToolError
from trysquare.agents import AgentRequest
from trysquare.agents import jobs as durable_runs
from trysquare.agents.jobs import DurableJobs
from trysquare.agents.journal import Journal, RunAgent, agent_bodies
from trysquare.core.errors import NotFound
from trysquare.core.json import JsonObject
from trysquare.jobs import RunEngine, jobs_file, open_engine
from trysquare.jobs.engine import Liveness

REQUEST = AgentRequest(agent="builder", task="Make it pass.")


def opening(folder: Path, run: RunAgent) -> Callable[[], AbstractAsyncContextManager[RunEngine]]:
    pulse = Liveness(every=0.1, silence=1.0)
    return lambda: open_engine(jobs_file(folder), agent_bodies(run), adopting=True, pulse=pulse)


async def works(argument: JsonObject, journal: Journal) -> JsonObject:
    async def answer() -> JsonObject:
        return {"text": argument["task"]}

    await journal.step("answer 1", answer)
    await journal.report(1, 40, "file read a.txt: ok")
    return {"status": "finished", "summary": "Done."}


@asynccontextmanager
async def opened_runs(folder: Path, run: RunAgent) -> AsyncGenerator[DurableJobs]:
    runs = DurableJobs(opening(folder, run))
    try:
        yield runs
    finally:
        await runs.close()


async def test_a_run_is_started_and_waited_for(tmp_path: Path) -> None:
    async with opened_runs(tmp_path, works) as runs:
        begun = await runs.start(REQUEST, principal="ada")
        assert begun.agent == "builder"
        with anyio.fail_after(30):
            ended = await runs.wait(begun.job, principal="ada", known=40)
    assert (ended.state, ended.done, ended.total) == ("done", 1, 40)
    assert ended.outcome == {"status": "finished", "summary": "Done."}


async def test_nothing_is_opened_before_the_first_run(tmp_path: Path) -> None:
    async with opened_runs(tmp_path / "not there", works):
        pass
    async with opened_runs(tmp_path / "not there", works) as runs:
        with pytest.raises(ConfigurationError, match="No such file or directory"):
            await runs.start(REQUEST, principal="ada")


async def test_a_run_is_visible_only_to_the_user_who_started_it(tmp_path: Path) -> None:
    async with opened_runs(tmp_path, works) as runs:
        job = (await runs.start(REQUEST, principal="ada")).job
        for other in (
            runs.status(job, principal="eve"),
            runs.cancel(job, principal="eve"),
            runs.status(job[:6], principal="ada"),
        ):
            with pytest.raises(NotFound, match="job"):
                await other


async def test_a_crash_is_reported_by_an_incident_and_not_by_its_message(tmp_path: Path) -> None:
    async def crashes(argument: JsonObject, journal: Journal) -> JsonObject:
        async def answer() -> JsonObject:
            raise RuntimeError("the password is 1234")

        return await journal.step("answer 1", answer)

    async with opened_runs(tmp_path, crashes) as runs:
        job = (await runs.start(REQUEST, principal="ada")).job
        with anyio.fail_after(30):
            ended = await runs.wait(job, principal="ada", known=40)
    assert (ended.state, ended.code) == ("failed", ErrorCode.TOOL_FAILED)
    assert ended.error is not None
    assert "incident" in ended.error
    assert "password" not in ended.error


async def test_a_wrong_setting_is_reported_with_its_message(tmp_path: Path) -> None:
    async def cannot(argument: JsonObject, journal: Journal) -> JsonObject:
        raise ConfigurationError("no model is configured.", where="--model")

    async with opened_runs(tmp_path, cannot) as runs:
        job = (await runs.start(REQUEST, principal="ada")).job
        with anyio.fail_after(30):
            ended = await runs.wait(job, principal="ada", known=40)
    assert ended.error is not None
    assert ended.error.startswith("--model: no model is configured.")


async def test_a_run_is_cancelled(tmp_path: Path) -> None:
    async def endless(argument: JsonObject, journal: Journal) -> JsonObject:
        await anyio.sleep_forever()
        return {}

    async with opened_runs(tmp_path, endless) as runs:
        job = (await runs.start(REQUEST, principal="ada")).job
        assert (await runs.cancel(job, principal="ada")).state == "cancelled"
        assert (await runs.cancel(job, principal="ada")).state == "cancelled"


async def test_more_runs_than_a_server_takes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_runs, "MAX_RUNS", 1)

    async def endless(argument: JsonObject, journal: Journal) -> JsonObject:
        await anyio.sleep_forever()
        return {}

    async with opened_runs(tmp_path, endless) as runs:
        job = (await runs.start(REQUEST, principal="ada")).job
        with pytest.raises(ToolError, match="limit 1"):
            await runs.start(REQUEST, principal="ada")
        await runs.cancel(job, principal="ada")
        await runs.start(REQUEST, principal="ada")


async def test_the_next_server_takes_up_what_the_last_one_left(tmp_path: Path) -> None:
    started = anyio.Event()

    async def stays(argument: JsonObject, journal: Journal) -> JsonObject:
        started.set()
        await anyio.sleep_forever()
        return {}

    async with opened_runs(tmp_path, stays) as runs:
        job = (await runs.start(REQUEST, principal="ada")).job
        await started.wait()
    async with opened_runs(tmp_path, works) as runs:
        with anyio.fail_after(30):
            ended = await runs.wait(job, principal="ada", known=40)
    assert ended.state == "done"

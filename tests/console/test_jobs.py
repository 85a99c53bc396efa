"""The jobs of agents: their steps in time, and a question that the page answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.console.conftest import serving
from trysquare.core.json import JsonObject
from trysquare.jobs import JobRun, jobs_file, open_engine
from trysquare.store.location import prepare_folder

pytest.importorskip("dbos")


async def body(argument: JsonObject, run: JobRun) -> JsonObject:
    async def think() -> JsonObject:
        return {"value": {"text": "<b>done</b>", "calls": [{"name": "read", "arguments": {"path": "x"}}]}}

    await run.step("model 1", think)
    choice = await run.ask("call 1", "Send it again?", ("again", "skip"))
    return {"summary": f"chose {choice}"}


async def test_a_job_is_watched_and_its_question_answered(project: Path) -> None:
    prepare_folder(project / ".trysquare")
    async with open_engine(jobs_file(project / ".trysquare"), {"test": body}) as engine:
        job = await engine.start("test", {}, title="Tidy <i>up</i>")
        async with serving(project) as site, site.browser() as browser, browser.watching() as changed:
            [question] = await browser.questions(changed)
            page = await browser.get(f"/jobs/{job}")
            assert "&lt;b&gt;done&lt;/b&gt;" in page
            assert "Tidy &lt;i&gt;up" in page
            assert 'data-testid="job-state">asks' in page
            await browser.decide(question, "skip")
            async with asyncio.timeout(60):
                done = await engine.wait(job)
            assert done.result == {"summary": "chose skip"}
            assert "chose skip" in await browser.get(f"/jobs/{job}", part=True)
            assert job in await browser.get("/jobs")

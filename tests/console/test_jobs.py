"""The jobs of agents: their steps in time, and a question that the page answers."""

from __future__ import annotations

import asyncio
import html
import json
import re
from pathlib import Path

import pytest

from tests.agents.scripted import call
from tests.agents.test_serving import project as agent_project
from tests.console.conftest import serving
from trysquare import ToolError
from trysquare.agents import AgentRequest
from trysquare.agents.journal import Journal, agent_bodies
from trysquare.core.json import JsonObject
from trysquare.jobs import JobRun, jobs_file, open_engine
from trysquare.store.location import prepare_folder

pytest.importorskip("dbos")


async def body(argument: JsonObject, run: JobRun) -> JsonObject:
    async def think() -> JsonObject:
        return {"value": {"text": "<b>done</b>", "calls": [{"name": "read", "arguments": {"path": "x"}}]}}

    await run.step("model 1", think)
    choice = await run.ask("call 1", "Send it again?", ("again", "skip"), default="skip", timeout=3600)
    return {"summary": f"chose {choice}"}


async def end(argument: JsonObject, run: JobRun) -> JsonObject:
    return {"summary": "over"}


async def test_a_job_is_watched_and_its_question_answered(project: Path) -> None:
    prepare_folder(project / ".trysquare")
    async with open_engine(jobs_file(project / ".trysquare"), {"test": body, "ends": end}) as engine:
        job = await engine.start("test", {}, title="Tidy <i>up</i>")
        async with serving(project) as site, site.browser() as browser, browser.watching() as changed:
            [question] = await browser.questions(changed)
            for _ in range(2):
                await engine.wait(await engine.start("ends", {}, title="Ends"))
            assert job not in [each.job for each in await engine.list(limit=2)]
            assert [each.job for each in await engine.asking()] == [job]
            page = await browser.get(f"/jobs/{job}")
            assert "&lt;b&gt;done&lt;/b&gt;" in page
            assert "Tidy &lt;i&gt;up" in page
            assert 'data-testid="job-state">asks' in page
            assert re.search(r'ends unanswered in <time.*data-testid="default">Skip<', await browser.get("/"))
            await browser.decide(question, "skip")
            async with asyncio.timeout(60):
                done = await engine.wait(job)
            assert done.result == {"summary": "chose skip"}
            assert "chose skip" in await browser.get(f"/jobs/{job}", part=True)
            assert job in await browser.get("/jobs")


async def fails(argument: JsonObject, journal: Journal) -> JsonObject:
    async def answer() -> JsonObject:
        calls = [{"name": "read", "arguments": {"path": "a"}}, {"name": "read", "arguments": {"path": "<b>"}}]
        return {"answer": {"text": "", "calls": calls, "usage": {"prompt_tokens": 70, "cost": 0.25}}}

    async def read(key: str) -> JsonObject:
        return {"text": f"read with {key}"}

    await journal.step("answer 1", answer)
    for place in (1, 2):
        await journal.call(f"call 1.{place} read", "harmless", read)
    await journal.step("answer 2", answer)
    raise ToolError("The model is not there.")


async def test_a_job_that_failed_is_resumed_by_the_command_and_says_why_it_failed_again(project: Path) -> None:
    prepare_folder(project / ".trysquare")
    async with open_engine(jobs_file(project / ".trysquare"), agent_bodies(fails)) as engine:
        job = await engine.start("agent", {"no": "request"}, title="Tidy up")
        failed = await engine.wait(job)
    async with serving(project) as site, site.browser() as browser, browser.watching() as changed:
        page = await browser.get(f"/jobs/{job}")
        arguments = re.findall(r'data-testid="step-arguments">(.*?)</pre>', page, re.DOTALL)
        assert [json.loads(html.unescape(each))["path"] for each in arguments] == ["a", "<b>"]
        total = re.search(r'data-testid="job-total">(.*?)</dl>', page, re.DOTALL)
        assert total is not None
        assert re.findall(r"<dd>([^<]+)</dd>", total[1]) == ["140", "0.5"]
        assert (await browser.post(f"/jobs/{job}/resume", {})).status_code == 303
        twice = await browser.post(f"/jobs/{job}/resume", {})
        assert (twice.status_code, "being resumed" in twice.text) == (400, True)
        async with asyncio.timeout(120):
            while "not-resumed" not in (page := await browser.get(f"/jobs/{job}", part=True)):
                await changed("jobs")
        assert f"trysquare jobs resume {job}" in page
        async with site.console.workspace.jobs() as jobs:
            again = await jobs.status(job)
        # The command's own process has run it.
        assert (again.state, again.holder == failed.holder) == ("failed", False)


async def breaks(argument: JsonObject, journal: Journal) -> JsonObject:
    raise ToolError("The model is not there.")


async def test_a_job_is_resumed_from_the_page_asks_there_under_its_name_and_succeeds(project: Path) -> None:
    prepare_folder(project / ".trysquare")
    write = call("file", action="write", path="new.txt", content="hello")
    with agent_project(project, write, call("finish", summary="It is written.", files=["new.txt"])):
        async with open_engine(jobs_file(project / ".trysquare"), agent_bodies(breaks)) as engine:
            request = AgentRequest(agent="reader", task="Write hello.").to_json()
            job = await engine.start("agent", request, title="Write hello.")
            assert (await engine.wait(job)).state == "failed"
        async with serving(project) as site, site.browser() as browser, browser.watching() as changed:
            assert (await browser.post(f"/jobs/{job}/resume", {})).status_code == 303
            async with asyncio.timeout(120):
                [question] = await browser.questions(changed)
                assert f"<dt>Job</dt><dd>{job}</dd>" in await browser.get("/")
                await browser.decide(question, "approve")
                while 'data-testid="job-state">done' not in (page := await browser.get(f"/jobs/{job}", part=True)):
                    await changed("jobs")
            assert "It is written." in page
            assert "not-resumed" not in page
        assert (project / "new.txt").read_text("utf-8") == "hello"

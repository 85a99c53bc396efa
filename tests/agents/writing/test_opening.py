"""A writing agent opened as the command line and the server open it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.agents.scripted import ScriptedModel, call
from tests.content.notion_stand_in import NotionStandIn
from tests.content.web_server import web_server
from trysquare.agents import AgentRequest
from trysquare.agents.journal import CallOutcome, NullJournal, Repeat
from trysquare.agents.run import AgentOutcome
from trysquare.agents.runner import run_request
from trysquare.app import agent_environment
from trysquare.models import Model
from trysquare.settings import Settings
from trysquare.settings.model import ContentSettings

ANALYSIS = {"topic": "Bees", "audience": "all", "tone": "dry", "deliverables": ["twitter"]}
TWEET = call("social_post", network="twitter", text="Bees fly.")
END = [call("complete_draft"), call("finish", summary="A tweet.", files=["drafts/job-7/posts/twitter.txt"])]


class KeptJob(NullJournal):
    """A journal that keeps nothing, of a job that has a name."""

    job = "job-7"

    async def call(self, name: str, repeat: Repeat, run: Any) -> CallOutcome:
        return CallOutcome(value=await run(f"job-7/{name}"))


async def run(settings: Settings, task: str, *said: Any) -> AgentOutcome:
    model = ScriptedModel(said)

    @asynccontextmanager
    async def opened(spec: str | None) -> AsyncGenerator[Model]:
        yield model

    with agent_environment(settings, {}) as around:
        request = AgentRequest(agent="blog", task=task)
        return await run_request(request, replace(around, open_model=opened), KeptJob())


async def test_the_draft_lies_in_the_project_under_the_name_of_the_job(tmp_path: Path) -> None:
    outcome = await run(Settings(project=tmp_path), "A tweet on bees.", call("analyse", **ANALYSIS), TWEET, *END)
    assert outcome.finished, outcome
    assert "git" not in outcome.missing, "the policy denies it, so nobody misses it"
    assert (tmp_path / "drafts" / "job-7" / "posts" / "twitter.txt").read_text(encoding="utf-8") == "Bees fly.\n"


async def test_a_publication_waits_for_approval(tmp_path: Path) -> None:
    notion = NotionStandIn()
    async with web_server(notion.answer) as server:
        content = ContentSettings.model_validate(
            {"notion_token": notion.token, "notion_page": notion.page, "notion_url": server.url}
        )
        outcome = await run(
            Settings(project=tmp_path, content=content),
            "A tweet on bees; publish it.",
            call("analyse", **ANALYSIS, publish_words="publish it"),
            TWEET,
            call("complete_draft"),
            call("blog_notion", title="Bees", request_key="mine"),
            END[1],
        )
    assert outcome.finished, outcome
    assert notion.pages == {}
    [command] = outcome.waiting
    assert command.startswith("trysquare approve ")

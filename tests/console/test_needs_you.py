"""A call waits for a human, who decides in the console; whoever asked goes on by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.console.conftest import Site, serving
from trysquare import Consent, ToolError, Tools
from trysquare.client import Client
from trysquare.store import StoredApprovals

VERSIONS = ("2025-11-25", "2026-07-28")


def shop() -> tuple[Tools, list[str]]:
    tools, deleted = Tools("shop"), list[str]()

    @tools.tool(consent=Consent(question="Delete {path}?"))
    def delete(path: str) -> str:
        """Delete a file."""
        deleted.append(path)
        return f"{path} is deleted"

    return tools, deleted


def receipts(site: Site) -> list[tuple[bool, str, str]]:
    return [(one.approved, one.how, one.reason) for one in StoredApprovals(site.app.state).receipts()]


async def call(client: Client, path: str = "old.txt") -> Any:
    return await client.call_tool("delete", {"path": path})


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_whose_client_cannot_ask_waits_for_the_page_and_runs(project: Path, version: str) -> None:
    tools, deleted = shop()
    async with serving(project, tools) as site, site.browser() as browser, browser.watching() as changed:
        async with site.client(protocol_version=version, name="claude") as client:
            calling = asyncio.create_task(call(client))
            [question] = await browser.questions(changed)
            page = await browser.get("/")
            assert "Delete old.txt?" in page
            assert "claude" in page
            assert "(1) Needs you" in page
            assert 'data-testid="default">the call does not run<' in page
            await browser.decide(question, "approve")
            assert (await calling).data == "old.txt is deleted"
        assert deleted == ["old.txt"]
        assert receipts(site) == [(True, "console", "")]
        assert await browser.questions(changed, count=0) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_refusal_reaches_the_caller_with_its_reason(project: Path, version: str) -> None:
    tools, deleted = shop()
    async with serving(project, tools) as site, site.browser() as browser, browser.watching() as changed:
        async with site.client(protocol_version=version) as client:
            calling = asyncio.create_task(call(client))
            [question] = await browser.questions(changed)
            await browser.decide(question, "refuse", "ask Ada first")
            with pytest.raises(ToolError, match="ask Ada first") as refused:
                await calling
        assert refused.value.code == "CONSENT_REFUSED"
        assert deleted == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_that_nobody_decides_on_in_time_does_not_run_and_waits_no_longer(
    project: Path, version: str
) -> None:
    tools, deleted = shop()
    (project / "trysquare.toml").write_text("[limits]\napproval_seconds = 1\n", encoding="utf-8")

    async def ponder(*_: Any) -> Any:
        await asyncio.Event().wait()

    async with serving(project, tools) as site, site.browser() as browser, browser.watching() as changed:
        assert await browser.questions(changed, count=0) == []
        async with site.client(protocol_version=version) as client:
            with pytest.raises(ToolError, match="in time") as refused:
                await call(client)
            assert refused.value.code == "CONSENT_REFUSED"
        async with site.client(protocol_version="2025-11-25", elicitation_handler=ponder) as client:
            with pytest.raises(ToolError, match="in time"):
                await call(client)
        assert await browser.questions(changed, count=0) == []
        assert (deleted, receipts(site)) == ([], [])


async def test_an_elicitation_that_waits_ends_with_the_decision_of_the_page(project: Path) -> None:
    tools, deleted = shop()
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def ponder(*_: Any) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()

    async with serving(project, tools) as site, site.browser() as browser, browser.watching() as changed:
        async with site.client(protocol_version="2025-11-25", elicitation_handler=ponder) as client:
            calling = asyncio.create_task(call(client))
            await asked.wait()
            [question] = await browser.questions(changed)
            await browser.decide(question, "approve")
            assert (await calling).data == "old.txt is deleted"
            await withdrawn.wait()
        assert deleted == ["old.txt"]
        assert len(receipts(site)) == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_answer_in_the_client_takes_the_question_off_the_page(project: Path, version: str) -> None:
    tools, deleted = shop()
    answer = asyncio.Event()

    async def agree(*_: Any) -> dict[str, bool]:
        await answer.wait()
        return {"approve": True}

    async with serving(project, tools) as site, site.browser() as browser, browser.watching() as changed:
        async with site.client(protocol_version=version, elicitation_handler=agree) as client:
            calling = asyncio.create_task(call(client))
            [question] = await browser.questions(changed)
            answer.set()
            assert (await calling).data == "old.txt is deleted"
            await browser.questions(changed, count=0)
            assert "decided elsewhere" in await browser.decide(question, "approve")
        assert deleted == ["old.txt"]
        assert [how for _, how, _ in receipts(site)] != ["console"]


async def test_a_decision_of_the_page_counts_where_the_client_asks_and_calls_again(project: Path) -> None:
    tools, deleted = shop()
    decided = asyncio.Event()

    async def agree_later(*_: Any) -> dict[str, bool]:
        await decided.wait()
        return {"approve": True}

    async with serving(project, tools) as site, site.browser() as browser, browser.watching() as changed:
        async with site.client(protocol_version="2026-07-28", elicitation_handler=agree_later) as client:
            calling = asyncio.create_task(call(client))
            [question] = await browser.questions(changed)
            await browser.decide(question, "refuse", "not this one")
            decided.set()
            with pytest.raises(ToolError, match="not this one"):
                await calling
        assert deleted == []


async def test_without_an_open_page_a_call_is_answered_with_its_code_at_once(project: Path) -> None:
    tools, deleted = shop()
    async with serving(project, tools) as site, site.browser() as browser:
        async with site.client() as client:
            with pytest.raises(ToolError) as needed:
                await call(client)
        assert needed.value.code == "CONSENT_REQUIRED"
        # It waits on the page all the same.
        async with browser.watching() as changed:
            [question] = await browser.questions(changed)
            await browser.decide(question, "approve")
            async with site.client() as client:
                assert (await call(client)).data == "old.txt is deleted"
        assert deleted == ["old.txt"]


async def test_calls_of_one_tool_are_decided_together_and_others_are_not(project: Path) -> None:
    tools, deleted = shop()

    @tools.tool(consent=Consent(question="Send {text}?"))
    def send(text: str) -> str:
        """Send a text."""
        return text

    async with (
        serving(project, tools) as site,
        site.browser() as browser,
        browser.watching() as changed,
        site.client() as client,
    ):
        calling = [asyncio.create_task(call(client, path)) for path in ("a", "b")]
        sending = asyncio.create_task(client.call_tool("send", {"text": "hello"}))
        questions = await browser.questions(changed, count=3)
        mixed = [*(("question", each) for each in questions), ("choice", "approve")]
        assert "not the same action" in (await browser.post("/needs/decide", mixed)).text
        page = await browser.get("/")
        assert 'data-testid="together"' in page
        waiting = {each.id: each.text for each in await site.console.decisions.waiting()}
        alike = [("question", each) for each in questions if waiting[each.rpartition(" ")[0]].startswith("Delete")]
        await browser.post("/needs/decide", [*alike, ("choice", "approve")])
        await asyncio.gather(*calling)
        assert sorted(deleted) == ["a", "b"]
        [left] = await browser.questions(changed)
        await browser.decide(left, "approve")
        assert (await sending).data == "hello"


async def test_what_was_shown_is_what_is_decided(project: Path) -> None:
    tools, deleted = shop()
    async with (
        serving(project, tools) as site,
        site.browser() as browser,
        browser.watching() as changed,
        site.client() as client,
    ):
        calling = asyncio.create_task(call(client))
        [question] = await browser.questions(changed)
        name = question.rpartition(" ")[0]
        assert "has changed" in await browser.decide(f"{name} {'0' * 64}", "approve")
        assert deleted == []
        await browser.decide(question, "refuse")
        with pytest.raises(ToolError):
            await calling

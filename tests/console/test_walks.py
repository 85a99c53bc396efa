"""A person at a real browser walks through every part of the page, and everything that they look at is real."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.console.chromium import DESKTOP, PHONE, Chromium, Window
from tests.console.conftest import Site, serving
from tests.console.showcase import (
    FAILING,
    Showcase,
    change_definition,
    showcase,
    use_servers,
    work_with_bot,
    workshop,
    write_project,
)
from trysquare import ToolError
from trysquare.store import StoredApprovals

pytest.importorskip("dbos")
VERSIONS = ("2025-11-25", "2026-07-28")
STARTS_PROCESSES = True
"""Servers behind the gateway, and the test that is explained."""
SERVER = '''
import os
import sys

from trysquare import Tools

tools = Tools("shop")


@tools.tool
def own_process() -> int:
    """Say which process this is."""
    print("the last words", file=sys.stderr, flush=True)
    return os.getpid()
'''


@pytest.mark.parametrize("version", VERSIONS)
async def test_two_keys_and_a_reason_answer_a_client_that_waits(
    project: Path, chromium: Chromium, version: str
) -> None:
    async with serving(project, workshop()) as site, chromium.window() as window:
        await site.enter(window)
        await window.appears("nothing-waits")
        async with site.client(protocol_version=version, name="claude-code") as client:
            calling = asyncio.create_task(client.call_tool("refund", {"order": 1042, "amount": 12.5}))
            await window.shows("Refund 12.5 EUR for order 1042?", within="question")
            await window.until("document.title.startsWith('(1)')")
            assert "claude-code" in await window.text("question")
            await window.press("a", "Enter")
            assert (await calling).data == "12.5 EUR are paid back for order 1042."
            await window.appears("nothing-waits")
            await window.until("document.title.startsWith('Needs you')")
            calling = asyncio.create_task(client.call_tool("refund", {"order": 7, "amount": 900}))
            await window.shows("Refund 900", within="question")
            await window.press("r")
            await window.type("ask Ada first")
            await window.press("Enter")
            with pytest.raises(ToolError, match="ask Ada first"):
                await calling
        receipts = StoredApprovals(site.app.state).receipts()
        assert [(one.approved, one.how, one.reason) for one in receipts] == [
            (False, "console", "ask Ada first"),
            (True, "console", ""),
        ]
        assert await window.problems() == []


async def test_the_keyboard_alone_reaches_every_question_and_part(project: Path, chromium: Chromium) -> None:
    async with serving(project, workshop()) as site, chromium.window() as window, site.client() as client:
        await site.enter(window)
        calls = [
            asyncio.create_task(client.call_tool("refund", {"order": order, "amount": 1.0}, raise_on_error=False))
            for order in (1, 2)
        ]
        await window.appears("question", nth=1)
        focused = "document.activeElement.dataset.question"
        await window.press("j")
        first = await window.evaluate(focused)
        await window.press("j")
        second = await window.evaluate(focused)
        await window.press("k")
        assert (await window.evaluate(focused), first != second) == (first, True)
        await window.press("r", "Escape", "a", "Enter")
        await window.until("document.querySelectorAll('[data-testid=question]').length === 1")
        # Whoever decided goes on with the next one, and nothing else was decided.
        await window.until(f"{focused} === {json.dumps(second)}")
        await window.press("a", "Enter")
        await window.appears("nothing-waits")
        assert [result.is_error for result in await asyncio.gather(*calls)] == [False, False]
        await window.until("document.activeElement.id === 'main'")
        await window.open(f"{site.page}/")
        await window.press("Tab", "Enter")
        assert await window.evaluate("document.activeElement.id") == "main"
        await window.do(["getByTestId", "nav-tools"], ["focus"])
        await window.press("Enter")
        await window.appears("tool-filter")


async def test_a_reason_is_written_on_while_other_questions_come(project: Path, chromium: Chromium) -> None:
    async with serving(project, workshop()) as site, chromium.window() as window, site.client() as client:
        await site.enter(window)
        refusing = asyncio.create_task(client.call_tool("refund", {"order": 1, "amount": 1.0}))
        await window.appears("question")
        await window.press("r")
        await window.type("not ")
        other = asyncio.create_task(client.call_tool("refund", {"order": 2, "amount": 2.0}))
        await window.appears("question", nth=1)
        await window.type("today")
        await window.press("Enter")
        with pytest.raises(ToolError, match="not today"):
            await refusing
        await window.until("document.querySelectorAll('[data-testid=question]').length === 1")
        await window.press("a", "Enter")
        assert (await other).data == "2.0 EUR are paid back for order 2."


async def test_a_killed_server_turns_red_and_comes_back(project: Path, chromium: Chromium) -> None:
    (project / "server.py").write_text(SERVER, encoding="utf-8")
    entry = {"command": sys.executable, "args": ["-m", "trysquare", "serve", str(project / "server.py")]}
    (project / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}), encoding="utf-8")
    async with serving(project, gateway=(project / "mcp.json",)) as site, chromium.window() as window:
        await site.enter(window, "/servers")
        await window.shows("asleep", within="server-state")
        await window.click("test")
        await window.shows("running", within="server-state")
        async with site.client() as client:
            given = {"action": "execute", "tool_name": "own_process", "tool_inputs": {}}
            process = int((await client.call_tool("mcp_shop", given)).text)
            os.kill(process, signal.SIGKILL)
            await window.shows("ended", within="server-state")
            assert await color(window, "server-state") == await color(window, "server-lost")
            await window.do(["locator", "summary"], ["click"])
            await window.shows("the last words", within="stderr")
            assert int((await client.call_tool("mcp_shop", given)).text) != process
        await window.shows("running", within="server-state")
        await window.disappears("server-lost")


async def color(window: Window, name: str) -> str:
    return await window.evaluate(f"getComputedStyle(document.querySelector('[data-testid={name}]')).color")


async def test_a_form_with_every_type_is_filled_and_sent(project: Path, chromium: Chromium) -> None:
    async with serving(project, workshop()) as site, chromium.window() as window:
        await site.enter(window, "/tools")
        await window.fill("tool-filter", "ship")
        await window.until("document.querySelectorAll('[data-testid=tool]').length === 1")
        await window.click("tool")
        texts = {
            "order": "7", "to/street": "Main 1", "to/city": "Kiel", "to/floor": "3", "weight": "1.5",
            "tags": "fragile\nbig box", "sizes": "1\n2", "day": "2026-05-04",
            "labels": '{"k": "v"}',
        }  # fmt: skip
        for name, text in texts.items():
            await window.fill(f"arg/{name}", text)
        await window.click("add/arg/lines")
        await window.fill("arg/lines/0/article", "Jacket")
        await window.click("add/arg/lines")
        await window.fill("arg/lines/1/article", "Hat")
        await window.choose("variant/arg/extra", "1")
        await window.fill("arg/extra/street", "Side 2")
        await window.fill("arg/extra/city", "Kiel")
        await window.click("remove/arg/lines/0")
        await window.disappears("arg/lines/1/article")
        note = project / "note.txt"
        note.write_text("by the door", encoding="utf-8")
        await window.do(["getByTestId", "file/arg/note"], ["setInputFiles", str(note)])
        await window.until("document.getElementById('arg/note').value === 'by the door'")
        await window.choose("arg/gift", "true")
        await window.choose("arg/speed", '"fast"')
        await window.click("send")
        assert await window.text("outcome") == "ok"
        assert json.loads(await window.text("structured")) == {
            "order": 7, "to": {"street": "Main 1", "city": "Kiel", "floor": 3}, "weight": 1.5, "gift": True,
            "speed": "fast", "tags": ["fragile", "big box"], "sizes": [1, 2],
            "extra": {"street": "Side 2", "city": "Kiel", "floor": None}, "labels": {"k": "v"}, "note": "by the door",
            "lines": [{"article": "Hat", "count": 1}], "day": "2026-05-04",
        }  # fmt: skip
        await window.fill("arg/weight", "99")
        await window.click("send")
        await window.shows("error", within="outcome")
        assert await window.problems() == []


async def test_a_call_is_followed_and_cancelled_and_a_wrong_one_corrected(project: Path, chromium: Chromium) -> None:
    async with serving(project, workshop()) as site, chromium.window() as window:
        await site.enter(window, "/tools/count_stock")
        await window.fill("arg/shelves", "4")
        await window.click("send")
        await window.shows("Waiting for the last shelf", within="running")
        await window.click("cancel")
        await window.shows("cancelled", within="outcome")
        await window.open(f"{site.page}/tools/find_orders")
        await window.do(["getByText", "Arguments as JSON"], ["first"], ["click"])
        await window.fill("json", '{"custmer": "Ada"}')
        await window.click("send")
        await window.shows("error", within="outcome")
        await window.click("send-next")
        await window.shows("ok", within="outcome")
        assert "1042" in await window.text("structured")
        assert await window.problems() == []


async def test_a_gate_is_closed_and_the_board_follows(project: Path, chromium: Chromium) -> None:
    async with showcase(project) as shown, chromium.window() as window:
        await shown.site.enter(window, "/bots")
        await window.click("run")
        board = await window.tab()
        await board.open(f"{shown.site.page}/")
        await work_with_bot(shown, project)
        state = "[data-action='ship.validate_rules'] [data-testid=action-state]"
        await window.until("document.querySelector('[aria-current=step]')?.dataset.action === 'ship.validate_rules'")
        await board.do(["locator", "[data-question^=call-]"], ["getByTestId", "approve"], ["click"])
        assert not (await shown.calls[0]).is_error
        await window.until(f'document.querySelector("{state}").textContent === "confirmed"')
        await window.shows("complete", within="run-state")
        await window.click("compare")
        await window.appears("changed-actions")
        await window.open(f"{shown.site.page}/bots/release/main")
        await window.click("document")
        await window.shows("version: 1.4.0", within="document-text")


async def test_a_job_is_followed_live_and_its_question_answered(project: Path, chromium: Chromium) -> None:
    async with showcase(project) as shown, chromium.window() as window:
        await shown.site.enter(window, "/jobs")
        await window.click("job")
        await window.shows("asks", within="job-state")
        await window.shows("answer 2", within="timeline")
        assert '{"customer": "Ada"}' in await window.text("timeline")
        other = await window.tab()
        await other.open(f"{shown.site.page}/")
        await other.click("skip")
        await window.shows("done", within="job-state")
        assert "Order 1042: skip." in await window.text("job-result")


@pytest.mark.timeout(400)
async def test_a_failing_test_is_explained(project: Path, chromium: Chromium) -> None:
    write_project(project)
    async with serving(project) as site, chromium.window() as window:
        await site.enter(window, "/failures")
        await window.fill("target", FAILING)
        await window.click("explain")
        await window.do(["getByTestId", "suspects"], ["first"], ["waitFor", {"timeout": 120_000}])
        assert "shop.py:4" in await window.text("suspect")
        await window.appears("source")


async def fill(shown: Showcase, project: Path) -> None:
    """Let every part have something to show."""
    await use_servers(shown)
    await change_definition(shown, project)
    await work_with_bot(shown, project)
    shown.ask("refund", order=1042, amount=12.5, note="damaged on arrival")
    shown.ask("send_letter", to="ada@example.org", text="Dear Ada,\n\nyour order is on its way.\n")


async def paths(shown: Showcase) -> list[str]:
    """Every page of the console."""
    call = shown.site.console.workspace.ledger.find_all(_every(), limit=1)[0]
    return [
        "/", "/tools", "/tools/ship_order", "/prompts/answer_complaint", "/resources?uri=shop://hours", "/servers",
        "/calls", f"/calls/{call.id}", "/bots", "/bots/release/main", "/bots/release/main/difference?before=0&after=2",
        "/bots/release/main/document?path=docs/release.yaml", "/bots/release/main/document?path=docs/release.md",
        "/bots/story/main", "/bots/story/main/maps", "/jobs", f"/jobs/{shown.job}", "/failures", "/nothing",
    ]  # fmt: skip


def _every() -> Any:
    from trysquare.store.call_ledger import CallFilter

    return CallFilter()


@pytest.mark.timeout(400)
async def test_every_page_is_usable_by_everybody_on_every_screen(project: Path, chromium: Chromium) -> None:
    """No serious fault for axe-core, nothing sideways, no error, in light and dark, at a desk and on a phone."""
    async with showcase(project) as shown, chromium.window() as keeper:
        await shown.site.enter(keeper)
        await fill(shown, project)
        await keeper.appears("question", nth=4)
        found: list[str] = []
        for size, dark in ((DESKTOP, False), (PHONE, True)):
            async with chromium.window(size=size, dark=dark, axe=True) as window:
                found += await faults_of_signing_in(shown.site, window)
                for path in await paths(shown):
                    await window.open(f"{shown.site.page}{path}")
                    found += [f"{path} {size[0]}: {each}" for each in await faults(window)]
                # Signing in is refused at first, and one page does not exist.
                problems = [each for each in await window.problems() if "status of 40" not in each]
                found += [f"{size[0]}: {each}" for each in problems]
        assert found == []


async def faults_of_signing_in(site: Site, window: Window) -> list[str]:
    await window.open(f"{site.page}/sign-in")
    found = await faults(window)
    await site.enter(window)
    return [f"/sign-in: {each}" for each in found]


async def faults(window: Window) -> list[str]:
    wide = await window.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [*await window.faults(), *([f"{wide} pixels wider than the screen"] if wide > 0 else [])]

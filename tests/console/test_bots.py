"""The runs of bots: the board, who waits for whom, the history with its differences, and the documents as text."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.conftest import Browser, serving
from trysquare.bots.definition.scaffold import write_new_bot
from trysquare.client import Client

DOCUMENT = """version: {version}
date: 2026-01-31
rollback: <b>Install</b> 1.3.2 again.
changes:
  - what: Exports are faster
    kind: changed
checks:
  - what: The tests pass
    done: true
"""
RUN = "/bots/release/main"


@pytest.fixture
def bot(project: Path) -> Path:
    write_new_bot(project / "release", "release", "release")
    return project / "release"


def write_document(project: Path, version: str) -> None:
    (project / "docs").mkdir(exist_ok=True)
    (project / "docs" / "release.yaml").write_text(DOCUMENT.format(version=version), encoding="utf-8")


async def call(client: Client, tool: str, /, **parameters: Any) -> None:
    await client.call_tool(f"release_{tool}", {"parameters": parameters} if parameters else {})


async def close_document(client: Client, project: Path, version: str) -> None:
    await call(client, "ship_build_knowledge", confirm=True)
    write_document(project, version)
    await call(client, "close_current_action")


def states(board: str) -> dict[str, str]:
    return dict(re.findall(r'data-action="ship\.(\w+)".*?data-testid="action-state">([\w ]+)<', board, re.DOTALL))


def waits(board: str) -> dict[str, str]:
    cards = re.findall(r'data-action="ship\.(\w+)"(.*?)</li>', board, re.DOTALL)
    found = {name: re.search(r'data-testid="waits-for">Waits for ([^<]+)<', card) for name, card in cards}
    return {name: match[1].replace("&#39;", "'") for name, match in found.items() if match}


def changes(page: str) -> dict[str, tuple[str, set[str], set[str]]]:
    """The files of a gate: what happened to each, and which versions its diff takes away and adds."""
    found = re.findall(r'data-testid="file">(\S+) <span class="tag">(\w+)</span></h3>(.*?)</pre>', page, re.DOTALL)
    return {
        path: (change, set(re.findall(r">-(version: .*)", diff)), set(re.findall(r">\+(version: .*)", diff)))
        for path, change, diff in found
    }


async def version(browser: Browser) -> int:
    found = re.search(r"done, version (\d+)", await browser.get(RUN, part=True))
    assert found is not None
    return int(found[1])


async def test_a_run_is_followed_to_its_gate_which_is_closed_on_the_page(project: Path, bot: Path) -> None:
    async with serving(project, bot=(bot,)) as site, site.browser() as browser, browser.watching() as changed:
        assert 'data-testid="run"' in await browser.get("/bots")
        fresh = await browser.get(RUN)
        assert set(states(fresh).values()) == {"open"}
        assert waits(fresh) == {"validate_rules": "a human's proof"}
        async with site.client() as client, asyncio.timeout(60):
            await close_document(client, project, "1.4.0")
            while states(await browser.get(RUN, part=True))["build_knowledge"] != "claimed":
                await changed("bots")
            await call(client, "ship_render_output")
            await call(client, "close_current_action")
            await call(client, "ship_synchronize_output")
            await call(client, "close_current_action")
            await call(client, "ship_validate_rules")
            closing = asyncio.create_task(call(client, "close_current_action"))
            [question] = await browser.questions(changed)
            board, page = await browser.get(RUN), await browser.get("/")
            assert 'data-action="ship.validate_rules" aria-current="step"' in board
            await browser.decide(question, "approve")
            await closing
            while 'data-testid="run-state">complete' not in (board := await browser.get(RUN, part=True)):
                await changed("bots")
            # What was approved is the measure of what is approved next.
            assert changes(page) == {"docs/release.yaml": ("added", set[str](), {"version: 1.4.0"})}
            write_document(project, "1.5.0")
            await call(client, "ship_validate_rules")
            closing = asyncio.create_task(call(client, "close_current_action"))
            [question] = await browser.questions(changed)
            page = await browser.get("/")
            assert changes(page) == {"docs/release.yaml": ("changed", {"version: 1.4.0"}, {"version: 1.5.0"})}
            await browser.decide(question, "approve")
            await closing
        assert states(board)["validate_rules"] == "confirmed"
        assert waits(board) == {}
        assert "complete" in await browser.get("/bots", part=True)


async def test_documents_are_shown_as_text_and_no_other_file_is(project: Path, bot: Path) -> None:
    (project / "secret.txt").write_text("s3cret", encoding="utf-8")
    async with serving(project, bot=(bot,)) as site, site.browser() as browser:
        assert "not written yet" in await browser.get(RUN)
        async with site.client() as client:
            await close_document(client, project, "1.4.0")
        [link] = re.findall(r'href="([^"]+)" data-testid="document"', await browser.get(RUN))
        page = await browser.get(link)
        assert "rollback: &lt;b&gt;Install&lt;/b&gt;" in page
        for path in ("secret.txt", "../secret.txt", str(project / "secret.txt"), "docs/release.md", ""):
            refused = await browser.http.get(f"{RUN}/document", params={"path": path})
            assert (refused.status_code, "s3cret" in refused.text) == (400, False)
        (project / "docs" / "release.yaml").unlink()
        (project / "docs" / "release.yaml").symlink_to("/etc/hostname")
        refused = await browser.http.get(link)
        assert refused.status_code == 400


async def test_two_versions_of_a_run_are_compared(project: Path, bot: Path) -> None:
    async with serving(project, bot=(bot,)) as site, site.browser() as browser:
        async with site.client() as client:
            await close_document(client, project, "1.4.0")
            first = await version(browser)
            await close_document(client, project, "1.5.0")
        second = await version(browser)
        page = await browser.get(f"{RUN}/difference?before={first}&after={second}")
        assert re.search(r'class="removed">-version: 1\.4\.0', page)
        assert re.search(r'class="added">\+version: 1\.5\.0', page)
        history = (await browser.get(RUN)).partition('data-testid="history"')[2]
        assert re.findall(r'<span class="tag \w*">(\w+)</span>', history) == ["claimed", "reopened", "claimed"]
        for before, after in (("x", "1"), ("", "1"), ("-1", "1"), ("1", "9" * 30), ("0", "999")):
            refused = await browser.http.get(f"{RUN}/difference", params={"before": before, "after": after})
            assert refused.status_code == 400


async def test_what_does_not_exist_is_refused(project: Path, bot: Path) -> None:
    async with serving(project, bot=(bot,)) as site, site.browser() as browser:
        for path in ("/bots/nothing/main", "/bots/release/nothing", "/bots/release/..%2f..", "/bots/release/nothing/document"):  # fmt: skip  # noqa: E501
            assert (await browser.http.get(path)).status_code in (400, 404)
        async with site.visitor() as visitor:
            assert (await visitor.get(RUN)).status_code == 401


async def test_a_console_without_bots_says_how_to_make_one(project: Path) -> None:
    async with serving(project) as site, site.browser() as browser:
        assert "trysquare bot new" in await browser.get("/bots")

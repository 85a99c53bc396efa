"""Why a test fails, as annotated source: asked for with a form, run by the debugger's service."""

from __future__ import annotations

import asyncio
import html
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.console.conftest import HTML, Browser, serving
from trysquare import Principal
from trysquare.server import HttpOptions

STARTS_PROCESSES = True  # the tests that are explained
SHOP = """def total(prices):
    whole = 0
    for price in prices:
        whole = whole - price  # <b>wrong</b>
    return whole
"""
TESTS = """from shop import total


def test_total():
    found = total([1, 2])
    assert found == 3


def test_nothing():
    assert total([]) == 0
"""


class Tokens:
    """Whoever has the token may use the console."""

    async def verify(self, token: str) -> Principal | None:
        return Principal(subject=f"token:{token}", rights=frozenset({"console"}))


def write_shop(project: Path) -> None:
    (project / "shop.py").write_text(SHOP, encoding="utf-8")
    (project / "test_shop.py").write_text(TESTS, encoding="utf-8")


async def begin(browser: Browser, target: str) -> str:
    started = await browser.post("/failures", {"target": target})
    assert started.status_code == 303, started.text
    return started.headers["location"]


async def ended(browser: Browser, changed: Callable[[str], Awaitable[None]], address: str) -> str:
    """The page of an explanation, once it is over."""
    async with asyncio.timeout(120):
        while 'data-testid="failure-state">runs' in (page := await browser.get(address, part=True)):
            await changed(f"failure-{address.rpartition('/')[2]}")
    return page


async def test_a_failing_test_is_explained_beside_its_source(project: Path) -> None:
    write_shop(project)
    async with serving(project) as site, site.browser() as browser, browser.watching() as changed:
        address = await begin(browser, "test_shop.py::test_total")
        page = await ended(browser, changed, address)
        assert 'data-testid="failure-state">fails' in page
        first = page.partition('data-testid="suspect"')[2].partition("</li>")[0]
        assert "shop.py:4" in first
        rows = {
            (file, line): row
            for file, table in re.findall(r"<h3>([\w.]+)</h3>\s*(<div.*?</table>)", page, re.DOTALL)
            for line, row in re.findall(r'data-line="(\d+)">(.*?)</tr>', table, re.DOTALL)
        }
        assert ">fails<" in rows["test_shop.py", "6"]
        assert "found = -3" in html.unescape(rows["test_shop.py", "5"])
        assert "suspect 1" in rows["shop.py", "4"]
        assert "whole = -1, whole = -3" in html.unescape(rows["shop.py", "4"])
        assert "prices = [1, 2]" in html.unescape(rows["shop.py", "1"])
        assert "# &lt;b&gt;wrong&lt;/b&gt;" in rows["shop.py", "4"]
        assert "<b>wrong" not in page
        assert address in await browser.get("/failures")
        async with site.browser() as other:
            assert (await other.http.get(address)).status_code == 400
            assert address not in await other.get("/failures")


async def test_what_cannot_be_explained_says_why(project: Path) -> None:
    write_shop(project)
    async with serving(project) as site, site.browser() as browser, browser.watching() as changed:
        page = await ended(browser, changed, await begin(browser, "test_shop.py::test_nothing"))
        assert 'data-testid="failure-state">does not fail' in page
        page = await ended(browser, changed, await begin(browser, "test_shop.py::test_totl"))
        assert "test_total" in page
        for target in ("", "  ", "x" * 3_000, "test\0.py"):
            assert (await browser.post("/failures", {"target": target})).status_code == 400


async def test_cancelling_an_explanation_ends_its_processes(project: Path) -> None:
    # A pipe that only the tests hold open: it opens once a test runs, and ends with the last process.
    pipe = project / "pipe"
    os.mkfifo(pipe)
    waiting = "import threading\n\n\ndef test_slow():\n    with open('pipe', 'w'):\n        threading.Event().wait()\n"
    (project / "test_slow.py").write_text(waiting, encoding="utf-8")
    async with serving(project) as site, site.browser() as browser, asyncio.timeout(60):
        addresses = [await begin(browser, "test_slow.py::test_slow") for _ in range(2)]
        assert (await browser.post("/failures", {"target": "test_slow.py"})).status_code == 400
        with await asyncio.to_thread(pipe.open) as running:
            for each in addresses:
                assert (await browser.post(f"{each}/cancel", {})).status_code == 303
                assert 'data-testid="failure-state">cancelled' in await browser.get(each, part=True)
            assert await asyncio.to_thread(running.read) == ""


async def test_a_token_starts_no_program(project: Path) -> None:
    write_shop(project)
    async with serving(project, http=HttpOptions(port=0, verifier=Tokens())) as site, site.visitor() as http:
        assert (await http.post("/sign-in", data={"token": "boss"}, headers={"origin": site.base})).status_code == 303
        page = (await http.get("/failures", headers=HTML)).text
        assert 'data-testid="explain"' not in page
        found = re.search(r'data-csrf="([^"]+)"', page)
        assert found is not None
        browser = Browser(http=http, csrf=found[1])
        refused = await browser.post("/failures", {"target": "test_shop.py::test_total"})
        assert refused.status_code == 400
        assert 'data-testid="failure"' not in (await http.get("/failures", headers=HTML)).text

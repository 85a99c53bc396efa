"""The servers behind the gateway: their state, what a person does about them, and the ledger of their calls."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.console.conftest import Browser, serving

SERVER = '''
from trysquare import Tools

tools = Tools("shop")


@tools.tool
def divide(a: int, b: int) -> float:
    """Divide <b>two</b> numbers."""
    return a / b
'''


def configured(project: Path) -> Path:
    (project / "server.py").write_text(SERVER, encoding="utf-8")
    entry = {"command": sys.executable, "args": ["-m", "trysquare", "serve", str(project / "server.py")]}
    file = project / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shop": entry, "gone": {"command": "/no/such/server"}}}), "utf-8")
    return file


def states(page: str) -> dict[str, str]:
    return dict(re.findall(r'data-server="(\w+)".*?data-testid="server-state">(\w+)<', page, re.DOTALL))


async def act(browser: Browser, server: str, what: str) -> str:
    response = await browser.post(f"/servers/{server}", {"do": what})
    assert response.status_code == 200, response.text
    return response.text


async def reaches(browser: Browser, changed: Callable[[str], Awaitable[None]], server: str, state: str) -> None:
    """Wait until a server is shown in a state: it may start for what the gateway reads in the background."""
    async with asyncio.timeout(60):
        while states(await browser.get("/servers", part=True))[server] != state:
            await changed("servers")


async def test_servers_are_tested_stopped_and_restarted(project: Path) -> None:
    async with (
        serving(project, gateway=(configured(project),)) as site,
        site.browser() as browser,
        browser.watching() as changed,
    ):
        assert states(await browser.get("/servers")) == {"shop": "asleep", "gone": "asleep"}
        tested = await act(browser, "shop", "test")
        assert "shop works" in tested
        await reaches(browser, changed, "shop", "running")
        assert states(await act(browser, "gone", "test"))["gone"] == "failing"
        gateway = site.console.workspace.gateway
        assert gateway is not None
        # The test reads the server's other lists too, which would start it again.
        await gateway.background.wait()
        await act(browser, "shop", "stop")
        await reaches(browser, changed, "shop", "asleep")
        await act(browser, "shop", "restart")
        await reaches(browser, changed, "shop", "running")
        assert (await browser.post("/servers/shop", {"do": "delete"})).status_code == 400
        assert (await browser.post("/servers/nothing", {"do": "stop"})).status_code == 400


async def test_calls_are_in_the_ledger_with_filters_and_in_full(project: Path) -> None:
    (project / "trysquare.toml").write_text("[limits]\nledger_characters = 3\n", encoding="utf-8")
    async with serving(project, gateway=(configured(project),)) as site, site.browser() as browser:
        async with site.client() as client:
            for inputs in ({"a": 1, "b": 2}, {"a": 1, "b": 0}):
                given = {"action": "execute", "tool_name": "divide", "tool_inputs": inputs}
                await client.call_tool("mcp_shop", given, raise_on_error=False)
        rows = await browser.get("/calls")
        assert rows.count('data-testid="call"') == 2
        failed = await browser.get("/calls?outcome=error&server=shop&tool=divide", part=True)
        assert failed.count('data-testid="call"') == 1
        for nothing in ("server=other", "slower=100000", "principal=nobody", "outcome=sent_unknown"):
            assert 'data-testid="call"' not in await browser.get(f"/calls?{nothing}", part=True)
        path = re.search(r'href="(/calls/[^"]+)"', failed)
        assert path is not None
        page = await browser.get(path[1])
        assert "trysquare call mcp_shop" in page
        assert "&#34;b&#34;: 0" in page
        assert 'data-testid="call-note"' in page
        [answered] = re.findall(r'href="(/calls/[^"]+)"', await browser.get("/calls?outcome=done", part=True))
        assert re.search(r'data-testid="call-note">0.5<', await browser.get(answered))
        servers = await browser.get("/servers")
        assert 'class="bad"' in servers
        assert "2, 1 failed (50 %)" in servers


async def test_a_changed_command_waits_for_a_human(project: Path) -> None:
    file = configured(project)
    async with serving(project, gateway=(file,)) as site, site.browser() as browser:
        await act(browser, "shop", "test")
        async with browser.watching() as changed:
            written = json.loads(file.read_text("utf-8"))
            written["mcpServers"]["shop"]["args"].append("--log-level=ERROR")
            file.write_text(json.dumps(written), "utf-8")
            [question] = await browser.questions(changed)
            page = await browser.get("/")
            assert 'class="added">+' in page
            assert "--log-level=ERROR" in page
            assert "human must approve" in await act(browser, "shop", "test")
            await browser.decide(question, "approve")
            await act(browser, "shop", "test")
            await reaches(browser, changed, "shop", "running")

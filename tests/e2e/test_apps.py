"""Pages of tools, shown and answered in Inspector's web client."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.e2e.inspector_web import inspector
from tests.e2e.stdio_process import REPOSITORY

pytestmark = pytest.mark.node
SERVER = [sys.executable, "-m", "trysquare", "serve", "tests.e2e.app_tools:tools"]


async def test_a_browser_shows_pages_and_answers_what_they_lead_to(tmp_path: Path) -> None:
    async with inspector(SERVER, tmp_path) as host:
        await host.open_app("greet", name="Ada")
        await host.shown("greeting", "Hello Ada")
        await host.open_app("sales", year="2026")
        await host.shown("app-title", "sales")
        await host.view(["getByTestId", "bar"], ["nth", 2], ["waitFor"])
        assert await host.view(["getByTestId", "bar"], ["count"]) == 3

        # The form has the arguments of the call; what is changed in it is called again by the page.
        await host.open_app("order", article="lamp")
        await host.shown("outcome", "1 x lamp")
        await host.view(["getByTestId", "field-count"], ["fill", "4"])
        await host.view(["getByTestId", "run"], ["click"])
        await host.shown("outcome", "4 x lamp")

        # The client asks; the page shows how it stands.
        await host.open_app("delete", path="old.txt")
        await host.agree()
        await host.shown("state", "The call ran.")
        await host.shown("arguments", "old.txt")
        problems = [each for each in await host.window.problems() if "fonts" not in each and "NAME_NOT" not in each]
    assert problems == []


async def test_a_page_of_a_server_behind_the_gateway_is_shown_with_its_origin_and_calls_its_own_tools(
    tmp_path: Path,
) -> None:
    config = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "args": ["-m", "trysquare", "serve", "tests.e2e.app_tools:tools"]}
    config.write_text(json.dumps({"mcpServers": {"shop": entry}}), encoding="utf-8")
    gateway = [*SERVER[:4], "--gateway", str(config), "--project", str(tmp_path), "--profile", "full"]
    listed = await asyncio.create_subprocess_exec(
        *SERVER[:3], "list", *gateway[4:], cwd=REPOSITORY, stdout=asyncio.subprocess.DEVNULL,
        env={**{name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert await listed.wait() == 0
    # Inspector takes options for its own.
    script = tmp_path / "serve.sh"
    script.write_text(f"exec {shlex.join(gateway)}\n", encoding="utf-8")
    async with inspector(["sh", str(script)], tmp_path) as host:
        await host.open_app("shop__order", article="lamp")
        await host.view(["getByTestId", "origin"], ["getByText", "Page of the server shop"], ["waitFor"])
        page: list[object] = ["frameLocator", "iframe"]
        await host.view(page, ["getByTestId", "outcome"], ["getByText", "1 x lamp"], ["waitFor"])
        await host.view(page, ["getByTestId", "field-count"], ["fill", "4"])
        await host.view(page, ["getByTestId", "run"], ["click"])
        await host.view(page, ["getByTestId", "outcome"], ["getByText", "4 x lamp"], ["waitFor"])

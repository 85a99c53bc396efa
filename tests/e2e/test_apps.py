"""Pages of tools, shown and answered in Inspector's web client."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.inspector_web import inspector

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

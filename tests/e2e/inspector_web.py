"""Inspector's web client, the host that shows apps, in a headless browser."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.console.chromium import Window, open_chromium
from tests.e2e.inspector import LAUNCHER
from tests.e2e.stdio_process import REPOSITORY
from tests.gateway.torture.fronts import free_port
from tests.support import node_command

_VIEW = [["frameLocator", "iframe"], ["frameLocator", "iframe"]]
"""The page of an app is a frame inside the frame that holds it back."""


class Inspector:
    """One window of Inspector that is connected to a server."""

    def __init__(self, window: Window) -> None:
        self.window = window

    async def open_app(self, name: str, /, **arguments: str) -> None:
        """Fill in the arguments of a tool that has a page, and call it."""
        await self.window.do(["getByText", name, {"exact": True}], ["first"], ["click"])
        for argument, value in arguments.items():
            await self.window.do(["getByLabel", argument], ["first"], ["fill", value])
        await self.press("Open App")

    async def press(self, name: str) -> None:
        await self.window.do(["getByRole", "button", {"name": name, "exact": True}], ["first"], ["click"])

    async def agree(self) -> None:
        """Answer the question for consent that Inspector shows."""
        await self.window.do(["getByLabel", "Approve this call"], ["check"])
        await self.press("Submit")

    async def shown(self, test_id: str, text: str) -> None:
        """Wait until an element of the app's page shows a text."""
        await self.window.do(*_VIEW, ["getByTestId", test_id], ["getByText", text], ["first"], ["waitFor"])

    async def view(self, *calls: list[object]) -> object:
        """Methods on the app's page."""
        return await self.window.do(*_VIEW, *calls)


@asynccontextmanager
async def inspector(server: Sequence[str], home: Path, *, era: str = "auto") -> AsyncGenerator[Inspector]:
    """Inspector's web client, connected to a server that it starts."""
    process = await asyncio.create_subprocess_exec(
        *node_command(LAUNCHER),
        *("--web", "--protocol-era", era, "--", *server),
        cwd=REPOSITORY,
        env={
            **os.environ, "HOME": str(home), "CLIENT_PORT": str(free_port()), "MCP_SANDBOX_PORT": "0",
            "MCP_AUTO_OPEN_ENABLED": "false", "MCP_INSPECTOR_SECRET_STORE": "memory", "MCP_LOG_FILE": str(home / "log"),
        },
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        address = await asyncio.wait_for(_address(process), 60)
        with open_chromium() as browser:
            async with browser.window() as window:
                await window.open(address)
                await window.do(["getByRole", "switch"], ["first"], ["click", {"force": True}])
                await window.do(["getByText", "Apps", {"exact": True}], ["first"], ["click"])
                yield Inspector(window)
    finally:
        process.terminate()
        await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    """The address that it prints, with the key in it."""
    assert process.stdout is not None
    printed = ""
    async for line in process.stdout:
        printed += line.decode()
        if (found := re.search(r"http://\S+", line.decode())) and "github.com" not in found[0]:
            return found[0]
    raise AssertionError(f"Inspector ended: {printed}")

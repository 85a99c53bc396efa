"""A real Chromium that looks at the console, driven through playwright-core."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import threading
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

from tests.support import NODE_PROJECT, missing_component, node_command, node_program

DESKTOP, PHONE = (1280, 860), (390, 844)
_MADE = itertools.count()
_AUTHENTICATOR = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


class PageError(AssertionError):
    """Chromium could not do what was asked, such as finding an element in time."""


class Chromium:
    """One browser, whose windows share nothing."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._answers: dict[int, Future[Any]] = {}
        self._ids = itertools.count()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            waiting = self._answers.pop(answer["id"])
            if not waiting.set_running_or_notify_cancel():
                continue
            if "error" in answer:
                waiting.set_exception(PageError(answer["error"]))
            else:
                waiting.set_result(answer["value"])

    async def run(self, on: str, *calls: list[Any], keep: str | None = None) -> Any:
        """Call methods one after the other, each on what the one before returned."""
        number, answer = next(self._ids), Future[Any]()
        self._answers[number] = answer
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "on": on, "calls": calls, "keep": keep}) + "\n")
        self._process.stdin.flush()
        return await asyncio.wrap_future(answer)

    @asynccontextmanager
    async def window(
        self, *, size: tuple[int, int] = DESKTOP, dark: bool = False, axe: bool = False, scale: float = 1
    ) -> AsyncGenerator[Window]:
        """A window of its own, with its own cookies; `axe` brings what looks for faults of accessibility."""
        context = f"context{next(_MADE)}"
        width, height = size
        options = {
            "viewport": {"width": width, "height": height}, "colorScheme": "dark" if dark else "light",
            "reducedMotion": "reduce", "deviceScaleFactor": scale,
        }  # fmt: skip
        await self.run("browser", ["newContext", options], keep=context)
        try:
            if axe:
                await self.run(
                    context, ["addInitScript", {"path": str(NODE_PROJECT / "node_modules/axe-core/axe.min.js")}]
                )
            window = Window(browser=self, context=context)
            yield await window.tab()
        finally:
            await self.run(context, ["close"])


@dataclass(kw_only=True)
class Window:
    """One tab. Elements are found by their `data-testid`."""

    browser: Chromium
    context: str
    page: str = ""
    cdp: str = ""
    passkeys: str = field(default="")

    async def tab(self) -> Window:
        """Another tab of the same window."""
        opened = Window(browser=self.browser, context=self.context, page=f"page{next(_MADE)}")
        await self.browser.run(self.context, ["newPage"], keep=opened.page)
        return opened

    async def do(self, *calls: list[Any]) -> Any:
        """Methods of the page, in playwright's names."""
        return await self.browser.run(self.page, *calls)

    async def open(self, address: str) -> None:
        await self.do(["goto", address])

    async def click(self, name: str, *, nth: int = 0) -> None:
        await self.do(["getByTestId", name], ["nth", nth], ["click"])

    async def fill(self, name: str, value: str) -> None:
        await self.do(["getByTestId", name], ["first"], ["fill", value])

    async def choose(self, name: str, value: str) -> None:
        await self.do(["getByTestId", name], ["first"], ["selectOption", value])

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.do(["keyboard"], ["press", key])

    async def type(self, text: str) -> None:
        await self.do(["keyboard"], ["type", text])

    async def text(self, name: str, *, nth: int = 0) -> str:
        """The visible text of an element, once there is one."""
        return await self.do(["getByTestId", name], ["nth", nth], ["innerText"])

    async def texts(self, name: str) -> list[str]:
        return await self.do(["getByTestId", name], ["allInnerTexts"])

    async def shows(self, text: str, *, within: str = "", nth: int = 0) -> None:
        """Wait until a text is visible, inside an element or anywhere."""
        place = [["getByTestId", within], ["nth", nth]] if within else [["locator", "body"]]
        await self.do(*place, ["getByText", text], ["first"], ["waitFor"])

    async def appears(self, name: str, *, nth: int = 0) -> None:
        await self.do(["getByTestId", name], ["nth", nth], ["waitFor"])

    async def disappears(self, name: str) -> None:
        await self.do(["getByTestId", name], ["first"], ["waitFor", {"state": "detached"}])

    async def until(self, expression: str) -> None:
        """Wait until an expression of the page is true."""
        # Not by `waitForFunction`, which evaluates text inside the page: its policy forbids that.
        looks = f"const look = () => ({expression}) ? done(null) : setTimeout(look, 30); look();"
        async with asyncio.timeout(60):
            await self.evaluate(f"new Promise((done) => {{ {looks} }})")

    async def evaluate(self, expression: str) -> Any:
        return await self.do(["evaluate", expression])

    async def problems(self) -> list[str]:
        """Errors and refusals so far, and requests to other hosts."""
        return await self.browser.run(f"{self.page}.problems", ["found"])

    async def add_authenticator(self, **options: Any) -> None:
        """An authenticator with a user at it, instead of a device."""
        self.cdp = f"cdp{next(_MADE)}"
        await self.browser.run(self.context, ["newCDPSession", {"known": self.page}], keep=self.cdp)
        await self.browser.run(self.cdp, ["send", "WebAuthn.enable"])
        made = await self.authenticator("addVirtualAuthenticator", options={**_AUTHENTICATOR, **options})
        self.passkeys = made["authenticatorId"]

    async def authenticator(self, method: str, **values: Any) -> Any:
        """A command of the domain WebAuthn."""
        given = values if "options" in values else {"authenticatorId": self.passkeys, **values}
        return await self.browser.run(self.cdp, ["send", f"WebAuthn.{method}", given])

    async def credentials(self) -> list[dict[str, Any]]:
        """The passkeys of the authenticator, with their private keys."""
        return (await self.authenticator("getCredentials"))["credentials"]

    async def faults(self) -> list[str]:
        """What axe-core finds on the page that is serious: the rule, and where."""
        found = await self.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    async def picture(self, file: Path, *, whole: bool = False) -> None:
        await self.do(["screenshot", {"path": str(file), "fullPage": whole}])


@contextmanager
def open_chromium() -> Generator[Chromium]:
    """Start the browser, and end it."""
    node_command("playwright-core/package.json")
    program = which("chromium")
    if program is None:
        missing_component("Chromium", "run `make system`")
    command = [node_program(), str(NODE_PROJECT / "browser.mjs"), str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield Chromium(process)
        finally:
            process.stdin.close()
            process.wait(30)

"""The console on a real port of this machine, and browsers without windows that look at it."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.console.chromium import Chromium, Window, open_chromium
from trysquare import Tools
from trysquare.app import App, load_own_settings, open_app
from trysquare.client import Client
from trysquare.client.connect import Target
from trysquare.console import Console, Sessions, open_console
from trysquare.console.passkeys import open_registration
from trysquare.server import HttpOptions, build_server, serve_http
from trysquare.server.http.app import token_verifier
from trysquare.settings import Origin
from trysquare.settings.keys import Given

HTML = {"accept": "text/html"}


@dataclass(kw_only=True)
class Browser:
    """Somebody who is signed in."""

    http: httpx2.AsyncClient
    csrf: str = ""

    async def get(self, path: str, *, part: bool = False) -> str:
        """A page, or a part of one."""
        response = await self.http.get(path, headers={**HTML, **({"hx-request": "true"} if part else {})})
        assert response.status_code == 200, response.text
        return response.text

    async def post(self, path: str, fields: dict[str, str] | list[tuple[str, str]], **headers: str) -> httpx2.Response:
        """A form, sent as one of the console's own pages sends it."""
        pairs = list(fields.items()) if isinstance(fields, dict) else fields
        given = {"origin": str(self.http.base_url).rstrip("/"), "hx-request": "true", **headers}
        body = str(httpx2.QueryParams([("csrf", self.csrf), *pairs]))
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return await self.http.post(path, content=body, headers={**kind, **given})

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[Callable[[str], Awaitable[None]]]:
        """An open page; what it yields waits for the next event of a topic."""
        events: asyncio.Queue[str] = asyncio.Queue()

        async def read() -> None:
            async with self.http.stream("GET", "/live", timeout=60) as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("event: "):
                        events.put_nowait(line.removeprefix("event: "))

        async def wait_for(topic: str) -> None:
            while await events.get() != topic:
                pass

        reading = asyncio.create_task(read())
        try:
            async with asyncio.timeout(60):
                await wait_for("needs")
            yield wait_for
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def questions(self, wait_for: Callable[[str], Awaitable[None]], *, count: int = 1) -> list[str]:
        """What waits, as the forms of the page send it, once there are so many."""
        async with asyncio.timeout(60):
            while len(found := re.findall(r'data-question="[^"]*".*?name="question" value="([^"]+)"', await self.get("/", part=True), re.DOTALL)) != count:  # fmt: skip  # noqa: E501
                await wait_for("needs")
        return [html.unescape(each) for each in found]

    async def decide(self, question: str, choice: str, reason: str = "") -> str:
        """Decide a question; returns the answer of the page."""
        response = await self.post("/needs/decide", {"question": question, "choice": choice, "reason": reason})
        assert response.status_code == 200, response.text
        return response.text


@dataclass(kw_only=True)
class Site:
    """A served app with its console."""

    base: str
    app: App
    console: Console
    sessions: Sessions
    links: list[str] = field(default_factory=list[str])

    @asynccontextmanager
    async def visitor(self) -> AsyncGenerator[httpx2.AsyncClient]:
        """A browser that is not signed in."""
        # Shorter than the server keeps a connection, which would be closed while a request is sent on it.
        limits = httpx2.Limits(keepalive_expiry=1)
        async with httpx2.AsyncClient(base_url=self.base, timeout=60, limits=limits) as http:
            yield http

    @asynccontextmanager
    async def browser(self) -> AsyncGenerator[Browser]:
        """A browser that opened the link of the terminal."""
        async with self.visitor() as http:
            link = self.sessions.link
            assert link is not None
            response = await http.get(link, follow_redirects=True, headers=HTML)
            assert response.status_code == 200
            found = re.search(r'data-csrf="([^"]+)"', response.text)
            assert found is not None
            yield Browser(http=http, csrf=found[1])

    @property
    def page(self) -> str:
        """The address of the page, at the name for which browsers have passkeys."""
        return self.base.replace("127.0.0.1", "localhost")

    async def enter(self, window: Window, path: str = "/") -> None:
        """Open the link of the terminal in a real browser, then a page."""
        await window.open(f"{self.page}{self.sessions.link}")
        if path != "/":
            await window.open(f"{self.page}{path}")

    def client(self, **options: Any) -> Client:
        """An MCP client of the same app, in memory."""
        return Client(Target(server=build_server(self.app.toolset, self.app.serve_options())), **options)


@asynccontextmanager
async def serving(
    project: Path,
    tools: Tools | None = None,
    *,
    http: HttpOptions | None = None,
    registers: str | None = None,
    **settings: Any,
) -> AsyncGenerator[Site]:
    """Serve tools with their console until the block ends."""
    given = {
        name: Given(value=value, origin=Origin(source="option", location=name)) for name, value in settings.items()
    }
    loaded = load_own_settings(project, given)
    options = http or HttpOptions(port=0)
    async with open_app(loaded.settings, origins=loaded.origins, own=tools and tools.toolset()) as app:
        served = app.serve_options(shared=True)
        sessions = Sessions(has_link=True, verifier=token_verifier(options) if options.is_authenticated else None)
        passkeys = project / ".trysquare-passkeys"
        registration = None if registers is None else open_registration(registers, passkeys)
        console = open_console(
            app, loaded.origins, sessions, toolset=app.toolset, options=served, registration=registration
        )
        async with console as pages:
            address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            running = asyncio.create_task(
                serve_http(app.toolset, served, options, pages=pages, started=address.set_result)
            )
            try:
                base = (await address).removesuffix("/mcp")
                yield Site(base=base, app=app, console=pages, sessions=sessions)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


@pytest.fixture(scope="session")
def chromium() -> Generator[Chromium]:
    """One browser for all tests of a worker."""
    with open_chromium() as browser:
        yield browser


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that is a project."""
    (tmp_path / "trysquare.toml").write_text("", encoding="utf-8")
    return tmp_path

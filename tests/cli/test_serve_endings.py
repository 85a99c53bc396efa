"""How `trysquare serve` ends, by the end of its input or a signal: what tools opened is closed, whatever they do."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.server.clients import MODERN_META
from tests.server.raw_http import usual_fields

SECONDS = 60
PROVIDER = """
import asyncio, sys, threading
from contextlib import asynccontextmanager
from trysquare import CallContext, StaticToolset, tool


def note(text):
    print(text, file=sys.stderr, flush=True)


async def stubborn() -> str:
    \"\"\"Go on whatever happens.\"\"\"
    note("stubborn runs")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            note("stubborn goes on")


async def threaded() -> str:
    \"\"\"Hang in a thread of the standard executor.\"\"\"
    note("threaded runs")
    await asyncio.to_thread(threading.Event().wait)
    return "never"


async def polite() -> str:
    \"\"\"Clean up when cancelled.\"\"\"
    note("polite runs")
    try:
        await asyncio.Event().wait()
    finally:
        note("polite has cleaned up")
    return "never"


def hang() -> str:
    \"\"\"Hang in a thread.\"\"\"
    note("hang runs")
    threading.Event().wait()
    return "never"


@asynccontextmanager
async def open_tools(settings, origins):
    try:
        yield StaticToolset([tool(each) for each in (stubborn, threaded, polite, hang)])
    finally:
        await asyncio.sleep(0)
        note("provider closed")
"""


@pytest.fixture
def provider(project: Path) -> Path:
    """A provider of tools that is installed as an entry point, of which it is seen when it is closed."""
    (project / "endings.py").write_text(PROVIDER, encoding="utf-8")
    package = project / "endings-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: endings\nVersion: 1\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[trysquare.providers]\nendings = endings:open_tools\n", encoding="utf-8")
    (project / "trysquare.toml").write_text('providers = "endings"\n', encoding="utf-8")
    return project


class Server:
    """A server as a process, whose log is read line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.log: list[str] = []

    def until(self, text: str) -> str:
        """The first line of the log with a text."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line)
            if text in line:
                return line
        raise AssertionError(f"the log ended without `{text}`: {''.join(self.log)}")

    def call(self, name: str) -> None:
        assert self._process.stdin is not None
        params = {"name": name, "arguments": {}, "_meta": MODERN_META}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        self.until(f"{name} runs")

    def end(self, how: signal.Signals | None) -> int:
        """End it, by the end of its input or a signal; its exit code."""
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        if how is None:
            self._process.stdin.close()
        else:
            self._process.send_signal(how)
        code = self._process.wait(SECONDS)
        self.log += self._process.stderr.readlines()
        return code


@contextmanager
def serving(*options: str) -> Generator[Server]:
    command = [sys.executable, "-m", "trysquare", "serve", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


ENDINGS = {None: 0, signal.SIGINT: 130, signal.SIGTERM: 143}
endings = pytest.mark.parametrize("how", ENDINGS)


@endings
@pytest.mark.parametrize("name", ["polite", "hang", "stubborn", "threaded"])
def test_over_stdio_whatever_a_tool_does_the_provider_is_closed_and_the_process_ends(
    provider: Path, how: signal.Signals | None, name: str
) -> None:
    with serving() as server:
        server.call(name)
        assert server.end(how) == ENDINGS[how]
    assert [line for line in server.log if "provider closed" in line]
    assert "Traceback" not in "".join(server.log)
    if name == "polite":
        assert [line for line in server.log if "has cleaned up" in line]
    if name in ("stubborn", "threaded"):
        assert [line for line in server.log if "still running" in line], "the log says why it did not wait"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ["polite", "stubborn"])
async def test_over_http_whatever_a_tool_does_the_provider_is_closed_and_the_process_ends(
    provider: Path, how: signal.Signals, name: str
) -> None:
    with serving("--http", "127.0.0.1:0") as server:
        address = server.until("Serving at").split("Serving at ")[1].split()[0]
        params = {"name": name, "arguments": {}, "_meta": MODERN_META}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with httpx2.AsyncClient() as client:
            with pytest.raises(httpx2.ReadTimeout):
                await client.post(address, json=request, headers=dict(usual_fields("tools/call", name)), timeout=1)
        server.until(f"{name} runs")
        assert server.end(how) == ENDINGS[how]
    assert [line for line in server.log if "provider closed" in line]

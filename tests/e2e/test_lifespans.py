"""Lifespans in real processes: opened once by what calls tools, and closed however the process ends."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.server.clients import served_http
from trysquare import Toolset
from trysquare.server import http_app

SERVER = '''
from collections.abc import AsyncIterator
from pathlib import Path

from trysquare import Tools

tools = Tools("counter")
JOURNAL = Path(__file__).with_name("journal")


class Journal:
    def write(self, word: str) -> None:
        with JOURNAL.open("a") as file:
            file.write(word + "\\n")


@tools.lifespan
async def journal() -> AsyncIterator[Journal]:
    opened = Journal()
    opened.write("open")
    yield opened
    opened.write("close")


@tools.tool
def note(word: str, journal: Journal) -> str:
    """Write a word."""
    journal.write(word)
    return word
'''
HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"x","version":"1"}}}\n'
)


@pytest.fixture
def server(tmp_path: Path) -> Path:
    path = tmp_path / "journal_server.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


def command(server: Path, *words: str) -> list[str]:
    named = ("--project", str(server.parent), "--tools", server.stem)
    return [sys.executable, "-m", "trysquare", words[0], *named, *words[1:]]


def journal(server: Path) -> list[str]:
    path = server.with_name("journal")
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def loaded(server: Path, monkeypatch: pytest.MonkeyPatch) -> Toolset:
    monkeypatch.syspath_prepend(server.parent)
    monkeypatch.delitem(sys.modules, server.stem, raising=False)
    return importlib.import_module(server.stem).tools.toolset()


@contextmanager
def started(server: Path, *words: str) -> Generator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command(server, "serve", *words), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda process: process.stdin.close(), 0),
        (lambda process: process.send_signal(signal.SIGTERM), 143),
        (lambda process: process.send_signal(signal.SIGINT), 130),
    ],
    ids=["eof", "sigterm", "sigint"],
)
def test_a_lifespan_is_closed_however_a_server_over_stdio_ends(
    server: Path, end: Callable[[Any], None], status: int
) -> None:
    with started(server) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(HELLO)
        process.stdin.flush()
        assert b'"counter"' in process.stdout.readline()
        assert journal(server) == ["open"]
        end(process)
        assert process.wait(timeout=30) == status
    assert journal(server) == ["open", "close"]


SLOW = """

import asyncio, os, sys, time


class Slow:
    pass


@tools.lifespan
async def slow() -> AsyncIterator[Slow]:
    opened = Journal()
    opened.write("opening")
    print("opening", file=sys.stderr, flush=True)
    {opens}
    yield Slow()
    print("closing", file=sys.stderr, flush=True)
    {closes}
    opened.write("slow closed")
"""


def until(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stderr is not None
    while word not in (line := process.stderr.readline()):
        assert line


@pytest.mark.parametrize("words", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_what_is_open_is_closed_on_sigterm_while_more_is_opened(server: Path, words: tuple[str, ...]) -> None:
    waits = SLOW.format(opens="await asyncio.Event().wait()", closes="")
    server.write_text(SERVER + waits, encoding="utf-8")
    with started(server, *words) as process:
        until(process, b"opening")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
    assert journal(server) == ["open", "opening", "close"]


def test_an_opening_that_nothing_interrupts_does_not_keep_the_process(server: Path) -> None:
    server.write_text(SERVER + SLOW.format(opens="time.sleep(3600)", closes=""), encoding="utf-8")
    with started(server) as process:
        until(process, b"opening")
        process.send_signal(signal.SIGTERM)
        until(process, b"exiting")
        assert process.wait(timeout=30) == 143


def test_sigterm_while_a_lifespan_is_closed_lets_it_end(server: Path) -> None:
    go_on = server.with_name("go_on")
    os.mkfifo(go_on)
    closes = f"await asyncio.to_thread(Path({str(go_on)!r}).read_bytes)"
    server.write_text(SERVER + SLOW.format(opens="", closes=closes), encoding="utf-8")
    with started(server) as process:
        assert process.stdin is not None
        process.stdin.close()
        until(process, b"closing")
        process.send_signal(signal.SIGTERM)
        go_on.write_bytes(b"now")
        assert process.wait(timeout=30) == 0
    assert journal(server) == ["open", "opening", "slow", "closed", "close"]


def test_a_lifespan_is_shared_by_all_sessions_over_http_and_closed_on_sigterm(server: Path) -> None:
    with started(server, "--http", "127.0.0.1:0") as process:
        assert process.stderr is not None
        line = b""
        while b"http://" not in line:
            line = process.stderr.readline()
            assert line
        url = next(word for word in line.decode().split() if word.startswith("http://")).rstrip(".,")
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        for _ in range(2):
            assert httpx2.post(url, content=HELLO, headers=headers).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
    assert journal(server) == ["open", "close"]


def test_only_commands_that_call_open_a_lifespan(server: Path) -> None:
    assert subprocess.run(command(server, "list"), capture_output=True, check=True).stdout
    assert journal(server) == []
    called = subprocess.run(command(server, "call", "note", "word=hello"), capture_output=True, check=True)
    assert called.stdout.strip() == b"hello"
    assert journal(server) == ["open", "hello", "close"]


def test_a_lifespan_that_fails_ends_the_server_with_the_authors_lines(server: Path) -> None:
    server.write_text(SERVER.replace("opened = Journal()", "opened = connect()"), encoding="utf-8")
    for words in (("serve",), ("serve", "--http", "127.0.0.1:0"), ("call", "note", "word=x")):
        done = subprocess.run(command(server, *words), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout) == (1, "")
        assert "`journal` failed to open: NameError" in done.stderr
        assert f"{server}:19 in journal" in done.stderr
        assert "site-packages" not in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_calls_a_tool_with_what_a_lifespan_opened(server: Path, mode: Any) -> None:
    words = command(server, "serve")
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    async with Client(stdio_client(parameters), mode=mode) as client:
        [note] = [tool for tool in (await client.list_tools()).tools if tool.name == "note"]
        assert "journal" not in note.input_schema["properties"]
        assert not (await client.call_tool("note", {"word": "one"})).is_error
        assert not (await client.call_tool("note", {"word": "two"})).is_error
    assert journal(server) == ["open", "one", "two", "close"]


async def test_an_application_that_is_mounted_without_a_lifespan_opens_it_with_the_first_request(
    server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolset = loaded(server, monkeypatch)
    app = http_app(toolset)
    transport = httpx2.ASGITransport(app)  # it sends requests only
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "host": "localhost:1",
    }
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1", headers=headers) as client:
        assert (await client.post("/mcp", content=HELLO)).status_code == 200
        assert (await client.post("/mcp", content=HELLO)).status_code == 200
    assert journal(server) == ["open"]
    async with served_http(toolset) as url, Client(f"{url}/mcp") as connected:
        assert not (await connected.call_tool("note", {"word": "one"})).is_error
    assert journal(server) == ["open", "one"]

"""Sources that are served while their files change."""

from __future__ import annotations

import asyncio
import itertools
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO

import pytest

from trysquare import Client, Toolset
from trysquare.reload import open_reloading

TOOLS = """
import {helper}
from trysquare import Tools

tools = Tools("live")


@tools.lifespan
def opened():
    {helper}.LOG.append("open")
    yield {helper}.LOG
    {helper}.LOG.append("close")


@tools.tool
def value() -> int:
    return {helper}.VALUE
"""
MORE = "\n\n@tools.tool\ndef more() -> int:\n    return 9\n"


class Files:
    """A source of tools and the module that it imports."""

    def __init__(self, folder: Path, name: str) -> None:
        self.source, self._helper = folder / f"{name}.py", folder / f"{name}_helper.py"
        self.text = TOOLS.format(helper=self._helper.stem)
        self.write(self.text)
        self.set_value(1)

    def write(self, text: str) -> None:
        self.source.write_text(text, encoding="utf-8")

    def set_value(self, value: int) -> None:
        self._helper.write_text(f"VALUE, LOG = {value}, []\n", encoding="utf-8")


@asynccontextmanager
async def reloading(files: Files) -> AsyncGenerator[tuple[Toolset, asyncio.Queue[str]]]:
    async with asyncio.timeout(60), open_reloading([str(files.source)], project=files.source.parent) as toolset:
        changes: asyncio.Queue[str] = asyncio.Queue()
        toolset.subscribe(changes.put_nowait)
        yield toolset, changes


@contextmanager
def errors() -> Generator[asyncio.Queue[str]]:
    """The errors that are logged, as they come."""
    found: asyncio.Queue[str] = asyncio.Queue()
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.put_nowait(record.getMessage())
    logger = logging.getLogger("trysquare.reload")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def names(toolset: Toolset) -> list[str]:
    return [tool.name for tool in toolset.tools()]


async def test_a_changed_file_or_sibling_is_served_at_once(tmp_path: Path) -> None:
    files = Files(tmp_path, "live_a")
    async with reloading(files) as (toolset, changes):
        log = sys.modules["live_a_helper"].LOG
        files.write(files.text + MORE)
        assert await changes.get() == "tools"
        assert names(toolset) == ["value", "more"]
        while not changes.empty():
            changes.get_nowait()
        files.set_value(2)
        assert await changes.get() == "tools"
        async with Client(toolset) as client:
            assert (await client.call_tool("value")).data == 2
        assert [log, sys.modules["live_a_helper"].LOG] == [["open", "close"], ["open"]]


async def test_a_version_that_cannot_be_imported_changes_nothing_until_it_is_repaired(tmp_path: Path) -> None:
    files = Files(tmp_path, "live_b")
    async with reloading(files) as (toolset, changes):
        with errors() as logged:
            files.write(files.text + "def broken(:\n")
            assert f"{files.source}:" in await logged.get()
            files.write("import not_there_yet\n" + files.text + MORE)
            assert "not_there_yet" in await logged.get()
        assert (names(toolset), changes.empty()) == (["value"], True)
        async with Client(toolset) as client:
            assert (await client.call_tool("value")).data == 1
        (tmp_path / "not_there_yet.py").touch()
        assert await changes.get() == "tools"
        assert names(toolset) == ["value", "more"]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_client_keeps_its_connection_over_stdio_and_hears_of_the_change(tmp_path: Path, version: str) -> None:
    files = Files(tmp_path, "live_c")
    files.write(files.text + '\n\nif __name__ == "__main__":\n    tools.run(reload=True)\n')
    changes: asyncio.Queue[str] = asyncio.Queue()
    command = [sys.executable, str(files.source)]
    async with (
        asyncio.timeout(60),
        Client.stdio(command, cwd=tmp_path, protocol_version=version, change_handler=changes.put_nowait) as client,
    ):
        assert (await client.call_tool("value")).data == 1
        files.set_value(2)
        assert await changes.get() == "tools"
        assert (await client.call_tool("value")).data == 2


@contextmanager
def developing(files: Files) -> Generator[IO[str]]:
    """What `trysquare dev` prints."""
    command = [sys.executable, "-m", "trysquare", "dev", str(files.source), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr
        finally:
            process.terminate()
            process.wait(timeout=30)


async def test_dev_serves_on_this_machine_says_what_to_type_and_shows_calls(tmp_path: Path) -> None:
    files = Files(tmp_path, "live_d")
    with developing(files) as printed:
        shown = list(itertools.takewhile(lambda line: not line.startswith("Calls:"), printed))
        address = next(word.strip(",") for line in shown for word in line.split() if word.startswith("http://"))
        assert f"  trysquare call {address} value\n" in shown
        changes: asyncio.Queue[str] = asyncio.Queue()
        async with asyncio.timeout(60), Client(address, change_handler=changes.put_nowait) as client:
            assert (await client.call_tool("value")).data == 1
            files.set_value(2)
            assert await changes.get() == "tools"
            assert (await client.call_tool("value")).data == 2
        assert any("value {}  ok" in line for line in iter(printed.readline, ""))

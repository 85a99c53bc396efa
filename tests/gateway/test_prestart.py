"""Prestart: the server that the last session called first runs before its first call, and no other does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, NoReturn

import anyio
import pytest

from tests.gateway.marked_processes import marked, none_is_left
from tests.gateway.opened import ADD, Place, opened
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.gateway import read_config
from trysquare.gateway.prestart import servers_to_prestart
from trysquare.store import Database
from trysquare.store.database import open_database
from trysquare.store.pins import CommandPins


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path)


@pytest.fixture
def marks() -> dict[str, str]:
    """The mark of each server's processes."""
    return {name: token_hex(8) for name in ("sums", "texts")}


def entry(place: Place, name: str, mark: str, **settings: Any) -> JsonObject:
    return {**place.server(name, ADD), "env": {"TOY_MARK": mark}, **({"x-trysquare": settings} if settings else {})}


def write_two(place: Place, marks: dict[str, str], **settings: Any) -> None:
    place.write_config({name: entry(place, name, mark, **settings) for name, mark in marks.items()})


def running(marks: dict[str, str]) -> dict[str, list[int]]:
    found = {name: [one.pid for one in marked(mark)] for name, mark in marks.items()}
    return {name: pids for name, pids in found.items() if pids}


async def use(place: Place, *servers: str, **options: Any) -> None:
    """A session that calls these servers in turn."""
    async with opened(place, prestart=True, **options) as gateway:
        for server in servers:
            assert (await gateway.execute(server, "add", a=1, b=2)).success


async def test_a_session_starts_the_server_that_the_last_one_called_first(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks)
    async with opened(place, prestart=True) as gateway:
        assert running(marks) == {}
        assert (await gateway.execute("texts", "add", a=1, b=2)).success
        assert (await gateway.execute("sums", "add", a=1, b=2)).success
    assert running(marks) == {}
    async with opened(place, prestart=True) as gateway:
        prestarted = running(marks)
        assert list(prestarted) == ["texts"]
        assert (await gateway.execute("texts", "add", a=1, b=2)).success
        assert running(marks) == prestarted
    assert running(marks) == {}


async def test_a_session_without_a_call_changes_nothing(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks)
    await use(place, "texts")
    await use(place)
    async with opened(place, prestart=True):
        assert list(running(marks)) == ["texts"]


async def test_only_sessions_count_and_only_sessions_prestart(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks)
    await use(place, "texts")
    async with opened(place) as gateway:
        assert running(marks) == {}
        assert (await gateway.execute("sums", "add", a=1, b=2)).success
    async with opened(place, prestart=True):
        assert list(running(marks)) == ["texts"]


async def test_the_file_says_always_or_never(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks)
    await use(place, "texts", "sums")
    write_two(place, marks, prestart="never")
    async with opened(place, prestart=True):
        assert running(marks) == {}
    write_two(place, marks, prestart="always")
    async with opened(place, prestart=True):
        assert list(running(marks)) == ["sums", "texts"]


async def test_a_changed_command_is_not_started_before_it_is_approved(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks, prestart="always")
    await use(place, "texts", "sums")
    changed = entry(place, "texts", marks["texts"], prestart="always")
    changed["args"] = ["-I", *changed["args"]]
    place.write_config({"sums": entry(place, "sums", marks["sums"], prestart="always"), "texts": changed})
    async with opened(place, prestart=True) as gateway:
        assert list(running(marks)) == ["sums"]
        refused = await gateway.execute("texts", "add", a=1, b=2)
        assert refused.code == ErrorCode.CONSENT_REQUIRED


async def test_a_server_that_was_never_used_is_not_started(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks, prestart="always")
    async with opened(place, prestart=True):
        assert running(marks) == {}


async def test_a_server_that_has_ended_meanwhile_is_started_by_its_call(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks)
    await use(place, "texts")
    async with opened(place, prestart=True) as gateway:
        [pid] = running(marks)["texts"]
        os.kill(pid, signal.SIGKILL)
        await none_is_left(marks["texts"])
        assert (await gateway.execute("texts", "add", a=1, b=2)).success
        assert len(running(marks)["texts"]) == 1


async def test_a_server_that_nobody_calls_ends_after_its_idle_time(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks)
    await use(place, "texts")
    write_two(place, marks, idle=0.05)
    async with opened(place, prestart=True) as gateway:
        with anyio.fail_after(60):
            await none_is_left(marks["texts"])
        assert (await gateway.execute("texts", "add", a=1, b=2)).success


async def test_a_removed_server_ends(place: Place, marks: dict[str, str]) -> None:
    write_two(place, marks)
    await use(place, "texts")
    async with opened(place, prestart=True) as gateway:
        assert list(running(marks)) == ["texts"]
        place.write_config({"sums": entry(place, "sums", marks["sums"])})
        with anyio.fail_after(60):
            await none_is_left(marks["texts"])
        assert (await gateway.execute("sums", "add", a=1, b=2)).success


async def test_a_server_that_cannot_be_started_fails_at_its_call(
    place: Place, marks: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    program = place.folder / "bin" / "python"
    program.parent.mkdir()
    program.symlink_to(shutil.which(sys.executable) or sys.executable)
    texts = {**entry(place, "texts", marks["texts"]), "command": str(program)}
    place.write_config({"texts": texts})
    await use(place, "texts")
    program.unlink()
    async with opened(place, prestart=True) as gateway:
        assert "prestart failed: server=texts" in caplog.text
        refused = await gateway.execute("texts", "add", a=1, b=2)
    assert refused.code == ErrorCode.UPSTREAM_UNAVAILABLE


def test_remote_servers_are_never_prestarted(place: Place, tmp_path: Path) -> None:
    place.write_config({"far": {"url": "https://example.com/mcp", "x-trysquare": {"prestart": "always"}}})
    with _pins(tmp_path) as pins:
        far = read_config(place.config).usable()["far"]
        pins.approve(far.location.file, "far", digest=far.launch_digest, shown="", by="me")
        pins.record_first_call(far.location.file, "far")
        assert servers_to_prestart(read_config(place.config), pins) == []


def test_the_same_name_in_another_file_is_another_server(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    for path in (place.config, other):
        path.write_text(json.dumps({"mcpServers": {"one": {"command": "run"}}}), encoding="utf-8")
    with _pins(tmp_path) as pins:
        for path in (place.config, other):
            one = read_config(path).usable()["one"]
            pins.approve(one.location.file, "one", digest=one.launch_digest, shown="", by="me")
        pins.record_first_call(str(other), "one")
        assert servers_to_prestart(read_config(place.config), pins) == []
        assert [server.name for server in servers_to_prestart(read_config(other), pins)] == ["one"]


def test_a_state_that_cannot_be_read_prestarts_nothing(place: Place) -> None:
    place.write_config({"one": {"command": "run"}})

    class Broken:
        def read(self) -> NoReturn:
            raise ToolError("The disk is gone.", code=ErrorCode.STATE_UNAVAILABLE)

        def write(self, *, durable: bool = True) -> NoReturn:
            self.read()

    assert servers_to_prestart(read_config(place.config), CommandPins(Broken())) == []


@contextmanager
def _pins(folder: Path) -> Generator[CommandPins]:
    database: Database = open_database(folder / "state" / "state.db")
    try:
        yield CommandPins(database)
    finally:
        database.close()

"""Prestart: the server that the last session called first runs before its first call, and no other does."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest

from tests.gateway.opened import ADD, Place, opened
from trysquare import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.gateway import read_config
from trysquare.gateway.prestart import servers_to_prestart
from trysquare.processes import supervisor
from trysquare.store import Database
from trysquare.store.database import open_database
from trysquare.store.pins import CommandPins


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path)


class Spawned:
    """Every process that was started, by the server whose mark it carries."""

    def __init__(self) -> None:
        self.children: list[tuple[str, supervisor.ChildProcess]] = []

    @property
    def running(self) -> dict[str, int]:
        return {name: child.pid for name, child in self.children if child.exit_status() is None}

    async def ended(self, name: str) -> None:
        with anyio.fail_after(60):
            for other, child in self.children:
                if other == name:
                    await child.exited.wait()


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> Spawned:
    found, start = Spawned(), supervisor.ProcessSupervisor.start

    def record(self: supervisor.ProcessSupervisor, command: supervisor.Command) -> supervisor.ChildProcess:
        child = start(self, command)
        found.children.append((command.environment["MARK"], child))
        return child

    monkeypatch.setattr(supervisor.ProcessSupervisor, "start", record)
    return found


def entry(place: Place, name: str, **settings: Any) -> JsonObject:
    return {**place.server(name, ADD), "env": {"MARK": name}, **({"x-trysquare": settings} if settings else {})}


def write_two(place: Place, **settings: Any) -> None:
    place.write_config({name: entry(place, name, **settings) for name in ("sums", "texts")})


async def use(place: Place, *servers: str, **options: Any) -> None:
    """A session that calls these servers in turn."""
    async with opened(place, prestart=True, **options) as gateway:
        for server in servers:
            assert (await gateway.execute(server, "add", a=1, b=2)).success


async def test_a_session_starts_the_server_that_the_last_one_called_first(place: Place, spawned: Spawned) -> None:
    write_two(place)
    async with opened(place, prestart=True) as gateway:
        assert spawned.running == {}
        assert (await gateway.execute("texts", "add", a=1, b=2)).success
        assert (await gateway.execute("sums", "add", a=1, b=2)).success
    assert spawned.running == {}
    async with opened(place, prestart=True) as gateway:
        prestarted = spawned.running
        assert list(prestarted) == ["texts"]
        assert (await gateway.execute("texts", "add", a=1, b=2)).success
        assert spawned.running == prestarted
    assert spawned.running == {}


async def test_a_session_without_a_call_changes_nothing(place: Place, spawned: Spawned) -> None:
    write_two(place)
    await use(place, "texts")
    await use(place)
    async with opened(place, prestart=True):
        assert list(spawned.running) == ["texts"]


async def test_only_sessions_count_and_only_sessions_prestart(place: Place, spawned: Spawned) -> None:
    write_two(place)
    await use(place, "texts")
    async with opened(place) as gateway:
        assert spawned.running == {}
        assert (await gateway.execute("sums", "add", a=1, b=2)).success
    async with opened(place, prestart=True):
        assert list(spawned.running) == ["texts"]


async def test_the_file_says_always_or_never(place: Place, spawned: Spawned) -> None:
    write_two(place)
    await use(place, "texts", "sums")
    write_two(place, prestart="never")
    async with opened(place, prestart=True):
        assert spawned.running == {}
    write_two(place, prestart="always")
    async with opened(place, prestart=True):
        assert list(spawned.running) == ["sums", "texts"]


async def test_a_changed_command_is_not_started_before_it_is_approved(place: Place, spawned: Spawned) -> None:
    write_two(place, prestart="always")
    await use(place, "texts", "sums")
    changed = entry(place, "texts", prestart="always")
    changed["args"] = ["-I", *changed["args"]]
    place.write_config({"sums": entry(place, "sums", prestart="always"), "texts": changed})
    async with opened(place, prestart=True) as gateway:
        assert list(spawned.running) == ["sums"]
        refused = await gateway.execute("texts", "add", a=1, b=2)
        assert refused.code == ErrorCode.CONSENT_REQUIRED
        assert list(spawned.running) == ["sums"]


async def test_a_server_that_was_never_used_is_not_started(place: Place, spawned: Spawned) -> None:
    write_two(place, prestart="always")
    async with opened(place, prestart=True):
        assert spawned.children == []


async def test_a_server_that_has_ended_meanwhile_is_started_by_its_call(place: Place, spawned: Spawned) -> None:
    write_two(place)
    await use(place, "texts")
    async with opened(place, prestart=True) as gateway:
        os.kill(spawned.running["texts"], signal.SIGKILL)
        await spawned.ended("texts")
        assert (await gateway.execute("texts", "add", a=1, b=2)).success
        assert list(spawned.running) == ["texts"]


async def test_a_server_that_nobody_calls_ends_after_its_idle_time(place: Place, spawned: Spawned) -> None:
    write_two(place)
    await use(place, "texts")
    write_two(place, idle=0.05)
    async with opened(place, prestart=True) as gateway:
        assert len(spawned.children) == 2
        await spawned.ended("texts")
        assert (await gateway.execute("texts", "add", a=1, b=2)).success


async def test_a_removed_server_ends(place: Place, spawned: Spawned) -> None:
    write_two(place)
    await use(place, "texts")
    async with opened(place, prestart=True) as gateway:
        assert list(spawned.running) == ["texts"]
        place.write_config({"sums": entry(place, "sums")})
        await spawned.ended("texts")
        assert (await gateway.execute("sums", "add", a=1, b=2)).success


async def test_a_server_that_cannot_be_started_fails_at_its_call(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    program = place.folder / "bin" / "python"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    place.write_config({"texts": {**entry(place, "texts"), "command": str(program)}})
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

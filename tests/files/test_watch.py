"""Watch: changes are told as they happen, by the system or by polling, also after the folder was replaced."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import missing_component
from trysquare.files import watch
from trysquare.files.watch import changes_below

SECONDS = 30.0
"""Only a test that fails waits as long as this."""


@pytest.fixture(params=["watched", "polled", "watching fails"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "polled":
        monkeypatch.setattr(watch, "_system_watch", lambda: None)
    elif request.param == "watching fails":
        monkeypatch.setattr(watch, "_system_watch", lambda: _no_watches_left)
    elif importlib.util.find_spec("watchfiles") is None:
        missing_component("watchfiles", "run `make test`, which installs it")
    return str(request.param)


async def _no_watches_left(*arguments: object, **options: object) -> AsyncIterator[set[tuple[int, str]]]:
    raise OSError(28, "no watches left")
    yield set()


def write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def make(folder: Path) -> None:
    folder.mkdir()


def replace(folder: Path) -> None:
    """Put another folder in the place of one."""
    folder.rename(folder.parent / "moved")
    folder.mkdir()


class Told:
    """What a watcher has told so far, gathered by a task of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: set[str] = set()
        self._news = asyncio.Event()

    async def __aenter__(self) -> Told:
        self._task = asyncio.create_task(self._gather())
        return self

    async def __aexit__(self, *ignored: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _gather(self) -> None:
        async for changed in changes_below(self._folder, poll_seconds=0.05):
            self._paths |= changed
            self._news.set()

    async def of(self, path: str, *, touching: Path | None = None) -> None:
        """Wait until a path is told. A file is touched again and again: a watcher begins a moment after it is asked."""
        async with asyncio.timeout(SECONDS):
            for count in itertools.count():
                if path in self._paths:
                    return
                if touching is not None:
                    write(touching, str(count))
                await self._wait()

    def has(self, path: str) -> bool:
        return path in self._paths

    async def _wait(self) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(0.1):
                await self._news.wait()
        except TimeoutError:
            return


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "watched"
    (made / "deep").mkdir(parents=True)
    (made / "old.md").write_text("old")
    return made


async def test_a_new_and_a_changed_file_are_told(way: str, folder: Path):
    async with Told(folder) as told:
        await told.of("deep/new.md", touching=folder / "deep" / "new.md")
        await told.of("old.md", touching=folder / "old.md")


async def test_a_removed_file_and_a_renamed_folder_are_told(way: str, folder: Path):
    async with Told(folder) as told:
        await told.of("first.md", touching=folder / "first.md")
        (folder / "old.md").unlink()
        await told.of("old.md")
        (folder / "deep").rename(folder / "other")
        await told.of("other")


async def test_a_link_out_of_the_folder_is_not_followed(way: str, folder: Path, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    for name, target in (("root", "/"), ("proc", "/proc"), ("outside", "../outside")):
        (folder / name).symlink_to(target)
    async with Told(folder) as told:
        await told.of("deep/a.md", touching=folder / "deep" / "a.md")
        (tmp_path / "outside" / "x.md").write_text("x")
        await told.of("b.md", touching=folder / "b.md")
        assert not told.has("outside/x.md")


async def test_a_new_folder_and_what_is_put_into_it_are_told(way: str, folder: Path):
    async with Told(folder) as told:
        await told.of("first.md", touching=folder / "first.md")
        (folder / "new" / "inner").mkdir(parents=True)
        (folder / "new" / "inner" / "at-once.md").write_text("x")
        await told.of("new/inner/at-once.md")
        await told.of("new/inner/later.md", touching=folder / "new" / "inner" / "later.md")


async def test_a_folder_that_is_removed_and_made_anew_is_told_and_followed(way: str, folder: Path):
    async with Told(folder) as told:
        await told.of("first.md", touching=folder / "first.md")
        shutil.rmtree(folder)
        await told.of(".")
        make(folder)
        await told.of("again.md", touching=folder / "again.md")


async def test_a_folder_that_another_one_takes_the_place_of_is_told(way: str, folder: Path):
    async with Told(folder) as told:
        await told.of("first.md", touching=folder / "first.md")
        replace(folder)
        await told.of(".")
        await told.of("again.md", touching=folder / "again.md")


async def test_a_folder_that_is_not_there_yet_is_waited_for(way: str, tmp_path: Path):
    async with Told(tmp_path / "later") as told:
        (tmp_path / "later").mkdir()
        await told.of("a.md", touching=tmp_path / "later" / "a.md")


async def test_a_system_that_cannot_watch_is_told_once_in_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(watch, "_system_watch", lambda: _no_watches_left)
    async with Told(folder) as told:
        await told.of("first.md", touching=folder / "first.md")
    [record] = [record for record in caplog.records if record.name == "trysquare.watch"]
    assert (record.levelname, f"path={folder}" in record.getMessage()) == ("WARNING", True)

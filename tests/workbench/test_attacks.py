"""Paths that want out of the workspace, or into what protects it, through every file tool."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.files.attacks import LINKS, SECRET, SPECIALS, TRAVERSALS, make_stage
from tests.support import size
from tests.workbench.workplace import Workplace, workplace

REFUSALS = {
    "FILE_NOT_ALLOWED",
    "FILE_NOT_FOUND",
    "FILE_CONFLICT",
    "VALIDATION_INVALID_PARAM",
    "CAPABILITY_NOT_SUPPORTED",
}
PROTECTED = [".git/config", ".git", "./.git/hooks/x", "a/../.git/config", ".GIT/config", ".trysquare/state.db",
             "sub/.git/config", "sub/.trysquare/state.db", ".trysquare", "x/.Git/hooks/pre-commit"]  # fmt: skip


def calls_on(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every call of a file tool that names a path."""
    yield from (("file", {"action": action, "path": path}) for action in ("read", "delete", "undo"))
    yield "file", {"action": "write", "path": path, "content": "x"}
    yield "file", {"action": "append", "path": path, "content": "x"}
    yield "file", {"action": "replace", "path": path, "old": "secret", "new": "x"}
    yield "code_edit", {"action": "get_lines", "path": path}
    yield "search", {"action": "find_in_file", "path": path, "pattern": "."}
    yield "search", {"action": "grep", "directory": path, "pattern": "secret"}
    yield "search", {"action": "find_files", "directory": path, "pattern": "*"}
    yield from (("navigate", {"action": action, "directory": path}) for action in ("list_directory", "get_tree"))
    yield from (("navigate", {"action": action, "path": path}) for action in ("get_file_outline", "find_imports"))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Workplace]:
    async with workplace(make_stage(tmp_path)) as opened:
        yield opened


def outside(place: Workplace) -> dict[str, str]:
    base = place.root.parent
    return {
        str(file): file.read_text() for file in base.rglob("*") if file.is_file() and place.root not in file.parents
    }


@pytest.mark.parametrize("number", range(4))
async def test_no_path_leads_outside(place: Workplace, number: int) -> None:
    before = outside(place)
    for turn, path in enumerate([*TRAVERSALS, *LINKS, *SPECIALS][number::4]):
        if "\ud800" in path or "\udcff" in path:
            continue
        for tool, arguments in calls_on(path):
            # A search that is not refused starts programs, so by default not every path is searched.
            if tool == "search" and turn % size(8, 1):
                continue
            told = await place.send(tool, **arguments)
            assert SECRET not in str(told), (tool, arguments)
            if not told["success"]:
                assert told["error"]["code"] in {*REFUSALS, "VALIDATION_INVALID_PARAM", "TOOL_TIMEOUT"}, told
    assert outside(place) == before


@pytest.mark.parametrize("path", PROTECTED)
async def test_what_decides_about_programs_and_permissions_is_not_touched(place: Workplace, path: str) -> None:
    for protected in (".git", ".trysquare", "sub/.git", "sub/.trysquare"):
        place.write(f"{protected}/config", "kept")
    for tool, arguments in calls_on(path):
        code, message = await place.refused(tool, **arguments)
        assert code == "FILE_NOT_ALLOWED", (tool, arguments, message)
    assert (place.root / ".git/config").read_text() == "kept"


async def test_a_link_inside_does_not_lead_to_what_is_protected(place: Workplace) -> None:
    place.write(".git/config", "kept secret")
    (place.root / "innocent").symlink_to(".git")
    (place.root / "innocent.txt").symlink_to(".git/config")
    for path in ("innocent/config", "innocent.txt"):
        for tool, arguments in calls_on(path):
            told = await place.send(tool, **arguments)
            assert "kept secret" not in str(told)
    assert (place.root / ".git/config").read_text() == "kept secret"


async def test_searches_and_trees_pass_over_what_is_protected(place: Workplace) -> None:
    place.write(".git/config", "kept secret")
    place.write("sub/.git/config", "kept secret")
    place.write(".trysquare/state.db", "kept secret")
    for arguments in ({"action": "grep", "pattern": "kept"}, {"action": "find_files", "pattern": "{config,state.db}"}):
        assert (await place.done("search", **arguments))["data"]["count"] == 0
    tree = await place.done("navigate", action="get_tree", show_hidden=True)
    assert ".git" not in tree["output"]


async def test_a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    secrets = tmp_path / "outside"
    secrets.mkdir()
    (secrets / "a.txt").write_text(SECRET)
    stop = threading.Event()
    async with workplace(tmp_path / "work") as place:
        place.write("real/a.txt", "inside\n")
        os.symlink(secrets, place.root / "link")
        swapping = threading.Thread(target=_swap, args=(place.root, stop))
        swapping.start()
        try:
            for _ in range(size(60, 1_000)):
                for call in ({"action": "read"}, {"action": "append", "content": "x"}, {"action": "delete"}):
                    told = await place.send("file", path="folder/a.txt", **call)
                    assert SECRET not in str(told)
                    assert told["success"] or told["error"]["code"] in REFUSALS
        finally:
            stop.set()
            swapping.join()
    assert (secrets / "a.txt").read_text() == SECRET
    assert os.listdir(secrets) == ["a.txt"]


def _swap(root: Path, stop: threading.Event) -> None:
    """Let a name be a folder and a link to one outside, in turns."""
    while not stop.is_set():
        for name in ("real", "link"):
            try:
                os.rename(root / name, root / "folder")
                os.rename(root / "folder", root / name)
            except OSError:
                # A write made the folder while it was away.
                shutil.rmtree(root / "folder", ignore_errors=True)


async def test_files_with_odd_names_are_files_like_others(place: Workplace) -> None:
    for name in ("-rf", "--help", "a\nb", "*", "$(touch x)", " ", "ünï", "a;b", "`x`"):
        await place.done("file", action="write", path=name, content=f"inside {name!a}")
        read = await place.done("file", action="read", path=name)
        assert read["output"] == f"inside {name!a}"
        found = await place.done("search", action="find_in_file", path=name, pattern="inside")
        assert found["data"]["count"] == 1
    listing = (await place.done("navigate", action="list_directory"))["output"]
    assert "-rf (" in listing
    assert "a\\nb (" in listing
    assert not (place.root / "x").exists()


async def test_huge_files_are_refused_without_being_read(place: Workplace) -> None:
    with (place.root / "huge.log").open("wb") as file:
        file.truncate(50_000_000_000)
    for tool, arguments in calls_on("huge.log"):
        if tool == "file" and arguments["action"] == "undo":
            continue
        told = await place.send(tool, **arguments)
        assert not told["success"], (tool, arguments)
        assert told["error"]["code"] in REFUSALS
    assert (await place.done("search", action="grep", pattern="needle"))["data"]["count"] == 0


async def test_a_pattern_that_takes_forever_is_ended(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trysquare.workbench.grep.SECONDS", 1.0)
    place.write("a.txt", "a" * 60 + "!\n")
    code, _ = await place.refused("search", action="grep", pattern="(?=a)(a+)+$")
    assert code == "TOOL_TIMEOUT"

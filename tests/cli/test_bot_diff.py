"""`trysquare bot diff`: what was done, and what the files held."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.bots.served_bots import served
from tests.cli.conftest import Run

HERE = ("--project", ".", "--bot", "mine")
GRAPH = "docs/story-graph.json"


def write_graph(project: Path, story: str) -> None:
    """A story graph with one story."""
    file = project / GRAPH
    file.parent.mkdir(exist_ok=True)
    epic = {"name": "Come to eat", "stories": [{"name": story}]}
    file.write_text(json.dumps({"schema": 1, "epics": [epic]}, indent=2) + "\n", encoding="utf-8")


@pytest.fixture
def twice(run: Run, project: Path) -> tuple[int, int]:
    """A project in which build_knowledge was closed with one story, and once more with another; both versions."""
    run("bot", "new", "mine")
    return asyncio.run(_closed_twice(project))


async def _closed_twice(project: Path) -> tuple[int, int]:
    async with served(project, bot=project / "mine", name="mine") as client:
        await client.call("tool", confirm=True)
        # Only acknowledges what was done by itself, and records no file.
        await client.call("close_current_action")
        versions: list[int] = []
        for story in ("Guest books a table", "Guest cancels a table"):
            await client.call("shape_build_knowledge")
            write_graph(project, story)
            await client.call("close_current_action")
            versions.append(client.state()["version"])
        return versions[0], versions[1]


def test_two_versions_differ_by_the_lines_of_their_files(run: Run, twice: tuple[int, int]) -> None:
    first, second = twice
    (file,) = run("bot", "diff", f"@{first}", f"@{second}", "--json", *HERE).json["files"]
    assert (file["path"], file["change"]) == (GRAPH, "changed")
    assert '-          "name": "Guest books a table"' in file["lines"]
    assert '+          "name": "Guest cancels a table"' in file["lines"]
    told = run("bot", "diff", f"@{first}", f"@{second}", *HERE).out
    assert f"{GRAPH} changed ({file['before'][:12]} -> {file['after'][:12]})" in told
    assert '+          "name": "Guest cancels a table"' in told


def test_a_file_that_is_new_or_gone_is_shown_whole(run: Run, project: Path, twice: tuple[int, int]) -> None:
    (added,) = run("bot", "diff", "@0", f"@{twice[0]}", "--json", *HERE).json["files"]
    assert (added["change"], added["before"]) == ("added", None)
    assert all(line.startswith(("+", "---", "@@")) for line in added["lines"])
    (project / GRAPH).unlink()
    (removed,) = run("bot", "diff", "main", ".", "--json", *HERE).json["files"]
    assert (removed["change"], removed["after"]) == ("removed", None)


def test_the_folder_as_it_is_can_be_compared_with_what_was_closed(
    run: Run, project: Path, twice: tuple[int, int]
) -> None:
    assert run("bot", "diff", "main", ".", *HERE).out == "No file differs.\n"
    write_graph(project, "Guest moves a table")
    told = run("bot", "diff", "main", ".", *HERE).out
    assert '-          "name": "Guest cancels a table"' in told
    assert '+          "name": "Guest moves a table"' in told


def test_contents_that_are_not_stored_are_shown_by_their_digests_alone(
    run: Run, project: Path, twice: tuple[int, int]
) -> None:
    shutil.rmtree(project / ".trysquare" / "artifacts")
    (file,) = run("bot", "diff", f"@{twice[0]}", f"@{twice[1]}", "--json", *HERE).json["files"]
    assert file["lines"] is None
    assert f"@{twice[0]}" in file["note"]
    assert file["note"] in run("bot", "diff", f"@{twice[0]}", f"@{twice[1]}", *HERE).out


def test_a_stored_file_that_was_tampered_with_is_not_shown(run: Run, project: Path, twice: tuple[int, int]) -> None:
    for kept in (project / ".trysquare" / "artifacts").iterdir():
        kept.write_text("{}", encoding="utf-8")
    (file,) = run("bot", "diff", f"@{twice[0]}", f"@{twice[1]}", "--json", *HERE).json["files"]
    assert file["lines"] is None


def test_a_fork_has_the_files_of_the_run_that_it_came_from(run: Run, twice: tuple[int, int]) -> None:
    run("bot", "fork", "other", "--at", str(twice[0]), *HERE)
    (file,) = run("bot", "diff", "other", "main", "--json", *HERE).json["files"]
    assert '+          "name": "Guest cancels a table"' in file["lines"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("main@soon", "got `main@soon`"),
        ("nowhere", "unknown run `nowhere`. Known runs: main."),
        ("main@999", "no version 999"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(run: Run, twice: tuple[int, int], given: str, said: str) -> None:
    refused = run("bot", "diff", given, "main", *HERE)
    assert refused.code != 0
    assert said in refused.err

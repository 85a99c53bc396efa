"""A project counts as built where its own tests pass afterwards, whatever the run of the agent says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals import projects
from evals.projects import PROJECTS, Built, build_all, project_tables
from tests.agent.scripted import GIVE_UP
from tests.support import missing_component
from trysquare.workbench.config import WorkbenchConfig
from trysquare.workbench.shell.sandbox import available_way


@pytest.fixture(autouse=True)
def sandbox() -> None:
    if available_way(WorkbenchConfig(root=Path()).sandboxes) is None:
        missing_component("a sandbox for commands", "install bubblewrap")


async def built(said: list[Any], monkeypatch: pytest.MonkeyPatch) -> Built:
    monkeypatch.setattr(projects, "dialogues", lambda: {"average": said})
    [only] = await build_all(None, seconds=60)
    return only


async def test_a_repair_makes_the_project_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.loads((PROJECTS / "dialogues.json").read_text(encoding="utf-8"))["average"]
    found = await built(said, monkeypatch)
    assert (found.passed_before, found.passed, found.status) == (False, True, "finished")
    [table] = project_tables(None, [found])
    assert table.title == "The builder with a prepared dialogue: 1 of 1 projects pass"


async def test_tests_that_were_changed_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = {"action": "write", "path": "test_stats.py", "content": "def test_nothing():\n    pass\n"}
    found = await built([{"name": "file", "args": empty}, GIVE_UP], monkeypatch)
    assert (found.passed, found.status) == (False, "gave_up")

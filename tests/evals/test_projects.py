"""A project counts as built where its own tests pass afterwards, whatever the run of the agent says."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evals.__main__ import main
from evals.projects import PROJECTS, Built, build, project_tables
from tests.agents.scripted import GIVE_UP, ScriptedModel
from tests.support import missing_component
from trysquare.models import Model
from trysquare.processes.sandbox.backends import available_sandbox
from trysquare.workbench import WorkbenchConfig


@pytest.fixture(autouse=True)
def sandbox() -> None:
    if available_sandbox(WorkbenchConfig(root=Path()).sandboxes) is None:
        missing_component("a sandbox for commands", "install bubblewrap")


async def built(said: list[Any]) -> Built:
    @asynccontextmanager
    async def opened(spec: str | None) -> AsyncGenerator[Model]:
        yield ScriptedModel(said)

    return await build("average", "a script", seconds=60, open_model=opened)


async def test_a_repair_makes_the_project_pass() -> None:
    said = json.loads((PROJECTS / "dialogues.json").read_text(encoding="utf-8"))["average"]
    found = await built(said)
    assert (found.passed_before, found.passed, found.status) == (False, True, "finished")
    [table] = project_tables("a script", [found])
    assert table.title == "The builder with a script: 1 of 1 projects pass"


async def test_tests_that_were_changed_do_not_count() -> None:
    empty = {"action": "write", "path": "test_stats.py", "content": "def test_nothing():\n    pass\n"}
    found = await built([{"name": "file", "args": empty}, GIVE_UP])
    assert (found.passed, found.status) == (False, "gave_up")


def test_nothing_is_measured_without_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["builder"])
    assert "--builder MODEL" in capsys.readouterr().err

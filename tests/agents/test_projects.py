"""Five small projects with failing tests: the builder mends them, the triager leaves every file as it was."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.agents.scripted import ScriptedModel, call
from tests.support import missing_component, size
from trysquare.agents import AgentRequest
from trysquare.agents.definition import load_definition
from trysquare.agents.journal import NullJournal
from trysquare.agents.run import AgentOutcome
from trysquare.agents.runner import AgentEnvironment, run_request
from trysquare.app import agent_environment
from trysquare.processes.sandbox.backends import available_sandbox
from trysquare.settings import Settings
from trysquare.workbench import WorkbenchConfig

PROJECTS = Path(__file__).parent / "projects"
DIALOGUES: dict[str, list[Any]] = json.loads((PROJECTS / "dialogues.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def sandbox() -> None:
    if available_sandbox(WorkbenchConfig(root=Path()).sandboxes) is None:
        missing_component("a sandbox for commands", "install bubblewrap")


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(PROJECTS / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")))


async def run(
    agent: str, project: Path, model: ScriptedModel, task: str = "Make the failing tests pass."
) -> AgentOutcome:
    @asynccontextmanager
    async def opened(spec: str | None) -> AsyncGenerator[ScriptedModel]:
        yield model

    settings = Settings(project=project)
    with agent_environment(settings, {}) as around:
        scripted = AgentEnvironment(
            settings=settings, open_toolset=around.open_toolset, approvals=around.approvals, open_model=opened
        )
        return await run_request(AgentRequest(agent=agent, task=task), scripted, NullJournal())


@pytest.mark.parametrize("name", sorted(DIALOGUES)[: size(3, 5)])
async def test_the_builder_makes_a_failing_project_pass(name: str, tmp_path: Path) -> None:
    project = copied(name, tmp_path)
    model = ScriptedModel(DIALOGUES[name])
    outcome = await run("builder", project, model)
    assert outcome.finished, outcome
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ended = await anyio.run_process(words, cwd=project, check=False)
    assert ended.returncode == 0, "all tests of the project pass, not only those that the builder ran"
    for file in project.glob("test_*.py"):
        assert file.read_bytes() == (PROJECTS / name / file.name).read_bytes(), "the tests themselves stay as they are"


async def test_the_builder_cannot_finish_on_a_part_of_the_tests_while_others_failed(tmp_path: Path) -> None:
    project = copied("ledger", tmp_path)
    model = ScriptedModel([call("test", type="python"), *DIALOGUES["ledger"][:4], call("give_up", reason="Enough.")])
    outcome = await run("builder", project, model)
    assert outcome.status == "gave_up"
    assert "finish" not in model.offered()


async def test_the_builder_cannot_finish_on_a_part_of_the_tests_where_others_were_never_run(tmp_path: Path) -> None:
    project = copied("ledger", tmp_path)
    model = ScriptedModel([*DIALOGUES["ledger"][:4], call("give_up", reason="Enough.")])
    outcome = await run("builder", project, model)
    assert outcome.status == "gave_up"
    assert "some fail" in model.told()
    assert "finish" not in model.offered(), "it opens again when all tests pass"


def tree(folder: Path) -> dict[str, str]:
    """Every file with a digest of its contents and the time of its last change."""
    return {
        str(path.relative_to(folder)): f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


TRIED: list[Any] = [
    call("test", type="python"),
    call("file", action="read", path="stats.py"),
    call("file", action="write", path="stats.py", content="gone"),
    call("file", action="delete", path="stats.py"),
    call("code_edit", action="delete_lines", path="stats.py", start_line=1, end_line=2),
    call("bash", command="rm -rf ."),
    call("git", action="commit", message="x"),
    call("file", action="read", path="test_stats.py"),
    call("finish", summary="average divides by one too few."),
]


async def test_the_triager_changes_no_file_whatever_it_tries(tmp_path: Path) -> None:
    project = copied("average", tmp_path)
    before = tree(project)
    model = ScriptedModel(TRIED)
    outcome = await run("triager", project, model, "Why does it fail?")
    assert outcome.finished, outcome
    assert tree(project) == before
    assert {message.text.split(":")[0] for message in model.messages() if message.failed} == {
        "Error COMMAND_FAILED",
        "Error POLICY_DENIED",
        "Error TOOL_NOT_FOUND",
    }


async def test_the_triager_changes_no_file_even_where_the_tests_do(tmp_path: Path) -> None:
    project = copied("average", tmp_path)
    (project / "test_writes.py").write_text(
        "from pathlib import Path\n\n\ndef test_it():\n"
        "    (Path(__file__).parent / 'stats.py').write_text('gone')\n    Path('new.txt').write_text('new')\n",
        encoding="utf-8",
    )
    before = tree(project)
    model = ScriptedModel([call("test", type="python"), call("file", action="read", path="stats.py"), TRIED[-1]])
    outcome = await run("triager", project, model)
    assert outcome.finished
    assert any("gone" in message.text for message in model.messages()), "the copy was changed, and only the copy"
    assert tree(project) == before


@pytest.mark.parametrize("name", ["reviewer", "triager"])
def test_agents_that_only_look_work_in_a_copy(name: str) -> None:
    assert load_definition(name).workspace == "copy"

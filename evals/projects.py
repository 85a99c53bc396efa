"""Projects: whether the builder makes small failing projects pass with a model."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.tables import Table
from trysquare.agents import AgentRequest
from trysquare.agents.journal import NullJournal
from trysquare.agents.runner import OpenModel, run_request
from trysquare.app import agent_environment
from trysquare.core.errors import ToolError
from trysquare.settings import Settings

PROJECTS = Path(__file__).parents[1] / "tests" / "agents" / "projects"
_TASK = "Make the failing tests pass."


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """What came of one project."""

    project: str
    passed_before: bool
    passed: bool
    """Whether its tests pass afterwards, and are what they were."""
    status: str
    """How the run of the agent ended."""
    steps: int


async def build_all(model: str, *, seconds: float, open_model: OpenModel | None = None) -> list[Built]:
    """Let the builder work on a copy of each project with a model, by its name or as `open_model` opens it."""
    names = sorted(folder.name for folder in PROJECTS.iterdir() if any(folder.glob("test_*.py")))
    return [await build(name, model, seconds=seconds, open_model=open_model) for name in names]


async def build(name: str, model: str, *, seconds: float, open_model: OpenModel | None = None) -> Built:
    """Let the builder work on a copy of one project."""
    print(f"builder: {name}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(shutil.copytree(PROJECTS / name, Path(folder) / name))
        passed_before = _passes(project, name)
        status, steps = await _run(project, model, seconds, open_model)
        passed = _passes(project, name)
        return Built(project=name, passed_before=passed_before, passed=passed, status=status, steps=steps)


async def _run(project: Path, model: str, seconds: float, open_model: OpenModel | None) -> tuple[str, int]:
    settings = Settings(project=project)
    with agent_environment(settings, {}) as around:
        if open_model is not None:
            around = replace(around, open_model=open_model)
        request = AgentRequest(agent="builder", task=_TASK, model=model, seconds=seconds)
        try:
            outcome = await run_request(request, around, NullJournal())
        except ToolError as error:
            return error.code, 0
        return outcome.status, outcome.spent.steps


def _passes(project: Path, name: str) -> bool:
    """Whether the tests pass, which must be the tests that the project came with."""
    for file in (PROJECTS / name).glob("test_*.py"):
        if (project / file.name).read_bytes() != file.read_bytes():
            return False
    # Bytecode of the files as they were must not be taken for that of the files as they are.
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(project),
        str(project),
    ]
    return subprocess.run(command, cwd=project, capture_output=True, check=False).returncode == 0


def project_tables(model: str, built: Sequence[Built]) -> Iterator[Table]:
    """The projects one by one."""
    if built:
        passed = sum(each.passed for each in built)
        rows = [
            [each.project, _said(each.passed_before), _said(each.passed), each.status, str(each.steps)]
            for each in built
        ]
        title = f"The builder with {model}: {passed} of {len(built)} projects pass"
        yield Table(title=title, head=["project", "tests before", "tests after", "run", "steps"], rows=rows)


def _said(passed: bool) -> str:
    return "pass" if passed else "fail"

"""Runners: the command that runs the tests of a kind of project, and how its output is read."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.workbench.testing.counts import (
    Counts,
    go_counts,
    go_events,
    npm_counts,
    pytest_counts,
    unittest_counts,
)

Kind: TypeAlias = Literal["go", "npm", "python"]

_PYTHON_TESTS = """\
import importlib.util, sys
module, only, verbose = sys.argv[1:4]
if importlib.util.find_spec("pytest"):
    import pytest
    options = ["-rfE", "--color=no", "-p", "no:cacheprovider", "-v" if verbose else "-q"]
    options += ["-k", only] if only else []
    sys.exit(pytest.main(options + ["--"] * bool(module) + [module] * bool(module)))
import unittest
options = ["-v"] * bool(verbose) + (["-k", only] if only else [])
names = [module.removesuffix(".py").replace("/", ".")] if module else []
sys.exit(unittest.main(module=None, argv=["unittest", *(names or ["discover"]), *options]))
"""
"""Run by the project's own Python: pytest where it has it, else unittest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Which tests to run, and how."""

    package: str | None = None
    module: str | None = None
    script: str | None = None
    only: str | None = None
    count: int | None = None
    verbose: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """A command that runs tests, and the way to read it."""

    command: Sequence[str]
    read: Callable[[str], Counts]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    shown: Callable[[str], str] = lambda output: output


def runner_of(kind: Kind, root: Path, run: Run) -> Runner:
    """How the tests of a project are run."""
    match kind:
        case "python":
            return _python(root, run)
        case "go":
            return _go(run)
        case "npm":
            return _npm(run)


def _python(root: Path, run: Run) -> Runner:
    own = (root / folder / "bin" / "python" for folder in (".venv", "venv"))
    program = next((str(each) for each in own if each.exists()), sys.executable)
    verbose = "1" if run.verbose else ""
    importable = [str(folder) for folder in (root, root / "src") if folder.is_dir()]
    return Runner(
        command=[program, "-c", _PYTHON_TESTS, run.module or "", run.only or "", verbose],
        read=lambda output: (pytest_counts if _UNITTEST not in output else unittest_counts)(output),
        environment={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(importable)},
    )


_UNITTEST = "\nRan "


def _go(run: Run) -> Runner:
    _require("go")
    options = [f"-count={run.count}"] if run.count else []
    options += [f"-run={run.only}"] if run.only else []
    return Runner(
        command=["go", "test", "-json", *options, "--", run.package or "./..."],
        read=go_counts,
        environment=_go_environment(),
        shown=_go_output if not run.verbose else _all_go_output,
    )


def _go_environment() -> dict[str, str]:
    """Modules that were fetched before are used from where they are; nothing is fetched."""
    cache = Path.home() / "go" / "pkg" / "mod"
    found = {"GOMODCACHE": str(cache)} if cache.is_dir() else {}
    return {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", **found}


def _all_go_output(output: str) -> str:
    return "".join(str(event.get("Output", "")) for event in go_events(output)) or output


def _go_output(output: str) -> str:
    """What the failing tests and the build said."""
    failing = set(go_counts(output).failures)
    told = "".join(
        str(event.get("Output", ""))
        for event in go_events(output)
        if event.get("Test") is None or f"{event.get('Package', '')}.{event['Test']}" in failing
    )
    build = "\n".join(line for line in output.splitlines() if not line.startswith("{"))
    return (build + "\n" + told).strip() or output


def _npm(run: Run) -> Runner:
    _require("npm")
    only = ["--", "-t", run.only] if run.only else []
    return Runner(command=["npm", "run", "--silent", run.script or "test", *only], read=npm_counts)


def _require(program: str) -> None:
    if shutil.which(program) is None:
        raise ToolError(
            f"`{program}` is not installed, so these tests cannot be run.", code=ErrorCode.CAPABILITY_NOT_SUPPORTED
        )

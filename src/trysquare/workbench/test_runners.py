"""Test commands and parsers of their output."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject

MAX_SECONDS = 1_800


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Test counts; None means unknown."""

    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    failures: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        known = {"passed": self.passed, "failed": self.failed, "skipped": self.skipped}
        return {name: number for name, number in known.items() if number is not None}


_PYTEST_END = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+)(?: in [\d.]+s.*)=*$", re.MULTILINE)
_PYTEST_NONE = re.compile(r"^=*\s*no tests ran", re.MULTILINE)
_PYTEST_FAILURE = re.compile(r"^(?:FAILED|ERROR) ([^\[\n]+?(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)


def pytest_counts(output: str) -> Counts:
    """Parse pytest's output with `-rfE`."""
    ends = _PYTEST_END.findall(output)
    if not ends:
        return Counts(passed=0, failed=0) if _PYTEST_NONE.search(output) else Counts()
    numbers = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", ends[-1])}
    return Counts(
        passed=numbers.get("passed", 0),
        failed=numbers.get("failed", 0) + numbers.get("error", 0),
        skipped=numbers.get("skipped", 0),
        failures=_once(_PYTEST_FAILURE.findall(output)),
    )


_UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
_UNITTEST_END = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
_UNITTEST_FAILURE = re.compile(r"^(?:FAIL|ERROR): (\S+)(?: \((\S+)\))?", re.MULTILINE)


def unittest_counts(output: str) -> Counts:
    """Parse unittest's output."""
    ran = _UNITTEST_RAN.findall(output)
    if not ran:
        return Counts()
    ends = _UNITTEST_END.findall(output)
    numbers = {word: int(number) for word, number in re.findall(r"(\w+)=(\d+)", ends[-1] if ends else "")}
    failed = numbers.get("failures", 0) + numbers.get("errors", 0)
    skipped = numbers.get("skipped", 0)
    failures = [within or name for name, within in _UNITTEST_FAILURE.findall(output)]
    return Counts(passed=int(ran[-1]) - failed - skipped, failed=failed, skipped=skipped, failures=_once(failures))


def go_events(output: str) -> Iterator[dict[str, Any]]:
    """Events of `go test -json`; other lines are build output."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield cast(dict[str, Any], event)


def go_counts(output: str) -> Counts:
    """Parse `go test -json`; a package that does not build counts as one failure."""
    results: dict[str, str] = {}
    for event in go_events(output):
        action, package, test = event.get("Action"), event.get("Package", ""), event.get("Test")
        if action in ("pass", "fail", "skip") and test:
            results[f"{package}.{test}"] = action
        elif action == "fail" and not any(name.startswith(f"{package}.") for name in results):
            results[str(package)] = "fail"
    outcomes = list(results.values())
    failures = tuple(name for name, action in results.items() if action == "fail")
    return Counts(
        passed=outcomes.count("pass"), failed=len(failures), skipped=outcomes.count("skip"), failures=failures
    )


_NODE = (
    # Patterns of each runner: passed, failed, name of a failing test.
    (r"^Tests:.*?(\d+) passed", r"^Tests:.*?(\d+) failed", r"^\s+● (.+)$"),
    (r"^\s*Tests\s.*?(\d+) passed", r"^\s*Tests\s.*?(\d+) failed", r"^\s*(?:FAIL|\u00d7)\s+(.+?)(?: \d+ms)?$"),
    (
        r"^(?:#|\u2139) pass (\d+)",
        r"^(?:#|\u2139) fail (\d+)",
        r"^\s*(?:not ok \d+ - (?!.*# TODO)|✖ )(.+?)(?: \([\d.]+ms\))?$",
    ),
    (r"^\s*(\d+) passing", r"^\s*(\d+) failing", r"^\s*\d+\) (.+)$"),
)


def npm_counts(output: str) -> Counts:
    """Parse the output of jest, vitest, node's own runner or mocha."""
    for passing, failing, failure in _NODE:
        passed, failed = _last(passing, output), _last(failing, output)
        if passed is not None or failed is not None:
            names = re.findall(failure, output, re.MULTILINE) if failed else []
            return Counts(passed=passed or 0, failed=failed or 0, failures=_once(names)[: failed or 0])
    return Counts()


def _last(pattern: str, output: str) -> int | None:
    found = re.findall(pattern, output, re.MULTILINE)
    return int(found[-1]) if found else None


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names))


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
"""Runs in the project's own Python: pytest if installed, else unittest."""


class TestArguments(ToolArguments):
    __test__ = False  # not a test class

    type: Annotated[
        Literal["go", "npm", "python"],
        Field(description="How tests run: go test, an npm script, or pytest (unittest without it)"),
    ]
    package: Annotated[str | None, Field(description="Go package, such as ./...", max_length=300)] = None
    module: Annotated[str | None, Field(description="Python file, folder or test id", max_length=300)] = None
    script: Annotated[str | None, Field(description="npm script; test by default", max_length=100)] = None
    run: Annotated[str | None, Field(description="Only tests whose names match", max_length=300)] = None
    count: Annotated[int | None, Field(description="Go: times to run each test", ge=1, le=100)] = None
    verbose: Annotated[bool, Field(description="Show every test")] = False
    timeout: Annotated[float | None, Field(description="Seconds; 120 by default", gt=0, le=MAX_SECONDS)] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TestRunner:
    """A test command and the parser of its output."""

    command: Sequence[str]
    parse: Callable[[str], Counts]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    display: Callable[[str], str] = lambda output: output


def test_runner(root: Path, run: TestArguments) -> TestRunner:
    """How the tests of a project are run."""
    return _python(root, run) if run.type == "python" else _go(run) if run.type == "go" else _npm(run)


def _python(root: Path, run: TestArguments) -> TestRunner:
    own = (root / folder / "bin" / "python" for folder in (".venv", "venv"))
    program = next((str(each) for each in own if each.exists()), sys.executable)
    importable = [str(folder) for folder in (root, root / "src") if folder.is_dir()]
    return TestRunner(
        command=[program, "-c", _PYTHON_TESTS, run.module or "", run.run or "", "1" if run.verbose else ""],
        parse=lambda output: (unittest_counts if "\nRan " in output else pytest_counts)(output),
        environment={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(importable)},
    )


def _go(run: TestArguments) -> TestRunner:
    _require("go")
    options = [f"-count={run.count}"] if run.count else []
    options += [f"-run={run.run}"] if run.run else []
    # From the module cache: nothing is downloaded.
    cache = Path.home() / "go" / "pkg" / "mod"
    found = {"GOMODCACHE": str(cache)} if cache.is_dir() else {}
    return TestRunner(
        command=["go", "test", "-json", *options, "--", run.package or "./..."],
        parse=go_counts,
        environment={"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", **found},
        display=_go_output if not run.verbose else _all_go_output,
    )


def _all_go_output(output: str) -> str:
    return "".join(str(event.get("Output", "")) for event in go_events(output)) or output


def _go_output(output: str) -> str:
    """Output of failing tests and of the build."""
    failing = set(go_counts(output).failures)
    failures = "".join(
        str(event.get("Output", ""))
        for event in go_events(output)
        if event.get("Test") is None or f"{event.get('Package', '')}.{event['Test']}" in failing
    )
    build = "\n".join(line for line in output.splitlines() if not line.startswith("{"))
    return (build + "\n" + failures).strip() or output


def _npm(run: TestArguments) -> TestRunner:
    _require("npm")
    only = ["--", "-t", run.run] if run.run else []
    return TestRunner(command=["npm", "run", "--silent", run.script or "test", *only], parse=npm_counts)


def _require(program: str) -> None:
    if shutil.which(program) is None:
        raise ToolError(
            f"`{program}` is not installed. These tests cannot be run.", code=ErrorCode.CAPABILITY_NOT_SUPPORTED
        )

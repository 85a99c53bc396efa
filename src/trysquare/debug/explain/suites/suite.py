"""Test suites of languages other than Python: what their tests did, in the shape of Python's explanations."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.core.text import truncate
from trysquare.debug.explain.explain import Explained, Explanation, RanLine
from trysquare.debug.explain.failures import Raised, Site
from trysquare.debug.explain.localization import Localization, changed_lines
from trysquare.debug.explain.recording import TAIL, Cost, OutputTail
from trysquare.debug.sessions.manager import DebugSessionRegistry
from trysquare.debug.sources import Sources, relative
from trysquare.processes.supervisor import Command, ProcessSupervisor

_MAX_DETAIL = 8
_MAX_SUSPECTS = 60
_MAX_EXPLAINED = 3
_MAX_VALUES = 8
_MAX_SWALLOWED = 3
_WIDEST = 200
_ON_STACK = 0.05
"""What a line of the traceback has ahead of others that the same tests run."""
_COMMENT = ("//", "/*", "*", "#")
_WORD = re.compile(r"\w")

Line = tuple[str, int]
"""A file and a line of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A frame of the user's code, innermost first where there are several."""

    file: str
    line: int
    function: str = ""
    values: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True, slots=True)
class TestRun:
    """One test: whether it failed and how, and the lines that it ran."""

    name: str
    file: str = ""
    failed: bool = False
    error: str = ""
    detail: tuple[str, ...] = ()
    """The lines of the message after its first."""
    frames: tuple[Frame, ...] = ()
    lines: frozenset[Line] | None = None
    """None if it is not known which lines it ran."""
    swallowed: tuple[str, ...] = ()
    """Errors that were thrown on the way and did not end the test."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteRun:
    """The tests that were run, and what is not known of them."""

    tests: tuple[TestRun, ...]
    output: str = ""
    exit_code: int | None = None
    functions: Mapping[Line, str] = field(default_factory=dict[Line, str])
    """The name of the function around a line, as far as it is known."""
    not_run: int = 0
    notes: tuple[str, ...] = ()
    """What is missing, and the command that brings it."""


class Suite(Protocol):
    """The tests that a target names, of one framework."""

    async def run(self, runner: CommandRunner, *, budget: float) -> SuiteRun:
        """Run the tests: those that fail with their values, and passing ones beside them within a budget."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Executed:
    exit_code: int | None
    output: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandRunner:
    """Runs the commands of a framework, with the programs that the settings choose."""

    supervisor: ProcessSupervisor
    sessions: DebugSessionRegistry
    timeout: float
    principal: str = ""

    async def execute(
        self, words: Sequence[str], folder: Path, env: Mapping[str, str] | None = None, *, keeps: int = TAIL
    ) -> Executed:
        """Run a command to its end and return its exit code and the end of its output."""
        program, *arguments = words
        environment = {**os.environ, **(env or {})}
        try:
            child = self.supervisor.start(
                Command(program=program, arguments=arguments, environment=environment, folder=str(folder))
            )
        except OSError as error:
            raise ToolError(
                f"`{program}` failed to start: {error.strerror}.",
                code=ErrorCode.SESSION_START_FAILED,
                instruction=f"Install {Path(program).name}, or give its path.",
            ) from None
        tail = OutputTail(child, limit=keeps)
        finished = await child.exits_within(self.timeout)
        status = child.exit_status()
        await self.supervisor.end(child, grace=0.2)
        if not finished:
            raise ToolError(
                f"Timeout: `{Path(program).name}` still ran after {self.timeout:g} s and was stopped.",
                code=ErrorCode.EXECUTION_TIMEOUT,
                instruction="Give a single test, or a longer timeout. `output` ends where it hangs.",
                fields={"output": tail.text()[-1500:]},
            )
        return Executed(exit_code=status, output=tail.text())


def split_options(words: Sequence[str], with_values: Collection[str]) -> tuple[list[str], list[str]]:
    """The options of a command line with their values, and its other words."""
    options: list[str] = []
    names: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-"):
            names.append(word)
            continue
        options.append(word)
        if word in with_values and waiting:
            options.append(waiting.pop(0))
    return options, names


def require_program(program: str, install: str) -> None:
    """Refuse to go on without a program, with the command that installs it."""
    if shutil.which(program) is None:
        raise ToolError(
            f"`{program}` is not installed.",
            code=ErrorCode.ADAPTER_NOT_FOUND,
            instruction=f"Ask the user to install it: {install}",
        )


def not_compiled(file: str, line: int, text: str, ended: Executed, detail: Sequence[str] = ()) -> SuiteRun:
    """The run of tests that a compiler refused, at a line of a file."""
    frame = Frame(file=file, line=line)
    error = f"The tests do not compile: {text}"
    test = TestRun(name=file, file=file, failed=True, error=error, detail=tuple(detail), frames=(frame,))
    return SuiteRun(tests=(test,), output=ended.output[-4000:], exit_code=ended.exit_code)


def json_lines(text: str) -> list[JsonObject]:
    """The JSON objects of a text that has one on each line, among other lines."""
    found: list[JsonObject] = []
    for line in text.splitlines():
        if line.startswith("{"):
            # A program that is ended while it writes leaves a part of one.
            with suppress(ValueError):
                found.append(as_object(json.loads(line)))
    return found


def function_names(file: str, texts: Sequence[str], pattern: re.Pattern[str]) -> dict[Line, str]:
    """The name of the function around each line, by the lines at which functions begin."""
    found: dict[Line, str] = {}
    name = ""
    for number, text in enumerate(texts, 1):
        name = match[1] if (match := pattern.match(text)) else name
        found[file, number] = name
    return found


class Deadline:
    """Time that is left for tests beside the failing ones."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())


async def explain_suite(
    suite: Suite, root: Path, runner: CommandRunner, *, budget: float, git: bool = True
) -> Explained:
    """Run a suite and explain its failures, with the suspects of the first."""
    began = time.perf_counter()
    run = await suite.run(runner, budget=budget)
    failed = [test for test in run.tests if test.failed]
    sources = Sources()
    failures = [(test.name, _explanation(test, run, root, sources, None)) for test in failed[:_MAX_EXPLAINED]]
    if failed and budget > 0:
        located = rank(run, failed[0], sources)
        if located.is_located and git:
            kinds = sorted({f"*{Path(each.file).suffix}" for each in located.suspects})
            located = located.with_hints([], await changed_lines(root, kinds))
        failures[0] = (failed[0].name, _explanation(failed[0], run, root, sources, located))
    outcome = "failed" if failed else "passed" if run.exit_code == 0 else "exited"
    lines = sum(len(each.lines or ()) for each in run.tests)
    return Explained(
        outcome=outcome, exit_code=run.exit_code, failures=tuple(failures), output=run.output,
        cost=Cost(lines=lines, seconds=round(time.perf_counter() - began, 3)),
        failed=tuple(each.name for each in failed), failed_count=len(failed), ran=len(run.tests),
    )  # fmt: skip


def rank(run: SuiteRun, failing: TestRun, sources: Sources) -> Localization:
    """Rank the lines of a failing test by Ochiai over all tests whose lines are known; lines of tests are left out."""
    known = [test for test in run.tests if test.lines is not None]
    # Of the other failing tests only those that fail at the same place: another fault would hide this one.
    failed = [test for test in known if test.failed and (test is failing or _is_same_failure(test, failing))]
    passed = [test for test in known if not test.failed]
    found: JsonObject = {
        "located": bool(failing.lines), "failing": [test.name for test in failed], "passing": len(passed), "trials": 0,
        "not_run": run.not_run, "suspects": [],
    }  # fmt: skip
    if not failing.lines:
        return Localization(found=found)
    tests = {test.file for test in run.tests}
    stack = {(frame.file, frame.line) for frame in failing.frames}
    suspects: list[JsonObject] = []
    for file, line in failing.lines:
        code = sources.line(file, line)
        if file in tests or not _WORD.search(code) or code.startswith(_COMMENT):
            continue
        bad = sum((file, line) in (test.lines or ()) for test in failed)
        good = sum((file, line) in (test.lines or ()) for test in passed)
        is_on_stack = (file, line) in stack
        score = bad / math.sqrt(len(failed) * (bad + good)) + (_ON_STACK if is_on_stack else 0.0)
        suspects.append(
            {
                "file": file,
                "line": line,
                "last_line": line,
                "code": truncate(code, 120),
                "score": round(score, 3),
                "function": run.functions.get((file, line)) or "?",
                "is_counted": True,
                "is_run": True,
                "failing": bad,
                "passing": good,
                "on_stack": is_on_stack,
            }
        )
    suspects.sort(key=lambda each: (-float(each["score"]), str(each["file"]), int(each["line"])))
    return Localization(found={**found, "suspects": suspects[:_MAX_SUSPECTS]})


def _is_same_failure(test: TestRun, other: TestRun) -> bool:
    """Whether two tests fail at the same line of the code under test."""
    if not test.frames or not other.frames:
        return False
    one, two = test.frames[0], other.frames[0]
    return (one.file, one.line) == (two.file, two.line) and one.file not in (test.file, other.file)


def _explanation(
    test: TestRun, run: SuiteRun, root: Path, sources: Sources, located: Localization | None
) -> Explanation:
    frames = tuple(
        Site(file=each.file, line=each.line, function=each.function, code=sources.line(each.file, each.line))
        for each in test.frames
    )
    user = frames[0] if frames else None
    error, *detail = (each.replace(f"{root}{os.sep}", "") for each in (test.error, *test.detail[:_MAX_DETAIL]))
    head = Raised(error=truncate(error, _WIDEST), message=error, site=user, user=user, frames=frames[::-1])
    return Explanation(
        error=head.error,
        location="?" if user is None else user.location,
        code="" if user is None else user.code,
        function="?" if user is None else user.function,
        head=head,
        detail=(*(f"  {line}" for line in detail), *_value_lines(test, str(root))),
        ran=tuple(RanLine(file=each.file, line=each.line, changes=each.values) for each in test.frames if each.values),
        notes=(*(f"swallowed on the way: {each}" for each in test.swallowed[-_MAX_SWALLOWED:]), *run.notes),
        test=(test.file, test.name),
        localization=located,
    )


def _value_lines(test: TestRun, root: str) -> list[str]:
    """The values of the user's frames, a line for each."""
    lines: list[str] = []
    for frame in test.frames:
        if frame.values:
            shown = ", ".join(f"{name} = {text}" for name, text in list(frame.values.items())[:_MAX_VALUES])
            more = f", … {len(frame.values) - _MAX_VALUES} more" if len(frame.values) > _MAX_VALUES else ""
            lines.append(
                f"values at {relative(f'{frame.file}:{frame.line}', root)} in {frame.function or '?'}: {shown}{more}"
            )
    return lines

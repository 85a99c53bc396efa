"""test: run the tests, and say which fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.workbench.answers import answered, failed
from trysquare.workbench.bench import Bench
from trysquare.workbench.shell.job import Job, Outcome
from trysquare.workbench.testing.counts import Counts
from trysquare.workbench.testing.runners import Run, Runner, runner_of
from trysquare.workbench.tools.bash import LONGEST, how_it_ended
from trysquare.workbench.watching import watched

MOST_FAILURES = 50


class TestArguments(ToolArguments):
    """Arguments of test."""

    # Not a class of tests, whatever its name looks like.
    __test__ = False

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
    timeout: Annotated[float | None, Field(description="Seconds; 120 by default", gt=0, le=LONGEST)] = None


def test_tool(bench: Bench) -> Tool:
    """The tool that runs tests."""

    async def test(args: TestArguments) -> Result[Any]:
        """Run tests and name those that fail."""
        _refuse_options(args)
        seconds = args.timeout or bench.config.seconds
        wanted = Run(
            package=args.package,
            module=args.module,
            script=args.script,
            only=args.run,
            count=args.count,
            verbose=args.verbose,
        )
        runner = runner_of(args.type, bench.workspace.root, wanted)
        job = Job(command=runner.command, seconds=seconds, environment=runner.environment)
        outcome, modified = await watched(bench, job)
        result = _told(runner, outcome, modified or [], seconds)
        # At the top as well: whoever asks only this need not know how the rest is told.
        return replace(result, fields={**result.fields, "passed": result.success})

    return tool(
        test,
        room="workbench",
        category="build",
        requirement="required",
        needs=("bash",),
        use_when="you want to know whether the tests pass, or which fail",
        avoid_when="the project has another way to run its tests: bash runs it",
        limits="Runs in the sandbox: no network, and only the workspace is written",
        read_only=False,
        destructive=False,
        open_world=False,
        result_limit=None,
        examples=(
            Example(arguments={"type": "python", "module": "tests/test_app.py"}, explanation="One file."),
            Example(arguments={"type": "go", "package": "./...", "run": "TestParse"}, explanation="Some Go tests."),
        ),
    )


def _refuse_options(args: TestArguments) -> None:
    """A value that begins with a dash would be read as an option of the test program."""
    for name in ("package", "module", "script", "run"):
        value = getattr(args, name)
        if value is not None and (value.startswith("-") or "\0" in value):
            raise InvalidArguments(f"`{name}` must not begin with a dash: {value[:60]!a}.")


def _told(runner: Runner, outcome: Outcome, modified: list[str], seconds: float) -> Result[Any]:
    counts = runner.read(outcome.output)
    passed = outcome.ok and counts.failed in (None, 0)
    data = _data(counts, outcome)
    output = runner.shown(outcome.output)
    if passed:
        return answered(output, modified_files=modified, data=data, message=_summary(counts))
    return failed(
        _why(counts, outcome, seconds),
        code=ErrorCode.TOOL_TIMEOUT if outcome.ended == "deadline" else ErrorCode.COMMAND_FAILED,
        output=output,
        modified_files=modified,
        data=data,
        instruction="Mend what fails, and run the tests again." if counts.failures else None,
    )


def _data(counts: Counts, outcome: Outcome) -> JsonObject:
    told: JsonObject = {"exit_status": outcome.status, "counts": counts.to_json()}
    if counts.failures:
        told["failing"] = list(counts.failures[:MOST_FAILURES])
    return told


def _summary(counts: Counts) -> str:
    return "All tests pass." if counts.passed is None else f"{counts.passed} passed."


def _why(counts: Counts, outcome: Outcome, seconds: float) -> str:
    if counts.failed:
        return f"{counts.failed} of {counts.failed + (counts.passed or 0)} tests fail."
    if outcome.ended == "by itself" and counts.passed == 0:
        return "No test was run."
    return how_it_ended(outcome, seconds)

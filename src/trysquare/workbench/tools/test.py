"""The `test` tool: run tests and name the failing ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Example
from trysquare.core.result import Result, answered, failed
from trysquare.core.tool import Tool
from trysquare.processes.sandbox.job import Outcome, SandboxJob
from trysquare.workbench.context import WorkspaceContext, run_tracked, workbench_tool
from trysquare.workbench.test_runners import Counts, TestArguments, TestRunner, test_runner
from trysquare.workbench.tools.bash import end_reason

MAX_FAILURES = 50


# Documented as in guide/tools/README.md.
def test_tool(ctx: WorkspaceContext) -> Tool:
    async def test(args: TestArguments) -> Result[Any]:
        """Run tests and name those that fail."""
        for name in ("package", "module", "script", "run"):
            # A leading dash would make the value an option of the test program.
            if (value := getattr(args, name) or "").startswith("-") or "\0" in value:
                raise InvalidArguments(f"`{name}` must not start with a dash: {value[:60]!a}.")
        seconds = args.timeout or ctx.config.seconds
        runner = test_runner(ctx.workspace.root, args)
        job = SandboxJob(command=runner.command, seconds=seconds, environment=runner.environment)
        outcome, modified = await run_tracked(ctx, job)
        result = _response(runner, outcome, modified or [], seconds)
        # Also at the top level, where the loop of an agent reads it.
        return replace(result, fields={**result.fields, "passed": result.success})

    return workbench_tool(
        test,
        category="build",
        needs=("bash",),
        use_when="you want to know whether the tests pass, or which fail",
        avoid_when="the project has another way to run its tests: bash runs it",
        limits="Runs in the sandbox: no network, writes only the workspace",
        read_only=False,
        destructive=False,
        examples=(
            Example(arguments={"type": "python", "module": "tests/test_app.py"}, explanation="One file."),
            Example(arguments={"type": "go", "package": "./...", "run": "TestParse"}, explanation="Some Go tests."),
        ),
    )


def _response(runner: TestRunner, outcome: Outcome, modified: list[str], seconds: float) -> Result[Any]:
    counts = runner.parse(outcome.output)
    passed = outcome.ok and counts.failed in (None, 0)
    data: JsonObject = {"exit_status": outcome.status, "counts": counts.to_json()}
    if counts.failures:
        data["failing"] = list(counts.failures[:MAX_FAILURES])
    output = runner.display(outcome.output)
    if passed:
        message = "All tests pass." if counts.passed is None else f"{counts.passed} passed."
        return answered(output, modified_files=modified, data=data, message=message)
    return failed(
        _why(counts, outcome, seconds),
        code=ErrorCode.TOOL_TIMEOUT if outcome.ended == "deadline" else ErrorCode.COMMAND_FAILED,
        output=output,
        modified_files=modified,
        data=data,
        instruction="Fix the failing tests, then run them again." if counts.failures else None,
    )


def _why(counts: Counts, outcome: Outcome, seconds: float) -> str:
    if counts.failed:
        return f"{counts.failed} of {counts.failed + (counts.passed or 0)} tests fail."
    if outcome.ended == "exit" and counts.passed == 0:
        return "No test was run."
    return end_reason(outcome, seconds)

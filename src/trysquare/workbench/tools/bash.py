"""The `bash` tool: a command in the sandbox."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Example
from trysquare.core.result import Result, answered, failed
from trysquare.core.tool import Tool
from trysquare.processes.sandbox.job import Outcome, SandboxJob
from trysquare.workbench.context import WorkspaceContext, run_tracked, workbench_tool

MAX_SECONDS = 1_800


class BashArguments(ToolArguments):
    command: Annotated[str, Field(description="For bash -c, in the workspace", min_length=1, max_length=100_000)]
    timeout: Annotated[float | None, Field(description="Seconds; 120 by default", gt=0, le=MAX_SECONDS)] = None


# Documented as in guide/tools/README.md.
def bash_tool(ctx: WorkspaceContext) -> Tool:
    async def bash(args: BashArguments) -> Result[Any]:
        """Run a shell command in a sandbox."""
        seconds = args.timeout or ctx.config.seconds
        job = SandboxJob(command=["bash", "-c", args.command], seconds=seconds)
        outcome, modified = await run_tracked(ctx, job)
        return _response(outcome, modified, seconds)

    return workbench_tool(
        bash,
        category="build",
        needs=("bash",),
        use_when="a build, a script or a program has to run",
        avoid_when="another tool does it: file, search, git and test report more and cost less",
        limits="No network; writes only the workspace, not .git; all processes end with the call",
        read_only=False,
        examples=(Example(arguments={"command": "make build"}, explanation="One command."),),
    )


def _response(outcome: Outcome, modified: list[str] | None, seconds: float) -> Result[Any]:
    data: JsonObject = {"exit_status": outcome.status}
    if outcome.left_out:
        data["left_out"] = outcome.left_out
    warnings = ("The workspace has too many files to tell which of them changed.",) if modified is None else ()
    if outcome.ok:
        return answered(outcome.output, modified_files=modified or [], data=data, warnings=warnings)
    return failed(
        end_reason(outcome, seconds),
        code=ErrorCode.TOOL_TIMEOUT if outcome.ended == "deadline" else ErrorCode.COMMAND_FAILED,
        output=outcome.output,
        modified_files=modified or [],
        data=data,
    )


def end_reason(outcome: Outcome, seconds: float) -> str:
    status = outcome.status
    how = f"by signal {-status}" if status is not None and status < 0 else f"with status {status}"
    return {
        "deadline": f"Timeout: the command and its processes were killed after {seconds:g} s.",
        "output": "The command wrote more than 64 MB and was killed.",
        "processes": "The command started too many processes and was killed.",
        "exit": f"The command exited {how}.",
    }[outcome.ended]

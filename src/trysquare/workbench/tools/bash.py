"""bash: a command in the sandbox."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.workbench.answers import answered, failed
from trysquare.workbench.bench import Bench
from trysquare.workbench.shell.job import Job, Outcome
from trysquare.workbench.watching import watched

LONGEST = 1_800


class BashArguments(ToolArguments):
    """Arguments of bash."""

    command: Annotated[str, Field(description="For bash -c, in the workspace", min_length=1, max_length=100_000)]
    timeout: Annotated[float | None, Field(description="Seconds; 120 by default", gt=0, le=LONGEST)] = None


def bash_tool(bench: Bench) -> Tool:
    """The tool for commands."""

    async def bash(args: BashArguments) -> Result[Any]:
        """Run a shell command in a sandbox."""
        seconds = args.timeout or bench.config.seconds
        job = Job(command=["bash", "-c", args.command], seconds=seconds)
        outcome, modified = await watched(bench, job)
        return _told(outcome, modified, seconds)

    return tool(
        bash,
        room="workbench",
        category="build",
        requirement="required",
        needs=("bash",),
        use_when="a build, a script or a program of the system has to run",
        avoid_when="a tool of its own does it: file, search, git and test say more and cost less",
        limits="No network; only the workspace is written, .git not; everything ends with the call",
        read_only=False,
        open_world=False,
        result_limit=None,
        examples=(Example(arguments={"command": "make build"}, explanation="One command."),),
    )


def _told(outcome: Outcome, modified: list[str] | None, seconds: float) -> Result[Any]:
    data: JsonObject = {"exit_status": outcome.status}
    if outcome.left_out:
        data["left_out"] = outcome.left_out
    if outcome.ok:
        return answered(outcome.output, modified_files=modified or [], data=data, warnings=_warnings(modified))
    return failed(
        how_it_ended(outcome, seconds),
        code=ErrorCode.TOOL_TIMEOUT if outcome.ended == "deadline" else ErrorCode.COMMAND_FAILED,
        output=outcome.output,
        modified_files=modified or [],
        data=data,
    )


def how_it_ended(outcome: Outcome, seconds: float) -> str:
    """Why a command did not end well, in a sentence."""
    match outcome.ended:
        case "deadline":
            return f"The command was ended after {seconds:g} s, with all that it had started."
        case "output":
            return "The command wrote more than 64 MB and was ended."
        case "processes":
            return "The command started too many processes and was ended."
        case "by itself":
            status = outcome.status
            how = f"by signal {-status}" if status is not None and status < 0 else f"with status {status}"
            return f"The command ended {how}."


def _warnings(modified: list[str] | None) -> tuple[str, ...]:
    if modified is None:
        return ("The workspace has too many files to tell which of them changed.",)
    return ()

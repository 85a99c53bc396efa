"""trace and who_wrote: the recorded life of one call, any moment of it, and the writes of a value."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.desk import Desk
from trysquare.debug.guarding import require_reading
from trysquare.debug.names import ToolName
from trysquare.debug.recorded import Run, record_run, require_python
from trysquare.debug.sources import Sources
from trysquare.debug.targets import read_target
from trysquare.debug.traces import Trace, writes_text


class TraceArguments(ToolArguments):
    """Arguments of trace."""

    target: Annotated[str | None, Field(description="None: the last trace")] = None
    function: Annotated[str | None, Field(description="Name, or Class.name")] = None
    call: Annotated[int, Field(description="Which call; -1 is the last")] = 1
    when: Annotated[str | None, Field(description="Or the first call where this holds")] = None
    at: Annotated[int | None, Field(description="State before a step; -1 is the last")] = None
    workspace_root: str | None = None


class WhoWrote(ToolArguments):
    """Arguments of who_wrote."""

    target: str
    value: Annotated[str, Field(description="total, Cart.total or settings['port']")]
    function: Annotated[str | None, Field(description="Only in this one")] = None
    when: Annotated[str | None, Field(description="Only where this holds after the write")] = None
    workspace_root: str | None = None


def trace_tool(desk: Desk) -> Tool:
    """The tool that traces a call."""

    async def trace(args: TraceArguments, context: CallContext) -> Result[Any]:
        """Record one call: arguments, each line with its changes, calls, result; or step back in it. Python."""
        who = context.principal.subject
        if args.target is None:
            return _moment(_last(desk, who), args.at if args.at is not None else -1)
        root, run = await _traced(desk, args)
        call = run.found.get("call")
        if call is None:
            raise _never_called(run, args)
        found = desk.traces[who] = Trace(call=call, root=str(root))
        return _told_trace(found, run) if args.at is None else _moment(found, args.at)

    return tool(trace, name=ToolName.TRACE, room="debug", category="debug", result_limit=None)


async def _traced(desk: Desk, args: TraceArguments) -> tuple[Path, Run]:
    if not args.function:
        raise InvalidArguments(
            "`function` is missing.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Name the function to trace, such as total or Cart.total.",
        )
    if args.call == 0:
        raise InvalidArguments("`call` is 0; calls are counted from 1, and -1 is the last.")
    watch: JsonObject = {"watch": "trace", "function": args.function, "call": args.call}
    return await recorded(desk, args.target or "", args.workspace_root, watch, args.when)


async def recorded(
    desk: Desk, target: str, folder: str | None, watch: JsonObject, when: str | None = None
) -> tuple[Path, Run]:
    """A recorded run of what a caller named, its condition checked first."""
    root = desk.workspace(folder)
    wanted = read_target(target, root)
    require_python(wanted)
    if when is not None:
        require_expression(when)
        watch = {**watch, "when": when}
    return root, await record_run(wanted, root, desk.nursery, watch, timeout=desk.config.timeout)


def require_expression(text: str) -> None:
    """Refuse what is not an expression, and one that does more than read."""
    require_reading(text, "python", allowed=False)


def _told_trace(found: Trace, run: Run) -> Result[Any]:
    fields: JsonObject = {
        "outcome": run.outcome,
        "calls": run.found["calls"],
        "steps": len(found.steps),
        "recording": run.cost.to_json(),
    }
    if run.error:
        fields["error"] = run.error
    return Result.ok(found.to_text(Sources()), warnings=run.cost.warnings, fields=fields)


def _moment(found: Trace, at: int) -> Result[Any]:
    if not found.steps:
        raise NotFound("The traced call ran no line that was recorded.")
    state = found.state_at(at, Sources())
    summary = f"Step {state['step']} of {state['of']} in {found.call['function']}: {state['location']} is about to run."
    return Result.ok(fields={"summary": summary, "data": state})


def _last(desk: Desk, who: str) -> Trace:
    if who in desk.traces:
        return desk.traces[who]
    raise InvalidArguments(
        "Nothing was traced yet, so there is nothing to step back in.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction="Give `target` and `function` first.",
    )


def _never_called(run: Run, args: TraceArguments) -> NotFound:
    calls = int(run.found.get("calls") or 0)
    refused = run.found.get("refused")
    if not calls:
        what = f"`{args.function}` was never called"
    elif args.when:
        what = f"`{args.when}` held in none of the {calls} calls of `{args.function}`"
        what += f" ({refused})" if refused else ""
    else:
        what = f"`{args.function}` was called {calls} times, so there is no call {args.call}"
    ended = f"; the run {run.outcome}" + (f": {run.error}" if run.error else "")
    return NotFound(
        what + ended + ".",
        code=ErrorCode.INTROSPECTION_NOT_FOUND,
        instruction="Check the name, the target and workspace_root; processes that the program starts are not traced.",
        fields={"output": run.output[-500:]},
    )


def who_wrote_tool(desk: Desk) -> Tool:
    """The tool that finds the writes of a value."""

    async def who_wrote(args: WhoWrote, context: CallContext) -> Result[Any]:
        """Run it and tell which lines last wrote a name, attribute or key. Python."""
        _require_value(args.value)
        watch: JsonObject = {"watch": "writes", "value": args.value, "function": args.function}
        root, run = await recorded(desk, args.target, args.workspace_root, watch, args.when)
        text = writes_text(run.found, args.value, str(root), Sources())
        fields: JsonObject = {
            "outcome": run.outcome,
            "count": run.found.get("count", 0),
            "recording": run.cost.to_json(),
        }
        return Result.ok(text, warnings=run.cost.warnings, fields=fields)

    return tool(who_wrote, name=ToolName.WHO_WROTE, room="debug", category="debug", result_limit=None)


def _require_value(text: str) -> None:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        node = None
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        raise InvalidArguments(
            f"`{text[:80]}` is nothing that can be written to.",
            instruction="Name a variable (total), an attribute (Cart.total) or a key (settings['port']).",
        )
    require_expression(text)

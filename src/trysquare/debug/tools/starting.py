"""session_start: a program under the debugger, up to its first stop."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.debug.debugger import BreakpointSpec
from trysquare.debug.desk import Desk
from trysquare.debug.guarding import log_expressions, require_reading
from trysquare.debug.languages import language_of
from trysquare.debug.launching import LaunchSpec
from trysquare.debug.locations import read_location
from trysquare.debug.names import ToolName
from trysquare.debug.targets import read_target


class BreakpointArgument(ToolArguments):
    """A breakpoint to set before the program runs."""

    file: str
    line: int
    condition: str | None = None
    hit_condition: str | None = None
    log_message: str | None = None


class SessionStart(ToolArguments):
    """Arguments of session_start."""

    target: Annotated[str, Field(description="A file, a pytest node id or a command")]
    breakpoints: Annotated[list[BreakpointArgument] | None, Field(description="Where to stop")] = None
    workspace_root: Annotated[str | None, Field(description="Folder to run in")] = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    language: Annotated[str | None, Field(description="Where the target does not tell it")] = None
    runtime_path: Annotated[str | None, Field(description="The interpreter to use")] = None
    allow_side_effects: Annotated[bool, Field(description="Let expressions call and assign")] = False
    timeout: Annotated[float, Field(description="Seconds to wait for a stop", gt=0, le=600)] = 30.0
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


def start_tool(desk: Desk) -> Tool:
    """The tool that starts a program."""

    async def session_start(args: SessionStart, context: CallContext) -> Result[Any]:
        """Start a program under the debugger and run it to its first stop."""
        root = desk.workspace(args.workspace_root)
        target = read_target(args.target, root, runtime=args.runtime_path)
        spec = LaunchSpec(
            target=target.with_words(args.args or ()), root=root, env=args.env or {}, timeout=args.timeout
        )
        breakpoints = [spec_of(each, root, allowed=args.allow_side_effects) for each in args.breakpoints or ()]
        language = language_of(target, given=args.language)
        session = await desk.sessions.start(
            language, spec, principal=context.principal.subject, breakpoints=breakpoints
        )
        session.allows_side_effects = args.allow_side_effects
        session.root = root
        async with session.lock:
            outcome = await session.go(timeout=args.timeout)
            return await desk.report(session, outcome, timeout=args.timeout, budget=args.budget)

    return tool(
        session_start,
        name=ToolName.SESSION_START,
        room="debug",
        category="debug",
        use_when="you want to stop a program at a line and look into it",
        avoid_when="a test fails and you only want to know why: explain says it in one call",
        result_limit=None,
        examples=(
            Example(
                arguments={"target": "app.py", "breakpoints": [{"file": "app.py", "line": 12}]},
                explanation="Runs app.py up to line 12 and shows the values there.",
            ),
        ),
    )


def spec_of(given: BreakpointArgument, root: Any, *, allowed: bool) -> BreakpointSpec:
    """A breakpoint as the debugger takes it, checked: its place exists, its expressions only read."""
    place = read_location(f"{given.file}:{given.line}", root)
    expressions = [*([given.condition] if given.condition else []), *log_expressions(given.log_message or "")]
    for expression in expressions:
        require_reading(expression, "python", allowed=allowed)
    return BreakpointSpec(
        file=place.file,
        line=place.line,
        condition=given.condition,
        hit_condition=given.hit_condition,
        log_message=given.log_message,
    )

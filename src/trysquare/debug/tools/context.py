"""context: everything about a session at one look, and what to do next."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.debugger import Stopped
from trysquare.debug.desk import Desk
from trysquare.debug.names import ToolName
from trysquare.debug.responses import answer, execution_state, next_steps_of, seen_at
from trysquare.debug.session import Session
from trysquare.debug.snapshot import take_snapshot
from trysquare.debug.tools.looking import stack_of
from trysquare.debug.tools.placing import places_json


class ContextArguments(ToolArguments):
    """Arguments of context."""

    detail_level: Literal["brief", "detailed", "full"] = "detailed"
    include_suggestions: Annotated[bool, Field(description="What to do next")] = True
    session_id: str | None = None
    budget: Annotated[int, Field(description="Tokens for values", ge=50)] = 800


def context_tool(desk: Desk) -> Tool:
    """The tool that tells where one stands."""

    async def context(args: ContextArguments, context: CallContext) -> Result[Any]:
        """Tell where a session stands, how it got there and what to do next."""
        async with desk.session(args.session_id, context) as session:
            data: JsonObject = {
                "execution_state": execution_state(session),
                "history": [each.told() for each in session.history.last(5 if args.detail_level == "brief" else 20)],
            }
            if session.stop is not None:
                data |= await _place(desk, session, session.stop, args)
            if args.detail_level != "brief":
                data |= places_json(session)
            if args.detail_level == "full":
                data["output"] = session.output.tail(1500)
            steps = next_steps_of(session) if args.include_suggestions else ()
            return answer(session, f"{session.title}: {data['execution_state']['status']}", data, next_steps=steps)

    return tool(context, name=ToolName.CONTEXT, room="debug", category="debug", read_only=True, result_limit=None)


async def _place(desk: Desk, session: Session, stop: Stopped, args: ContextArguments) -> JsonObject:
    snapshot = await take_snapshot(
        session.debugger, stop, budget=args.budget, watched=desk.watches.get(session.key, ())
    )
    if snapshot is None:
        return {}
    if args.detail_level == "brief":
        return {"location": snapshot.location}
    stack = await stack_of(session, desk.frames(session)) if args.detail_level == "full" else {}
    return seen_at(snapshot) | stack

"""session: which programs are being debugged, and ending them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.desk import Desk
from trysquare.debug.names import ToolName
from trysquare.debug.responses import answer, execution_state
from trysquare.debug.session import Session


class SessionArguments(ToolArguments):
    """Arguments of session."""

    action: Annotated[Literal["status", "list", "switch", "stop"], Field(description="What to do")] = "status"
    session_id: str | None = None


def session_tool(desk: Desk) -> Tool:
    """The tool for sessions."""

    async def session(args: SessionArguments, context: CallContext) -> Result[Any]:
        """Tell about sessions, switch between them, or end one."""
        principal = context.principal.subject
        if args.action == "list":
            listed = [_told(each) for each in desk.sessions.of(principal)]
            return answer(None, f"{len(listed)} sessions", {"sessions": listed})
        found = desk.sessions.find(args.session_id, principal=principal)
        if args.action == "stop":
            await desk.sessions.stop(found)
            return answer(None, f"Session `{found.id}` has ended, and its program with it.", {})
        if args.action == "switch":
            desk.sessions.switch(found)
        return answer(found, f"Session `{found.id}`: {found.title}", _told(found))

    return tool(session, name=ToolName.SESSION, room="debug", category="debug", result_limit=None)


def _told(session: Session) -> JsonObject:
    return {"session_id": session.id, "title": session.title, "language": session.language, **execution_state(session)}

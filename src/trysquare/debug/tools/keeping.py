"""session: which programs are being debugged, which of them is meant, starting one again, and ending it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.arguments import ActionArguments
from trysquare.debug.desk import Desk
from trysquare.debug.names import ToolName
from trysquare.debug.responses import answer, execution_state
from trysquare.debug.session import ALWAYS, EventKind, Session, Status
from trysquare.debug.tools.starting import let_go


class SessionArguments(ActionArguments):
    """Arguments of session."""

    also: ClassVar = {
        "begin": "start", "end": "stop", "terminate": "stop", "kill": "stop", "ls": "list", "clean": "cleanup",
    }  # fmt: skip

    action: Literal["status", "start", "stop", "restart", "list", "cleanup", "switch", "subscribe"] = "status"
    session_id: str | None = None
    keep_breakpoints: Annotated[bool, Field(description="For restart")] = True
    events: Annotated[
        list[Literal["breakpoint", "exception", "stopped", "terminated"]] | None, Field(description="For subscribe")
    ] = None
    timeout: Annotated[float, Field(description="Seconds to wait for a stop", gt=0, le=600)] = 30.0


def session_tool(desk: Desk) -> Tool:
    """The tool for sessions."""

    async def session(args: SessionArguments, context: CallContext) -> Result[Any]:
        """Tell about sessions, switch between them, restart one or end one."""
        principal = context.principal.subject
        match args.action:
            case "list":
                return _list(desk, principal)
            case "cleanup":
                gone = desk.sessions.cleanup(principal)
                return answer(None, f"Forgot {len(gone)} sessions that had ended.", {})
            case "start" | "restart":
                return await _again(desk, args, context)
            case "stop":
                return await _stop(desk, desk.sessions.find(args.session_id, principal=principal))
            case "status" | "switch" | "subscribe":
                return _status(desk, desk.sessions.find(args.session_id, principal=principal), args)

    return tool(session, name=ToolName.SESSION, room="debug", category="debug", result_limit=None)


def _list(desk: Desk, principal: str) -> Result[Any]:
    default = desk.sessions.default_of(principal)
    listed = [{**_told(each), "default": each.id == default} for each in desk.sessions.of(principal)]
    return answer(None, f"{len(listed)} sessions", {"sessions": listed})


def _status(desk: Desk, session: Session, args: SessionArguments) -> Result[Any]:
    if args.action == "switch":
        desk.sessions.switch(session)
    if args.action == "subscribe":
        session.subscribed = ALWAYS | {EventKind(each) for each in args.events or ("exception",)}
    data = _told(session)
    if args.action == "subscribe":
        data["subscribed"] = sorted(session.subscribed)
    if events := session.take_events():
        data["events"] = events
    return answer(session, f"Session `{session.id}`: {session.title}", data)


async def _stop(desk: Desk, session: Session) -> Result[Any]:
    attached = desk.sessions.is_attached(session)
    await desk.sessions.stop(session)
    what = "its program runs on" if attached else "its program with it"
    return answer(None, f"Session `{session.id}` has ended, {what if attached else f'and {what}'}.", {})


async def _again(desk: Desk, args: SessionArguments, context: CallContext) -> Result[Any]:
    """Run a program from its beginning; `start` only one that has ended."""
    session = desk.sessions.find(args.session_id, principal=context.principal.subject)
    if args.action == "start" and session.status is not Status.TERMINATED:
        raise ToolError(
            f"Session `{session.id}` is under way.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Use `session restart` to begin again, or session_start for another program.",
        )
    fresh = await desk.sessions.restart(session, keep_breakpoints=args.keep_breakpoints)
    return await let_go(desk, fresh, context, timeout=args.timeout, budget=800)


def _told(session: Session) -> JsonObject:
    told: JsonObject = {
        "session_id": session.id, "title": session.title, "language": session.language, **execution_state(session),
    }  # fmt: skip
    if session.parent is not None:
        told["started_by"] = session.parent
    if session.ended is not None:
        told["ended"] = str(session.ended)
    return told

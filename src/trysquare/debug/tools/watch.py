"""watch: expressions that are shown at every stop of a session."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.debug.arguments import ActionArguments
from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.debugger import NotReadable
from trysquare.debug.desk import Desk
from trysquare.debug.guarding import not_only_reading, require_reading
from trysquare.debug.names import ToolName, WatchAction
from trysquare.debug.responses import answer
from trysquare.debug.session import Session
from trysquare.debug.snapshot import watched_text
from trysquare.debug.tools.looking import frame_at

MOST = 20


class Watch(ActionArguments):
    """Arguments of watch."""

    also: ClassVar = {"add": "set", "delete": "remove", "rm": "remove", "ls": "list"}

    action: WatchAction = "list"
    expression: Annotated[str | None, Field(description="What to show at every stop")] = None
    session_id: str | None = None


def watch_tool(desk: Desk) -> Tool:
    """The tool for expressions that are always shown."""

    async def watch(args: Watch, context: CallContext) -> Result[Any]:
        """Show expressions at every stop."""
        async with desk.session(args.session_id, context, operation=f"watch {args.action}") as session:
            watched = desk.watches.setdefault(session.key, [])
            summary = await _done(session, watched, args)
            return answer(session, summary, {"watch": await _shown(session, watched)})

    return tool(watch, name=ToolName.WATCH, room="debug", category="debug", result_limit=None)


async def _done(session: Session, watched: list[str], args: Watch) -> str:
    if args.action == "list":
        return f"{len(watched)} watched"
    if not args.expression:
        raise InvalidArguments("`expression` is missing.", code=ErrorCode.VALIDATION_MISSING_PARAM)
    if args.action == "set":
        return await _set(session, watched, args.expression)
    if args.expression not in watched:
        raise InvalidArguments(f"`{args.expression}` is not watched.", instruction="See them with action=list.")
    watched.remove(args.expression)
    return f"`{args.expression}` is no longer shown."


async def _set(session: Session, watched: list[str], expression: str) -> str:
    """Watches are shown by tools that only read, so they only read in every session."""
    if session.language == "python":
        require_reading(expression, "python", allowed=False)
    elif session.stop is not None:
        try:
            await session.debugger.read(expression, (await frame_at(session, 0)).id)
        except NotReadable as refused:
            raise not_only_reading(
                expression, str(refused), open_session=session.id if session.allows_side_effects else None
            ) from None
        except RequestFailed:
            # It may have a value elsewhere.
            pass
    if expression not in watched:
        if len(watched) >= MOST:
            raise InvalidArguments(f"{MOST} expressions are watched already.", instruction="Remove one first.")
        watched.append(expression)
    return f"`{expression}` is shown at every stop."


async def _shown(session: Session, watched: list[str]) -> dict[str, str | None]:
    if session.stop is None:
        return dict.fromkeys(watched)
    frame = await frame_at(session, 0)
    return {expression: await watched_text(session.debugger, expression, frame) for expression in watched}

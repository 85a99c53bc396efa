"""diff: what differs between two stops of a session, or where a failing and a passing run part."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.desk import Desk
from trysquare.debug.divergence import compare, divergence_text
from trysquare.debug.names import ToolName
from trysquare.debug.responses import answer
from trysquare.debug.sources import Sources
from trysquare.debug.stops import differences
from trysquare.debug.tools.trace import recorded

SHOWN = 40


class DiffArguments(ToolArguments):
    """Arguments of diff."""

    target: Annotated[str | None, Field(description="A failing test or command")] = None
    passing: Annotated[str | None, Field(description="A passing one to lay beside it")] = None
    stop: Annotated[int, Field(description="Or a stop of the session; -1 is the one before")] = -1
    other_stop: Annotated[int, Field(description="0 is the latest")] = 0
    session_id: str | None = None
    workspace_root: str | None = None


def diff_tool(desk: Desk) -> Tool:
    """The tool that compares."""

    async def diff(args: DiffArguments, context: CallContext) -> Result[Any]:
        """Compare two stops, or a failing with a passing run up to where they part."""
        if args.target is not None:
            return await _runs(desk, args)
        return await _stops(desk, args, context)

    return tool(diff, name=ToolName.DIFF, room="debug", category="debug", result_limit=None)


async def _runs(desk: Desk, args: DiffArguments) -> Result[Any]:
    if args.passing is None:
        raise InvalidArguments(
            "`passing` is missing.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Name a test or command that passes, to lay beside `target`.",
        )
    watch: JsonObject = {"watch": "flow"}
    (root, one), (_, other) = await asyncio.gather(
        recorded(desk, args.target or "", args.workspace_root, watch),
        recorded(desk, args.passing, args.workspace_root, watch),
    )
    text = divergence_text(compare(one.found, other.found), str(root), Sources())
    fields: JsonObject = {
        "outcomes": [one.outcome, other.outcome],
        "error": one.error,
        "recording": [one.cost.to_json(), other.cost.to_json()],
    }
    return Result.ok(text, warnings=(*one.cost.warnings, *other.cost.warnings), fields=fields)


async def _stops(desk: Desk, args: DiffArguments, context: CallContext) -> Result[Any]:
    async with desk.session(args.session_id, context, operation="diff") as session:
        known = desk.stops.of(session.key)
        numbers = list(known)
        one, other = (_number(each, numbers) for each in (args.stop, args.other_stop))
        first, second = known[one], known[other]
        found = differences(first, second)
        shown = dict(list(found.items())[:SHOWN])
        data: JsonObject = {"from": f"#{one} {first.location}", "to": f"#{other} {second.location}", "changed": shown}
        if len(found) > len(shown):
            data |= {"truncated": True, "total": len(found)}
        return answer(session, f"{len(found)} values differ between stop {one} and stop {other}.", data)


def _number(wanted: int, known: list[int]) -> int:
    """A stop by its number; 0 and negative ones count from the latest."""
    index = len(known) - 1 + wanted
    if wanted > 0 and wanted in known:
        return wanted
    if wanted <= 0 and 0 <= index < len(known):
        return known[index]
    raise InvalidArguments(
        f"There is no stop {wanted}.",
        instruction=f"Stops that were seen: {', '.join(map(str, known[-20:])) or 'none yet'}.",
    )

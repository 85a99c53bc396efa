"""variable: read one value, give it another, or run a piece of code in a frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.debug.arguments import ActionArguments
from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.debugger import Frame
from trysquare.debug.desk import Desk
from trysquare.debug.names import ToolName
from trysquare.debug.rendering import text_of
from trysquare.debug.responses import answer
from trysquare.debug.session import Session
from trysquare.debug.tools.looking import Values, frame_at, parts_of, read


class VariableArguments(ActionArguments, Values):
    """Arguments of variable."""

    also: ClassVar = {"read": "get", "write": "set", "modify": "set", "update": "set"}

    action: Literal["get", "set", "patch"] = "get"
    expression: Annotated[str | None, Field(description="For get: a name or path like self.items[3].tags")] = None
    name: Annotated[str | None, Field(description="For set: what gets the value")] = None
    value: Annotated[str | None, Field(description="For set: an expression")] = None
    code: Annotated[str | None, Field(description="For patch: statements to run in the frame")] = None


def variable_tool(desk: Desk) -> Tool:
    """The tool for one value."""

    async def variable(args: VariableArguments, context: CallContext) -> Result[Any]:
        """Get or set a value, or run code in a frame."""
        async with desk.session(args.session_id, context, operation=f"variable {args.action}") as session:
            frame = await frame_at(session, args.frame)
            match args.action:
                case "get":
                    return await _get(session, frame, args)
                case "set":
                    return await _set(session, frame.id, args)
                case "patch":
                    return await _patch(session, frame.id, args)

    return tool(variable, name=ToolName.VARIABLE, room="debug", category="debug", result_limit=None)


async def _get(session: Session, frame: Frame, args: VariableArguments) -> Result[Any]:
    expression = _needed(args.expression or args.name, "expression")
    found = await read(session, expression, frame, may_run=True)
    data: JsonObject = {"value": text_of(found, longest=2000), "type": found.type}
    data |= await parts_of(session, found, args)
    return answer(session, f"{expression} = {data['value'][:200]}", data)


async def _set(session: Session, frame: int, args: VariableArguments) -> Result[Any]:
    name, value = _needed(args.name or args.expression, "name"), _needed(args.value, "value")
    _require_side_effects(session, f"{name} = {value}")
    try:
        made = await session.debugger.assign(name, value, frame)
    except RequestFailed as error:
        raise ToolError(
            f"`{name}` cannot be given `{value}`: {error.message[:300]}",
            code=ErrorCode.EXECUTION_VARIABLE_SET_FAILED,
            instruction="The value is an expression of the program's language: put quotes around a text.",
        ) from None
    text = text_of(replace(made, name=name))
    return answer(session, f"{name} is now {text}", {"name": name, "value": text, "type": made.type})


async def _patch(session: Session, frame: int, args: VariableArguments) -> Result[Any]:
    code = _needed(args.code, "code")
    _require_side_effects(session, code)
    if session.language not in ("python", "javascript", "typescript", "ruby"):
        raise ToolError(
            f"Code cannot be run in a frame of {session.language}.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Set single values with action=set, or change the source and restart the session.",
        )
    made = await session.debugger.evaluate(code, frame, "repl")
    return answer(session, "The code ran in the frame.", {"value": text_of(made)})


def _require_side_effects(session: Session, what: str) -> None:
    if not session.allows_side_effects:
        raise ToolError(
            f"`{what[:80]}` changes the program, and this session only reads.",
            code=ErrorCode.EXECUTION_NOT_ALLOWED,
            instruction="Start the session with allow_side_effects, if the person agrees to it.",
        )


def _needed(given: str | None, name: str) -> str:
    if given:
        return given
    raise InvalidArguments(f"`{name}` is missing.", code=ErrorCode.VALIDATION_MISSING_PARAM)

"""finished: what every tool of the debugger has in common: chosen settings, a limit, the time taken, real names."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from trysquare.core.context import CallContext
from trysquare.core.errors import ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject
from trysquare.debug.desk import Desk
from trysquare.debug.fitting import fitted
from trysquare.debug.names import Field, ToolName

BESIDE_VALUES = 1000
"""Tokens for what an answer holds beside values: the place, its code, breakpoints, output."""


def finished(tool: Tool, desk: Desk) -> Tool:
    """The tool with the settings of whoever calls filled in, and its answer within limits."""
    inner = tool.call

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        began = time.perf_counter()
        settings = desk.settings_of(context.principal.subject)
        chosen = desk.chosen.get(context.principal.subject, {})
        known = tool.input_schema.get("properties", {})
        given = {**{name: value for name, value in chosen.items() if name in known}, **arguments}
        try:
            result = await inner(given, context)
        except ToolError as error:
            if error.next is not None and error.next.get("tool") in list(ToolName):
                error.next = {**error.next, "tool": called(str(error.next["tool"]), desk.config.prefix)}
            raise
        budget = given.get("budget")
        limit = BESIDE_VALUES + (budget if isinstance(budget, int) else int(settings["budget"]))
        taken = (time.perf_counter() - began) * 1000 if settings["timing"] else None
        return replace(result, fields=_told(result.fields, limit, desk.config.prefix, taken))

    return tool.wrapped(call)


def _told(fields: Mapping[str, Any], limit: int, prefix: str, taken: float | None) -> Mapping[str, Any]:
    told = dict(fields)
    if isinstance(data := told.get(Field.DATA), dict):
        told[Field.DATA] = fitted(cast(JsonObject, data), limit)
    if steps := told.get(Field.NEXT_STEPS):
        told[Field.NEXT_STEPS] = [{**step, "tool": called(step["tool"], prefix)} for step in steps]
    if taken is not None:
        told[Field.TIMING] = {"milliseconds": round(taken, 1)}
    return told


def called(name: str, prefix: str) -> str:
    """A tool's name as clients call it."""
    return f"{prefix}_{name}" if prefix else name

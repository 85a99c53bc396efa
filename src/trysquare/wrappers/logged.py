"""logged: a line before and a line after each call, at a level below DEBUG, and the failures as errors.

| what happened | level | line |
|---|---|---|
| the call begins | TRACE | `Tool called: NAME` |
| it succeeded | TRACE (async tool), DEBUG (sync tool) | `Tool NAME completed successfully` |
| it answered with a failure | INFO | `Tool NAME answered with a failure: CODE` |
| it raised | ERROR | `Tool NAME failed: ERROR`, and the error goes on |
| it waits for a person | INFO | `Tool NAME waits for a person` |
| it was cancelled | INFO | `Tool NAME was cancelled` |

A failure that a tool returns is an answer which its author foresaw and the model reads, so it is no error of the
server. The values of secret arguments never stand in a line.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.errors import CallCancelled, ConsentNeeded, InputRequired
from trysquare.core.result import Result
from trysquare.core.secrets import without_secrets
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

TRACE = 5
logging.addLevelName(TRACE, "TRACE")

logger = logging.getLogger("trysquare.tools")


def logged(tool: Tool) -> Tool:
    """Log each call of the tool."""
    name, inner = tool.name, tool.call
    success_level = TRACE if tool.is_async else logging.DEBUG

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        is_traced = logger.isEnabledFor(TRACE)
        if is_traced:
            logger.log(TRACE, "Tool called: %s", name)
        try:
            result = await inner(arguments, context)
        except (InputRequired, ConsentNeeded):
            logger.info("Tool %s waits for a person", name)
            raise
        except (asyncio.CancelledError, CallCancelled):
            logger.info("Tool %s was cancelled", name)
            raise
        except Exception as error:
            logger.error("Tool %s failed: %s", name, without_secrets(str(error), arguments, tool.input_schema))
            raise
        if not result.success:
            logger.info("Tool %s answered with a failure: %s", name, result.code or result.error_type)
        elif is_traced or success_level > TRACE:
            logger.log(success_level, "Tool %s completed successfully", name)
        return result

    return tool.wrapped(call)

"""Middleware that logs each call."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.errors import CallCancelled, ConsentNeeded, InputRequired
from trysquare.core.json import JsonObject
from trysquare.core.redaction import redact_text
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.middleware.base import Layer

TRACE = 5
logging.addLevelName(TRACE, "TRACE")

logger = logging.getLogger("trysquare.tools")


def log_calls(tool: Tool) -> Tool:
    """Log each call of the tool, without the values of secret arguments.

    A failure that a tool returns is INFO: its author foresaw it and the model reads it.
    """
    name, inner = tool.name, tool.call
    success_level = TRACE if tool.is_async else logging.DEBUG

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        is_traced = logger.isEnabledFor(TRACE)
        if is_traced:
            logger.log(TRACE, "Tool called: %s", name)
        try:
            result = await inner(arguments, context)
        except (InputRequired, ConsentNeeded):
            logger.info("Tool %s waits for the user", name)
            raise
        except (asyncio.CancelledError, CallCancelled):
            logger.info("Tool %s was cancelled", name)
            raise
        except Exception as error:
            logger.error("Tool %s failed: %s", name, redact_text(str(error), arguments, tool.input_schema))
            raise
        if not result.success:
            logger.info("Tool %s returned a failure: %s", name, result.code or result.error_type)
        elif is_traced or success_level > TRACE:
            logger.log(success_level, "Tool %s completed successfully", name)
        return result

    return tool.wrapped(call)


MIDDLEWARE = Layer(order=20, wrap=lambda tool, config: log_calls(tool))

"""Middleware that gives calls the store of approvals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trysquare.core.approvals import Approvals
from trysquare.core.context import CallContext
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.middleware.base import Layer


def with_approvals(tool: Tool, *, approvals: Approvals | None) -> Tool:
    """Store consent to the tool's calls in `approvals`, unless the call's context names another store.

    The tool asks in its own call (`core/consent.py`), with or without this.
    """
    if tool.checked is None or approvals is None:
        return tool
    inner = tool.call

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        if context.approvals is None:
            context = replace(context, approvals=approvals)
        return await inner(arguments, context)

    return tool.wrapped(call)


MIDDLEWARE = Layer(order=50, internal=True, wrap=lambda tool, config: with_approvals(tool, approvals=config.approvals))

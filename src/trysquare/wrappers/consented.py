"""consented: calls of a tool that needs consent find the store of approvals that the server has.

The tool asks in its own call (`core/consent_check.py`), with or without this; it only says where the answer is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trysquare.core.consent import Approvals
from trysquare.core.context import CallContext
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject


def consented(tool: Tool, *, approvals: Approvals | None) -> Tool:
    """Keep consent to the tool's calls in `approvals`, unless the call's context names another store."""
    if tool.checked is None or approvals is None:
        return tool
    inner = tool.call

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        if context.approvals is None:
            context = replace(context, approvals=approvals)
        return await inner(arguments, context)

    return tool.wrapped(call)

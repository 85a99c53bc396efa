"""rate_limit: at most so many calls of each caller in a time, for `Tools(middleware=[...])`."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.middleware.base import Middleware

MAX_CALLERS = 10_000
"""Callers that are remembered; the one that called longest ago is forgotten first."""


def rate_limit(calls: int, seconds: float) -> Middleware:
    """Refuse a caller's calls beyond `calls` in `seconds`, all tools together. A call that waits for consent counts.

    Calls come back evenly (token bucket), so that a caller who paused may make `calls` at once. Callers are
    distinguished by their principal: over stdio there is one.
    """
    if calls < 1 or seconds <= 0:
        raise ValueError(f"a rate limit needs at least one call in a positive time, not {calls} in {seconds} s")
    left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(subject: str) -> float:
        """Take one call of a caller; returns the seconds until there is one, 0 if there was."""
        now = time.monotonic()
        had, since = left.pop(subject, (float(calls), now))
        has = min(float(calls), had + (now - since) * calls / seconds)
        left[subject] = (has - 1 if has >= 1 else has, now)
        if len(left) > MAX_CALLERS:
            left.popitem(last=False)
        return 0.0 if has >= 1 else (1 - has) * seconds / calls

    def limited(inner: Tool) -> Tool:
        async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
            if wait := take(context.principal.subject):
                raise ToolError(
                    f"Rate limit: at most {calls} calls in {seconds:g} seconds. The call was not made.",
                    code=ErrorCode.BUDGET_EXHAUSTED,
                    instruction=f"Send the same call again in {math.ceil(wait)} seconds.",
                )
            return await inner.call(arguments, context)

        return inner.wrapped(call)

    return limited

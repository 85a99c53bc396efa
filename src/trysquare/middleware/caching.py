"""cache_results: results of read-only tools, kept for a time, for `Tools(middleware=[...])`."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.middleware.base import Middleware


def cache_results(seconds: float, *, entries: int = 1000) -> Middleware:
    """Answer a repeated call of a tool that is declared `read_only` from memory, for `seconds`.

    A result belongs to its caller, tool and arguments. Failures are not kept, and neither are the results of tools that
    ask for consent. Beyond `entries` results, the oldest is dropped.
    """
    kept: OrderedDict[tuple[str, str, str], tuple[float, Result[Any]]] = OrderedDict()

    def cached(inner: Tool) -> Tool:
        if not inner.metadata.read_only or inner.metadata.consent is not None:
            return inner

        async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
            key = (context.principal.subject, inner.name, json.dumps(arguments, sort_keys=True))
            found = kept.get(key)
            if found is not None and time.monotonic() < found[0]:
                return found[1]
            result = await inner.call(arguments, context)
            if result.success:
                kept[key] = (time.monotonic() + seconds, result)
                kept.move_to_end(key)
                while len(kept) > entries:
                    kept.popitem(last=False)
            return result

        return inner.wrapped(call)

    return cached

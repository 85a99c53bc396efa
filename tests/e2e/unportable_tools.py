"""A tool whose schema many clients refuse, to see that the portability check can fail."""

from __future__ import annotations

from trysquare import CallContext, Declarations, Result, Tool
from trysquare.core.json import JsonObject
from trysquare.core.signature import PassthroughArguments

tools = Declarations()


async def _call(arguments: JsonObject, context: CallContext) -> Result[None]:
    return Result.ok()


tools.add(
    Tool(
        name="unportable",
        description="Take one thing or another.",
        arguments=PassthroughArguments(wire={"type": "object", "properties": {"anything": True}}),
        call=_call,
    )
)

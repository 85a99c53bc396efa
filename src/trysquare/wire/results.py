"""Results: our envelope as the answer to `tools/call`."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from trysquare.core.errors import ToolError
from trysquare.core.result import Result, render_text
from trysquare.core.types import JsonObject
from trysquare.wire.blocks import block_to_wire
from trysquare.wire.relayed import relayed_to_wire
from trysquare.wire.surrogates import is_encodable, replaced

COMPLETE = "complete"
"""What every result of the 2026-07-28 era says of itself; the SDK takes it out again for the era before."""
_BARE = {"success": True}


def result_to_wire(result: Result[Any]) -> JsonObject:
    """The answer to a call: the envelope once as structured content, and its rendering as text.

    Plain JSON and no model of the SDK: the runner would take a model apart again before it checks and sends it.
    """
    if result.relayed is not None:
        return _relayed(result, result.relayed.body)
    envelope = result.to_json()
    text = render_text(envelope)
    if not is_encodable(text):
        envelope, text = replaced(envelope), replaced(text)
    blocks = [block_to_wire(content) for content in result.content]
    if not blocks or envelope != _BARE:
        blocks.insert(0, {"type": "text", "text": text})
    wire: JsonObject = {"resultType": COMPLETE, "content": blocks, "structuredContent": envelope}
    if not result.success:
        wire["isError"] = True
    if result.meta:
        wire["_meta"] = replaced(dict(result.meta))
    return wire


def _relayed(result: Result[Any], body: bytes) -> JsonObject:
    """What another server answered, read after all, for those who cannot send it as it is."""
    try:
        return from_json(relayed_to_wire(body, result.meta, modern=True))
    except ToolError as error:
        return result_to_wire(Result.from_error(error))

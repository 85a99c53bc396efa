"""PagedArguments: a tool's arguments with one more, the cursor of a long answer's next page."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from trysquare.core.healing import unwrapped
from trysquare.core.schema import Arguments
from trysquare.core.types import JsonObject

CURSOR: JsonObject = {"type": "string", "description": "Next page of a long answer: the cursor that it gave"}


class PagedArguments:
    """The arguments of a tool, or a cursor in their place."""

    def __init__(self, inner: Arguments) -> None:
        self._inner = inner

    @cached_property
    def cursor_name(self) -> str:
        """The name of the argument: `cursor`, or another where the tool has one of its own."""
        own = self._inner.wire.get("properties", {})
        return "cursor" if "cursor" not in own else "page_cursor"

    @property
    def wire(self) -> JsonObject:
        return self._wire

    @cached_property
    def _wire(self) -> JsonObject:
        wire = self._inner.wire
        return {**wire, "properties": {**wire.get("properties", {}), self.cursor_name: CURSOR}}

    @property
    def exact(self) -> JsonObject:
        exact = self._inner.exact
        if "oneOf" not in exact:
            return self.wire
        alone: JsonObject = {"type": "object", "properties": {self.cursor_name: CURSOR}}
        alone |= {"required": [self.cursor_name], "additionalProperties": False}
        return {**exact, "oneOf": [*exact["oneOf"], alone]}

    def parse(self, tool: str, raw: JsonObject) -> Any:
        return self._inner.parse(tool, self.without_cursor(raw))

    def cursor_in(self, raw: JsonObject) -> Any:
        """The cursor of a call, also where a model nested it one level too deep; None for an ordinary call."""
        if self.cursor_name in raw:
            return raw[self.cursor_name]
        return unwrapped(raw, self.wire["properties"]).get(self.cursor_name) if len(raw) == 1 else None

    def without_cursor(self, raw: JsonObject) -> JsonObject:
        """The arguments for the tool itself: some clients send every optional argument as null."""
        if self.cursor_name not in raw:
            return raw
        return {name: value for name, value in raw.items() if name != self.cursor_name}

    def required_in(self, raw: JsonObject) -> JsonObject:
        """The call's required arguments: a client that checks calls wants them beside the cursor too."""
        required: list[str] = self._inner.wire.get("required", [])
        return {name: raw[name] for name in required if name in raw}

"""Trimming: the debugger's schemas without what a model can do without, since every client pays for each byte.

Bounds stay in force; they are only not shown. What an argument of several tools is for is told once, where a session
is started.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from trysquare.core.schema import Arguments
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject
from trysquare.debug.names import ToolName

_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "minItems"})
_NOT_IN_ITEMS = _BOUNDS | {"description", "additionalProperties"}
_TOLD_ONCE = frozenset({"budget", "timeout", "session_id", "workspace_root"})


def trimmed(tool: Tool) -> Tool:
    """The tool with a schema that is as short as it can be."""
    return replace(tool, arguments=TrimmedArguments(tool.arguments, tells=tool.name == ToolName.SESSION_START))


@dataclass(frozen=True)
class TrimmedArguments:
    """Arguments that are checked as ever, and shown briefly."""

    inner: Arguments
    tells: bool
    """Whether it tells what the arguments are for that several tools have."""

    @property
    def wire(self) -> JsonObject:
        return self._wire

    @cached_property
    def _wire(self) -> JsonObject:
        whole = self.inner.wire
        properties = cast(dict[str, JsonObject], whole.get("properties", {}))
        return {**whole, "properties": {name: self._short(name, part) for name, part in properties.items()}}

    @property
    def exact(self) -> JsonObject:
        return self.inner.exact

    def parse(self, tool: str, raw: JsonObject) -> Any:
        return self.inner.parse(tool, raw)

    def _short(self, name: str, schema: JsonObject) -> JsonObject:
        short = _without_bounds(schema)
        if not self.tells and name in _TOLD_ONCE:
            return {key: part for key, part in short.items() if key not in ("description", "default")}
        return short


def _without_bounds(schema: JsonObject) -> JsonObject:
    short = {key: part for key, part in schema.items() if key not in _BOUNDS}
    if short.get("default") is False:
        # An option that is not set is off.
        del short["default"]
    if isinstance(items := short.get("items"), dict):
        short["items"] = {key: part for key, part in cast(JsonObject, items).items() if key not in _NOT_IN_ITEMS}
    return short

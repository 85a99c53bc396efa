"""Names of tools with a prefix, wherever a name stands: in the list, and in the calls that results propose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import UNPREFIXED
from trysquare.core.result import Result
from trysquare.core.tool import Tool

MAX_NAME = 64
"""Clients refuse longer tool names."""


def final_name(name: str, prefix: str) -> str:
    """The prefix and the name: `guide_` and `get` make `guide_get`, and so does `guide`, a word of its own."""
    if not prefix:
        return name
    joined = f"{prefix}_{name}" if prefix[-1].isalnum() else f"{prefix}{name}"
    if len(joined) > MAX_NAME:
        raise DeclarationError(
            f"`{joined}` has {len(joined)} characters, and clients refuse tool names of more than {MAX_NAME}. "
            f"Shorten the prefix `{prefix}` or the name `{name}`, or give that tool a prefix of its own: "
            f'`prefix=""` means none.'
        )
    return joined


def prefixed_name(tool: Tool, default: str) -> str:
    """The name of a tool with its own prefix, or with the default one."""
    own = tool.metadata.prefix
    return final_name(tool.name, default if own is None else own)


def prefix_name(tool: Tool, *, prefix: str, rename: Callable[[str], str] | None = None) -> Tool:
    """Rename the tool, and the calls that its results propose in `next`.

    `rename` returns the final names of the set's other tools; without it only the tool's own name is rewritten.
    """
    name = prefixed_name(tool, prefix)
    if name == tool.name and rename is None:
        return tool
    known = rename or {tool.name: name}.get
    inner = tool.call

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        try:
            result = await inner(arguments, context)
        except ToolError as error:
            error.next = _renamed(error.next, known)
            raise
        following = _renamed(result.next, known)
        return result if following is result.next else replace(result, next=following)

    meta = {UNPREFIXED: tool.name, **tool.metadata.meta}
    return tool.wrapped(call, name=name, metadata=replace(tool.metadata, meta=meta))


def _renamed(following: JsonObject | None, rename: Callable[[str], str | None]) -> JsonObject | None:
    """The proposed call under its final name; the very same object where nothing changes."""
    name = None if following is None else following.get("tool")
    if following is None or not isinstance(name, str) or (final := rename(name) or name) == name:
        return following
    return {**following, "tool": final}

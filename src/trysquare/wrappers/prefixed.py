"""prefixed: the tool under a longer name, so that tools of several sources stay apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError, ToolError
from trysquare.core.metadata import UNPREFIXED
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

MAX_NAME = 64
"""Clients refuse longer tool names."""

Rename: TypeAlias = Callable[[str], str]
"""From the name that a tool was declared with to the name that callers know; other names stay as they are."""


def final_name(name: str, prefix: str) -> str:
    """The name with its prefix: `guide` and `get` make `guide_get`; an empty prefix changes nothing."""
    if not prefix:
        return name
    joined = f"{prefix}{name}" if prefix.endswith("_") else f"{prefix}_{name}"
    if len(joined) > MAX_NAME:
        raise DeclarationError(
            f"`{joined}` has {len(joined)} characters, and clients refuse tool names of more than {MAX_NAME}. "
            f"Shorten the prefix `{prefix}` or the name `{name}`, or give that tool a prefix of its own: "
            f'`prefix=""` means none.'
        )
    return joined


def prefix_of(tool: Tool, default: str) -> str:
    """The prefix that holds for a tool: its own, where it has one."""
    own = tool.metadata.prefix
    return default if own is None else own


def prefixed(tool: Tool, *, prefix: str, rename: Rename | None = None) -> Tool:
    """Rename the tool, and the calls that its answers propose, so that a model can send them as they are.

    `rename` tells the final names of the set's other tools; without it only the tool's own name is rewritten.
    """
    name = final_name(tool.name, prefix_of(tool, prefix))
    if name == tool.name and rename is None:
        return tool
    known = rename or _only(tool.name, name)
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


def _only(name: str, final: str) -> Rename:
    return lambda asked: final if asked == name else asked


def _renamed(following: JsonObject | None, rename: Rename) -> JsonObject | None:
    """The proposed call under its final name; the very same object where nothing changes."""
    if following is None:
        return None
    name = following.get("tool")
    if not isinstance(name, str) or (final := rename(name)) == name:
        return following
    return {**following, "tool": final}

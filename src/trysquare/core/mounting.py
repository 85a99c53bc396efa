"""Mounts: the tools, prompts and resources of one `Tools` as part of another one, under a prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext, FastCall
from trysquare.core.json import JsonObject
from trysquare.core.prefix import final_name, prefix_name, prefixed_name
from trysquare.core.prompts import Prompt, PromptMessage
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.toolset import StaticToolset


def mounted_tools(toolset: StaticToolset, prefix: str) -> list[Tool]:
    """The tools of a toolset with a prefix. What they propose and call by name is found under the new names."""
    if not prefix:
        return list(toolset.tools())
    names = {made.name: final_name(prefixed_name(made, ""), prefix) for made in toolset.tools()}
    return [_mounted(made, prefix, names) for made in toolset.tools()]


def mounted_prompts(toolset: StaticToolset, prefix: str) -> list[Prompt]:
    """The prompts of a toolset with a prefix."""
    return [replace(each, name=final_name(each.name, prefix)) for each in toolset.prompts()]


def _mounted(made: Tool, prefix: str, names: Mapping[str, str]) -> Tool:
    own = made.metadata.prefix
    placed = replace(made, metadata=replace(made.metadata, prefix=final_name(own, prefix) if own else prefix))
    renamed = prefix_name(placed, prefix="", rename=lambda name: names.get(name, name))

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        if context.direct is not None:
            context = replace(context, direct=_CallsByDeclaredName(context.direct, names))
        return await renamed.call(arguments, context)

    # A prefix of the whole server comes before it, unless the tool said that it has its own.
    return renamed.wrapped(call, metadata=replace(renamed.metadata, prefix=None if own is None else ""))


class _CallsByDeclaredName:
    """Calls between the tools of a mounted toolset, which know each other by the names that they were declared with."""

    def __init__(self, inner: FastCall, names: Mapping[str, str]) -> None:
        self._inner, self._names = inner, names

    async def __call__(self, name: str, arguments: JsonObject | None, context: CallContext) -> Result[Any]:
        return await self._inner(self._names.get(name, name), arguments, context)

    async def read_resource(self, uri: str, context: CallContext) -> Sequence[ResourceContents]:
        """Read a resource, whose address is the same everywhere."""
        return await replace(context, direct=self._inner).read_resource(uri)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str], context: CallContext
    ) -> Sequence[PromptMessage]:
        """Render a prompt by its final name."""
        return await replace(context, direct=self._inner).get_prompt(name, arguments)

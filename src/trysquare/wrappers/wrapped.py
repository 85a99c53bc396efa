"""WrappedToolset: a toolset whose tools are wrapped, each when it is first needed; and the order of the wrappers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trysquare.core.consent import Approvals
from trysquare.core.context import CallContext
from trysquare.core.prompt import Prompt
from trysquare.core.resource import Resource, ResourceTemplate
from trysquare.core.result import Result
from trysquare.core.tool import Call, Tool
from trysquare.core.toolset import Change, Listener, Toolset, Unsubscribe, by_name, resource_of_template
from trysquare.core.types import JsonObject
from trysquare.wrappers.consented import consented
from trysquare.wrappers.limited import RESULTS, limited, paged_arguments
from trysquare.wrappers.logged import logged
from trysquare.wrappers.meter import Meter
from trysquare.wrappers.prefixed import Rename, final_name, prefix_of, prefixed
from trysquare.wrappers.timed import timed
from trysquare.wrappers.traced import traced

logger = logging.getLogger("trysquare.tools")

Wrap: TypeAlias = Callable[[Tool], Tool]


class WrappedToolset:
    """A toolset with every tool wrapped. Prompts, resources and changes are those of the toolset inside.

    A tool is wrapped when it is first found or listed, and kept for as long as the toolset inside returns the same one.
    """

    def __init__(
        self,
        toolset: Toolset,
        wrap: Wrap,
        *,
        name_of: Callable[[Tool], str] | None = None,
        templates: Iterable[ResourceTemplate] = (),
    ) -> None:
        """`name_of` tells a tool's final name without wrapping it; leave it out where `wrap` keeps the names."""
        self._inner = toolset
        self._wrap = wrap
        self._name_of = name_of
        self._templates = tuple(templates)
        self._wrapped: dict[str, tuple[Tool, Tool]] = {}
        # Names that collide are found here, when the set is built, and not at some later call.
        self._inner_names = None if name_of is None else _inner_names(toolset.tools(), name_of)
        if name_of is not None:
            toolset.subscribe(self._on_change)

    def tools(self) -> Sequence[Tool]:
        return tuple(self._wrapped_once(tool) for tool in self._inner.tools())

    def find(self, name: str) -> Tool | None:
        tool = self._inner.find(self._inner_name(name))
        wrapped = None if tool is None else self._wrapped_once(tool)
        # What is found by the name of its author may be called otherwise here.
        return wrapped if wrapped is not None and wrapped.name == name else None

    def prompts(self) -> Sequence[Prompt]:
        return self._inner.prompts()

    def find_prompt(self, name: str) -> Prompt | None:
        return self._inner.find_prompt(name)

    def resources(self) -> Sequence[Resource]:
        return self._inner.resources()

    def templates(self) -> Sequence[ResourceTemplate]:
        return (*self._inner.templates(), *self._templates)

    def find_resource(self, uri: str) -> Resource | None:
        # What is ours comes first: no source stands in place of it.
        return resource_of_template(uri, self._templates) or self._inner.find_resource(uri)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._inner.subscribe(listener)

    def _wrapped_once(self, tool: Tool) -> Tool:
        known = self._wrapped.get(tool.name)
        if known is not None and known[0] is tool:
            return known[1]
        wrapped = self._wrap(tool)
        self._wrapped[tool.name] = (tool, wrapped)
        return wrapped

    def _inner_name(self, name: str) -> str:
        if self._name_of is None:
            return name
        if self._inner_names is None:
            self._inner_names = _inner_names_now(self._inner.tools(), self._name_of)
        return self._inner_names.get(name, name)

    def _on_change(self, change: Change) -> None:
        if change == "tools":
            self._inner_names = None
            self._wrapped = {}


def _inner_names(tools: Sequence[Tool], name_of: Callable[[Tool], str]) -> dict[str, str]:
    return by_name("tool", ((name_of(tool), tool.name) for tool in tools))


def _inner_names_now(tools: Sequence[Tool], name_of: Callable[[Tool], str]) -> dict[str, str]:
    """The names while the server runs: a collision that a change brought must not stop the other tools."""
    found: dict[str, str] = {}
    for tool in tools:
        final = name_of(tool)
        if found.setdefault(final, tool.name) != tool.name:
            logger.error("Two tools are now called %s; the one declared as %s cannot be reached", final, tool.name)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Wrapping:
    """What the wrappers of a served toolset need."""

    prefix: str = ""
    approvals: Approvals | None = None
    """Where consent is kept; without it a tool that needs consent runs only if the client can ask."""
    meter: Meter = field(default_factory=Meter)


def in_order(wrapping: Wrapping, rename: Rename | None = None) -> Wrap:
    """All wrappers in their one order; outermost first: traced, timed, logged, prefixed, limited, consented."""

    def wrap(tool: Tool) -> Tool:
        held = limited(consented(tool, approvals=wrapping.approvals))
        named = prefixed(held, prefix=wrapping.prefix, rename=rename)
        return traced(timed(logged(named), meter=wrapping.meter))

    return lambda tool: _when_called(tool, wrap, wrapping.prefix)


def _when_called(tool: Tool, wrap: Wrap, prefix: str) -> Tool:
    """What a listing shows of the wrapped tool. The wrappers themselves are put on at the first call."""
    made: Call | None = None

    def call(arguments: JsonObject, context: CallContext) -> Awaitable[Result[Any]]:
        nonlocal made
        if made is None:
            made = wrap(tool).call
        return made(arguments, context)

    name = final_name(tool.name, prefix_of(tool, prefix))
    return tool.wrapped(call, name=name, arguments=paged_arguments(tool))


def wrapped_toolset(toolset: Toolset, wrapping: Wrapping) -> WrappedToolset:
    """The toolset as it is served: every tool with all wrappers, and the pages of long answers as resources."""

    def name_of(tool: Tool) -> str:
        return final_name(tool.name, prefix_of(tool, wrapping.prefix))

    def rename(name: str) -> str:
        tool = toolset.find(name)
        return name if tool is None else name_of(tool)

    return WrappedToolset(toolset, in_order(wrapping, rename), name_of=name_of, templates=(RESULTS,))


def direct_toolset(toolset: Toolset, wrapping: Wrapping) -> WrappedToolset:
    """The toolset as prompts call it: under the declared names, and only limited, with consent kept."""
    return WrappedToolset(toolset, lambda tool: limited(consented(tool, approvals=wrapping.approvals)))

"""MiddlewareToolset, and the stack of all layers in this package."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from trysquare.core.context import Call, CallContext
from trysquare.core.json import JsonObject
from trysquare.core.lifespan import Lifespans
from trysquare.core.prompts import Prompt
from trysquare.core.resources import Resource, ResourceTemplate
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.toolset import (
    Change,
    Listener,
    Toolset,
    Unsubscribe,
    by_name,
    lifespans_of,
    resource_of_template,
)
from trysquare.middleware.base import READ_MORE, Layer, Middleware, MiddlewareConfig

logger = logging.getLogger("trysquare.tools")


class MiddlewareToolset:
    """A toolset with middleware around every tool. Prompts, resources and changes are those of the toolset inside.

    Tools are indexed by their final names whenever they change, and wrapped when they are first found or listed.
    """

    def __init__(
        self,
        toolset: Toolset,
        wrap: Middleware,
        *,
        name_of: Callable[[Tool], str] | None = None,
        templates: Iterable[ResourceTemplate] = (),
        reader: Tool | None = None,
    ) -> None:
        """`name_of` returns a tool's final name without wrapping it; leave it out where `wrap` keeps the names.

        `reader` reads the pages of long results: it stands behind the other tools where one of them may give some.
        """
        self._inner = toolset
        self._reader = reader
        self._wrap = wrap
        self._name_of: Callable[[Tool], str] = name_of or (lambda tool: tool.name)
        self._templates = tuple(templates)
        self._wrapped: dict[str, tuple[Tool, Tool]] = {}
        self._lock = threading.Lock()
        # Names that collide are found here, when the set is built, and not at some later call.
        self._index = by_name("tool", ((self._name_of(tool), tool) for tool in self._inner_tools()))
        self.renames = self._any_renamed()
        """Whether any tool has another name here."""
        toolset.subscribe(self._on_change)

    @property
    def lifespans(self) -> Sequence[Lifespans]:
        return lifespans_of(self._inner)

    def tools(self) -> Sequence[Tool]:
        return tuple(self._wrapped_once(tool) for tool in self._inner_tools())

    def _inner_tools(self) -> Sequence[Tool]:
        tools = self._inner.tools()
        if self._reader is None or not any(tool.may_be_paged for tool in tools):
            return tools
        return (*tools, self._reader)

    def find(self, name: str) -> Tool | None:
        # A toolset may find tools that it does not list.
        tool = self._index.get(name) or self._inner.find(name) or self._reader
        wrapped = None if tool is None else self._wrapped_once(tool)
        # A tool that is found by its declared name may have another one here.
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
        # The templates of the middleware come first: no provider replaces them.
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

    def _on_change(self, change: Change) -> None:
        if change != "tools":
            return
        with self._lock:
            self._index = self._index_of(self._inner_tools())
            self.renames = self._any_renamed()
            self._wrapped = {}

    def _any_renamed(self) -> bool:
        return any(name != tool.name for name, tool in self._index.items())

    def _index_of(self, tools: Sequence[Tool]) -> dict[str, Tool]:
        """The tools by final name while the server runs: a collision must not make the other tools unavailable."""
        found: dict[str, Tool] = {}
        for tool in tools:
            if found.setdefault(final := self._name_of(tool), tool) is not tool:
                logger.error("Two tools are now called %s; the one declared as %s cannot be reached", final, tool.name)
        return found


@cache
def layers() -> tuple[Layer, ...]:
    """The layers that the modules of this package declare, outermost first."""
    modules = pkgutil.iter_modules([str(Path(__file__).parent)], f"{__package__}.")
    found = (getattr(importlib.import_module(module.name), "MIDDLEWARE", None) for module in modules)
    return tuple(sorted((layer for layer in found if isinstance(layer, Layer)), key=lambda layer: layer.order))


def _when_called(tool: Tool, config: Callable[[], MiddlewareConfig]) -> Tool:
    """The tool as it is listed. Its call is composed when it is first called, of the layers that apply to it."""
    composed: Call | None = None

    def call(arguments: JsonObject, context: CallContext) -> Awaitable[Result[Any]]:
        nonlocal composed
        if composed is None:
            composed = _compose(tool, layers(), config()).call
        return composed(arguments, context)

    described = _describe(tool, config())
    return tool.wrapped(call, name=described.name, arguments=described.arguments)


def _compose(tool: Tool, stack: Sequence[Layer], config: MiddlewareConfig) -> Tool:
    for layer in reversed(stack):
        tool = layer.wrap(tool, config)
    return tool


def _describe(tool: Tool, config: MiddlewareConfig) -> Tool:
    for layer in reversed(layers()):
        if layer.describe is not None:
            tool = layer.describe(tool, config)
    return tool


def with_middleware(toolset: Toolset, config: MiddlewareConfig) -> MiddlewareToolset:
    """The toolset as it is served: every tool with the whole stack, and the resources of its layers."""

    def name_of(tool: Tool) -> str:
        return _describe(tool, config).name

    reader = _page_reader(toolset, name_of)
    known = replace(config, page_reader=name_of(reader))

    def rename(name: str) -> str:
        tool = reader if name == reader.name else toolset.find(name)
        return name if tool is None else name_of(tool)

    def current_config() -> MiddlewareConfig:
        return replace(known, rename=rename) if config.prefix or served.renames else known

    templates = [template for layer in layers() for template in layer.templates]
    served = MiddlewareToolset(
        toolset, lambda tool: _when_called(tool, current_config), name_of=name_of, templates=templates, reader=reader
    )
    return served


def _page_reader(toolset: Toolset, name_of: Callable[[Tool], str]) -> Tool:
    """The tool that reads the pages of long results, under the first name that no other tool has."""
    taken = {name_of(tool) for tool in toolset.tools()}
    # With the other layers, which are imported only where something is served.
    make = next(layer.tool for layer in layers() if layer.tool is not None)
    readers = (make(name) for name in (READ_MORE, "read_next_page", "read_result_page"))
    return next(reader for reader in readers if name_of(reader) not in taken)


def internal_toolset(toolset: Toolset, config: MiddlewareConfig) -> MiddlewareToolset:
    """The toolset as prompts call it: under the declared names, with the internal layers only."""
    internal = [layer for layer in layers() if layer.internal]
    reader = _page_reader(toolset, lambda tool: tool.name)
    known = replace(config, page_reader=reader.name)
    return MiddlewareToolset(toolset, lambda tool: _compose(tool, internal, known), reader=reader)

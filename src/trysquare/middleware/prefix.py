"""Middleware that puts a prefix before tool names."""

from __future__ import annotations

from dataclasses import replace

from trysquare.core.prefix import prefix_name, prefixed_name
from trysquare.core.tool import Tool
from trysquare.middleware.base import Layer, MiddlewareConfig


def _described(tool: Tool, config: MiddlewareConfig) -> Tool:
    name = prefixed_name(tool, config.prefix)
    return tool if name == tool.name else replace(tool, name=name)


MIDDLEWARE = Layer(
    order=30,
    wrap=lambda tool, config: prefix_name(tool, prefix=config.prefix, rename=config.rename),
    describe=_described,
)

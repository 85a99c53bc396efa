"""ExtMcpToolDecorator: functions registered as tools under a prefix, with generated descriptions and logged calls."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar, Unpack, runtime_checkable

from trysquare.core.errors import DeclarationError
from trysquare.core.metadata import MetadataOptions
from trysquare.core.prefix import prefix_name
from trysquare.core.schema.describe import schema_markdown
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import DynamicToolset
from trysquare.middleware.observability import log_calls

PREFIX_VARIABLE = "MCP_TOOL_PREFIX"

F = TypeVar("F", bound=Callable[..., Any])


@runtime_checkable
class Registrar(Protocol):
    """What tools are registered with: `Tools` is one."""

    def add(self, made: Tool, /) -> None: ...


def described_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[MetadataOptions],
) -> Tool:
    """A tool whose listed description is the docstring with the arguments after it, unless one is given."""
    made = tool(function, name=name, description=description, **options)
    text = description or f"{made.description}\n\n{schema_markdown(made.arguments.exact)}".strip()
    return replace(made, description=text, metadata=replace(made.metadata, verbatim=True))


class ExtMcpToolDecorator:
    """Registers functions as tools whose names carry a prefix and whose calls are logged.

    `server` is a FastMCP server or a `Tools`. Without `prefix` the environment variable `MCP_TOOL_PREFIX` gives it;
    otherwise there is none.
    """

    def __init__(self, server: Any, *, prefix: str | None = None, env: Mapping[str, str] = os.environ) -> None:
        self._add = server.add if isinstance(server, Registrar) else _fastmcp_registration(server)
        self.prefix = env.get(PREFIX_VARIABLE, "") if prefix is None else prefix

    def tool(
        self, name: str | None = None, description: str | None = None, **options: Unpack[MetadataOptions]
    ) -> Callable[[F], F]:
        """Register the decorated function, which is returned unchanged. `prefix="…"` holds for this tool alone."""

        def register(function: F) -> F:
            made = described_tool(function, name=name, description=description, **options)
            final = log_calls(prefix_name(made, prefix=self.prefix))
            # The name is final: a server must not add a prefix once more.
            self._add(replace(final, metadata=replace(final.metadata, prefix="")))
            return function

        return register


def _fastmcp_registration(server: Any) -> Callable[[Tool], None]:
    """Registers tools with a FastMCP server, whatever it has already."""
    if not callable(getattr(server, "add_provider", None)):
        kind = type(server).__name__
        raise DeclarationError(f"Cannot register tools with a `{kind}`. Pass a FastMCP 4 server, or a `Tools`.")
    toolset = DynamicToolset()
    # By name, since it is the one module that may import FastMCP.
    server.add_provider(importlib.import_module("trysquare.integrations.fastmcp").TrysquareProvider(toolset))
    return lambda made: toolset.replace(tools=[*toolset.tools(), made])

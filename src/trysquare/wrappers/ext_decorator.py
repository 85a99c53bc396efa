"""ExtMcpToolDecorator: a decorator that registers functions under prefixed names, logged. A thin layer over wrappers.

declarations = Declarations()
decorator = ExtMcpToolDecorator(declarations)

@decorator.tool(name="greet", description="Greet a person by name.")
async def greet(args: Greet) -> Result[str]: ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar, Unpack

from trysquare.core.metadata import MetadataOptions
from trysquare.core.tool import Tool, tool
from trysquare.wrappers.logged import logged
from trysquare.wrappers.prefixed import prefixed

PREFIX_VARIABLE = "MCP_TOOL_PREFIX"

F = TypeVar("F", bound=Callable[..., Any])


class Registrar(Protocol):
    """Where finished tools go: `Declarations` is one."""

    def add(self, made: Tool, /) -> None:
        """Take a tool under its final name."""
        ...


class ExtMcpToolDecorator:
    """Registers functions as tools whose names carry a prefix and whose calls are logged.

    Without `prefix` the environment variable `MCP_TOOL_PREFIX` gives it; if that is not set either, there is none.
    """

    def __init__(self, registrar: Registrar, *, prefix: str | None = None, env: Mapping[str, str] = os.environ) -> None:
        self._registrar = registrar
        self.prefix = env.get(PREFIX_VARIABLE, "") if prefix is None else prefix

    def tool(
        self,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[MetadataOptions],
    ) -> Callable[[F], F]:
        """Register the decorated function, which is returned unchanged. `prefix="…"` holds for this tool alone."""

        def register(function: F) -> F:
            made = tool(function, name=name, description=description, **options)
            final = logged(prefixed(made, prefix=self.prefix))
            # The name is final: whoever serves the tool must not put a prefix before it once more.
            self._registrar.add(replace(final, metadata=replace(final.metadata, prefix="")))
            return function

        return register

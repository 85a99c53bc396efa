"""Layer: what a middleware module declares as `MIDDLEWARE`, and the configuration that layers read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from trysquare.core.approvals import Approvals
    from trysquare.core.resources import ResourceTemplate
    from trysquare.core.tool import Tool

Middleware: TypeAlias = Callable[["Tool"], "Tool"]
Rename: TypeAlias = Callable[[str], str]
"""From the declared name of a tool to the name that callers use; other names stay as they are."""


READ_MORE = "read_more"
"""The tool that reads on in long answers."""


class Meter(Protocol):
    """Measures calls: `CallMetrics` is one."""

    def measured(self, tool: Tool, /) -> Tool:
        """The tool with each call measured."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class MiddlewareConfig:
    """Configuration of the layers around a toolset."""

    prefix: str = ""
    approvals: Approvals | None = None
    """Where consent is stored; without it a tool that needs consent runs only if the client can ask."""
    meter: Meter | None = None
    """Measures every call; without it nothing is measured."""
    page_reader: str = READ_MORE
    """The name of the tool that reads on in long answers."""
    rename: Rename | None = None
    """The final names of the other tools, which results may name; None where no tool is renamed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """A middleware of the stack. Each module of this package with a `MIDDLEWARE` adds one."""

    order: int
    """Position in the stack: the lowest is outermost."""
    wrap: Callable[[Tool, MiddlewareConfig], Tool]
    """The tool with another `call`, or the same tool where the middleware does not apply to it."""
    describe: Callable[[Tool, MiddlewareConfig], Tool] | None = None
    """The tool as it is listed, where the middleware changes its name or arguments."""
    internal: bool = False
    """Whether it also applies to calls that prompts and other tools make."""
    tool: Callable[[str], Tool] | None = None
    """Makes the tool that the middleware adds, under the name of the page reader."""
    templates: tuple[ResourceTemplate, ...] = ()
    """Resources that the middleware adds to the toolset."""

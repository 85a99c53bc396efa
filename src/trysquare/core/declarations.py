"""Declarations: where a module declares its tools, prompts and resources, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, Unpack, overload

from trysquare.core.arguments import DrainableRegistry
from trysquare.core.metadata import MetadataOptions
from trysquare.core.prompts import Complete, Prompt, prompt
from trysquare.core.resources import Resource, ResourceTemplate, resource
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import StaticToolset

F = TypeVar("F", bound=Callable[..., Any])


class Declarations:
    """What a module declares. It is an object that the module owns, so that importing has no hidden effect."""

    def __init__(self) -> None:
        self._tools: DrainableRegistry[Tool] = DrainableRegistry("Tool")
        self._prompts: DrainableRegistry[Prompt] = DrainableRegistry("Prompt")
        self._resources: DrainableRegistry[Resource | ResourceTemplate] = DrainableRegistry("Resource")

    @overload
    def declare(self, function: F, /) -> F: ...

    @overload
    def declare(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        **options: Unpack[MetadataOptions],
    ) -> Callable[[F], F]: ...

    def declare(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Declare a function as a tool; it is returned unchanged. Works with and without parentheses."""

        def remember(declared: F) -> F:
            self.add(tool(declared, **options))
            return declared

        return remember if function is None else remember(function)

    def add(self, made: Tool) -> None:
        """Add a tool that was made elsewhere."""
        self._tools.add(made.name, made)

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        complete: Complete | None = None,
        examples: tuple[tuple[str, str], ...] = (),
    ) -> Callable[[F], F]: ...

    def prompt(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Declare a function as a prompt; it is returned unchanged. Works with and without parentheses."""

        def remember(declared: F) -> F:
            made = prompt(declared, **options)
            self._prompts.add(made.name, made)
            return declared

        return remember if function is None else remember(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        complete: Complete | None = None,
    ) -> Callable[[F], F]:
        """Declare a function as a resource, or as a template where the address has parts in braces."""

        def remember(declared: F) -> F:
            made = resource(
                declared, uri, name=name, title=title, description=description, mime_type=mime_type, complete=complete
            )
            self._resources.add(uri, made)
            return declared

        return remember

    def toolset(self) -> StaticToolset:
        """All that was declared, as a toolset. Can be asked again; nothing is used up."""
        return _as_toolset(self._tools.all(), self._prompts.all(), self._resources.all())

    def collect(self) -> StaticToolset:
        """All that was declared since the last time, once: what is collected is not collected again."""
        return _as_toolset(self._tools.take(), self._prompts.take(), self._resources.take())


def _as_toolset(
    tools: dict[str, Tool], prompts: dict[str, Prompt], resources: dict[str, Resource | ResourceTemplate]
) -> StaticToolset:
    return StaticToolset(
        tools.values(),
        prompts=prompts.values(),
        resources=(made for made in resources.values() if isinstance(made, Resource)),
        templates=(made for made in resources.values() if isinstance(made, ResourceTemplate)),
    )

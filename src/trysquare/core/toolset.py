"""Toolset: where tools, prompts and resources come from. Fixed, combined, or changing while running."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from trysquare.core.errors import DeclarationError
from trysquare.core.prompt import Prompt
from trysquare.core.resource import Resource, ResourceTemplate
from trysquare.core.tool import Tool

Change: TypeAlias = Literal["tools", "prompts", "resources"] | str
"""What changed: a kind of thing, or the address of one resource."""
Listener: TypeAlias = Callable[[Change], None]
Unsubscribe: TypeAlias = Callable[[], None]

K = TypeVar("K")


class Toolset(Protocol):
    """A source of tools, and of prompts and resources where it has them.

    `find` answers by name without listing: a call must not cost more because there are many tools.
    """

    def tools(self) -> Sequence[Tool]: ...

    def find(self, name: str) -> Tool | None: ...

    def prompts(self) -> Sequence[Prompt]: ...

    def find_prompt(self, name: str) -> Prompt | None: ...

    def resources(self) -> Sequence[Resource]: ...

    def templates(self) -> Sequence[ResourceTemplate]: ...

    def find_resource(self, uri: str) -> Resource | None: ...

    def subscribe(self, listener: Listener) -> Unsubscribe: ...


@runtime_checkable
class SettlingToolset(Protocol):
    """A toolset that finds out beside everything else what it has."""

    async def settled(self) -> None:
        """Wait until it knows."""
        ...


@runtime_checkable
class YieldingToolset(Protocol):
    """A toolset that offers what others decide. It takes no name and no address that another source has."""

    def stand_behind(self, own: Toolset) -> None:
        """Learn what the other sources have."""
        ...


class FixedToolset:
    """A toolset that stays as it was made."""

    lists_resources_late: ClassVar[bool] = False
    """True where listing the resources is work that a start must not wait for."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        prompts: Iterable[Prompt] = (),
        resources: Iterable[Resource] = (),
        templates: Iterable[ResourceTemplate] = (),
    ) -> None:
        self._tools = by_name("tool", ((tool.name, tool) for tool in tools))
        self._prompts = by_name("prompt", ((prompt.name, prompt) for prompt in prompts))
        self._resources = by_name("resource", ((resource.uri, resource) for resource in resources))
        self._templates = tuple(templates)

    def tools(self) -> Sequence[Tool]:
        return tuple(self._tools.values())

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def prompts(self) -> Sequence[Prompt]:
        return tuple(self._prompts.values())

    def find_prompt(self, name: str) -> Prompt | None:
        return self._prompts.get(name)

    def resources(self) -> Sequence[Resource]:
        return tuple(self._resources.values())

    def templates(self) -> Sequence[ResourceTemplate]:
        return self._templates

    def find_resource(self, uri: str) -> Resource | None:
        return self._resources.get(uri) or resource_of_template(uri, self._templates)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return lambda: None


class CombinedToolset:
    """Several toolsets as one. Names that collide are an error when it is made, with a hint."""

    def __init__(self, toolsets: Iterable[Toolset]) -> None:
        self._toolsets = tuple(toolsets)
        yielding = [toolset for toolset in self._toolsets if isinstance(toolset, YieldingToolset)]
        if yielding:
            own = CombinedToolset(toolset for toolset in self._toolsets if toolset not in yielding)
            for toolset in yielding:
                toolset.stand_behind(own)
        by_name("tool", ((tool.name, tool) for tool in self.tools()))
        by_name("prompt", ((prompt.name, prompt) for prompt in self.prompts()))
        by_name("resource", ((resource.uri, resource) for each in self._toolsets for resource in _at_hand(each)))

    def tools(self) -> Sequence[Tool]:
        return tuple(tool for toolset in self._toolsets for tool in toolset.tools())

    def find(self, name: str) -> Tool | None:
        # Written out, since it is asked several times for each call.
        for toolset in self._toolsets:
            if (found := toolset.find(name)) is not None:
                return found
        return None

    def prompts(self) -> Sequence[Prompt]:
        return tuple(prompt for toolset in self._toolsets for prompt in toolset.prompts())

    def find_prompt(self, name: str) -> Prompt | None:
        return _first(toolset.find_prompt(name) for toolset in self._toolsets)

    def resources(self) -> Sequence[Resource]:
        return tuple(resource for toolset in self._toolsets for resource in toolset.resources())

    def templates(self) -> Sequence[ResourceTemplate]:
        return tuple(template for toolset in self._toolsets for template in toolset.templates())

    def find_resource(self, uri: str) -> Resource | None:
        return _first(toolset.find_resource(uri) for toolset in self._toolsets)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        endings = [toolset.subscribe(listener) for toolset in self._toolsets]

        def unsubscribe() -> None:
            for end in endings:
                end()

        return unsubscribe


class ChangingToolset(FixedToolset):
    """A toolset whose owner replaces its parts while it runs, and which tells its listeners."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        prompts: Iterable[Prompt] = (),
        resources: Iterable[Resource] = (),
        templates: Iterable[ResourceTemplate] = (),
    ) -> None:
        super().__init__(tools, prompts=prompts, resources=resources, templates=templates)
        self._listeners: dict[object, Listener] = {}
        self._lock = threading.Lock()

    def replace(
        self,
        *,
        tools: Iterable[Tool] | None = None,
        prompts: Iterable[Prompt] | None = None,
        resources: Iterable[Resource] | None = None,
        templates: Iterable[ResourceTemplate] | None = None,
    ) -> None:
        """Put new parts in place of the old ones and tell the listeners. If a name is there twice, nothing changes."""
        fresh = FixedToolset(tools or (), prompts=prompts or (), resources=resources or (), templates=templates or ())
        # Each part is swapped whole, so a call that runs meanwhile sees either the old or the new one.
        if tools is not None:
            self._tools = fresh._tools
        if prompts is not None:
            self._prompts = fresh._prompts
        if resources is not None:
            self._resources = fresh._resources
        if templates is not None:
            self._templates = fresh._templates
        self._notify_of(tools=tools, prompts=prompts, resources=templates if resources is None else resources)

    def _notify_of(self, **given: object) -> None:
        for kind, parts in given.items():
            if parts is not None:
                self.notify(kind)

    def notify(self, change: Change) -> None:
        """Tell the listeners that something changed; a resource's address means its contents."""
        with self._lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            listener(change)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        key = object()
        with self._lock:
            self._listeners[key] = listener

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        return unsubscribe


def by_name(kind: str, pairs: Iterable[tuple[str, K]]) -> dict[str, K]:
    """Index things by name; two of one name are an error that says what to do."""
    found: dict[str, K] = {}
    for name, thing in pairs:
        if name in found:
            raise DeclarationError(
                f"Two {kind}s are called `{name}`. Rename one, or give one of their sources a prefix."
            )
        found[name] = thing
    return found


def resource_of_template(uri: str, templates: Iterable[ResourceTemplate]) -> Resource | None:
    """The resource at an address of a template's form."""
    for template in templates:
        if (values := template.match(uri)) is not None:
            return template.resource(uri, values)
    return None


def _at_hand(toolset: Toolset) -> Sequence[Resource]:
    """The resources that can be looked at without work; sets made of other sets have looked at theirs."""
    return toolset.resources() if isinstance(toolset, FixedToolset) and not toolset.lists_resources_late else ()


def _first(found: Iterable[K | None]) -> K | None:
    return next((thing for thing in found if thing is not None), None)

"""Toolbox: the tools of one run, which may change while it goes on, and the view of them that a model gets.

Everything that costs by the number of tools is made once for each version of the view, so that a step costs the same
with ten tools and with a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from trysquare.agent.bundles import Bundle, Fitting, fitted
from trysquare.agent.capabilities import Capabilities, Probe, probed
from trysquare.agent.names import KnownNames
from trysquare.agent.offers import offer_of
from trysquare.agent.policy import Policy, offered
from trysquare.agent.prompt import TOOL_TOKENS, Told, system_prompt
from trysquare.catalog.search import SearchIndex
from trysquare.core.errors import ConfigurationError
from trysquare.core.tool import Tool
from trysquare.core.toolset import Change, Toolset
from trysquare.models.model import Constraint, ToolOffer

MOST_SHOWN = 12
"""Optional tools that a view shows; where there are more, those that fit the task are chosen by search."""

MakeConstraint: TypeAlias = Callable[[Sequence[ToolOffer], bool], Constraint | None]
"""What answers are held to, for these offers and with or without parallel calls."""


class Narrow(Protocol):
    """Makes the arguments of an offer narrower by what is known of the workspace."""

    def __call__(self, offer: ToolOffer) -> ToolOffer | None:
        """The narrower offer; None where nothing of it is left."""
        ...

    def forget(self) -> None:
        """What is known has changed."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a model sees of the tools in one request."""

    offers: tuple[ToolOffer, ...]
    names: KnownNames
    constraint: Constraint | None
    system: str
    system_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolboxSettings:
    """What a toolbox goes by."""

    instructions: str
    task: str
    bundle: Bundle
    policy: Policy
    finish: tuple[str, ...] = ()
    """What must happen before the run may finish, in sentences."""
    probes: Mapping[str, Probe] = field(default_factory=dict[str, Probe])
    narrow: Narrow | None = None
    constraint: MakeConstraint | None = None
    parallel: bool = False
    prompt_tokens: int = TOOL_TOKENS
    most_shown: int = MOST_SHOWN


class Toolbox:
    """The tools of a run: those of the toolset that its bundle names and its policy allows, and the loop's own."""

    def __init__(self, toolset: Toolset, settings: ToolboxSettings, count: Callable[[str], int]) -> None:
        self._toolset, self._settings, self._count = toolset, settings, count
        self._fitting = Fitting(required=(), optional=(), missing_required={}, missing_optional={})
        self._usable: dict[str, Tool] = {}
        self._shown: dict[str, None] = {}
        self._offers: dict[str, tuple[Tool, ToolOffer | None]] = {}
        self._index = SearchIndex()
        self._views: dict[tuple[frozenset[str], tuple[str, ...]], View] = {}
        self._stale = True
        self._unsubscribe = toolset.subscribe(self._on_change)

    def close(self) -> None:
        """Hear no more of changes."""
        self._unsubscribe()

    def _on_change(self, change: Change) -> None:
        if change == "tools":
            self._stale = True

    async def refresh(self) -> None:
        """Look at the toolset again, where it changed."""
        if not self._stale:
            return
        self._stale = False
        self._views.clear()
        # The loop has a search of its own, over the tools of this run alone.
        tools = [tool for tool in self._toolset.tools() if tool.metadata.room != "catalog"]
        capabilities = await probed(tools, self._settings.probes)
        self._fit(tools, capabilities)
        self._require_present()

    def _fit(self, tools: Iterable[Tool], capabilities: Capabilities) -> None:
        self._fitting = fitted(self._settings.bundle, tools, capabilities)
        self._usable = {tool.name: tool for tool in self._fitting.tools if self._offer(tool) is not None}
        self._index.update(self._optional())
        if len(self._optional()) <= self._settings.most_shown:
            self._shown = dict.fromkeys(tool.name for tool in self._optional())
            return
        self._shown = {name: None for name in self._shown if name in self._usable}
        self.search(self._settings.task, limit=self._settings.most_shown - len(self._shown))

    def _require_present(self) -> None:
        if self._fitting.missing_required:
            told = "; ".join(f"{name}: {why}" for name, why in self._fitting.missing_required.items())
            raise ConfigurationError(f"the agent needs tools that are not there: {told}.")

    def _optional(self) -> list[Tool]:
        return [tool for tool in self._fitting.optional if tool.name in self._usable]

    def search(self, query: str, *, limit: int = 5) -> list[Tool]:
        """Show the optional tools that fit a query, and return them."""
        found = [match.tool for match in self._index.search(query, limit=limit)]
        self._show(found)
        return found

    def show_further(self, query: str, *, limit: int = 5) -> list[Tool]:
        """Show the optional tools that fit a query and were not shown before, and return them."""
        hidden = self._index.search(query, limit=limit, allowed=lambda tool: tool.name not in self._shown)
        found = [match.tool for match in hidden]
        self._show(found)
        return found

    def _show(self, tools: Iterable[Tool]) -> None:
        fresh = [tool.name for tool in tools if tool.name not in self._shown]
        if fresh:
            self._shown.update(dict.fromkeys(fresh))
            self._views.clear()

    def find(self, name: str) -> Tool | None:
        """A tool that this run may call, shown or not."""
        return self._usable.get(name)

    def has_hidden(self) -> bool:
        """Whether there are optional tools that are not shown."""
        return len(self._optional()) > len(self._shown)

    def refresh_facts(self) -> None:
        """What is known of the workspace changed: offers are narrowed anew."""
        if self._settings.narrow is not None:
            self._settings.narrow.forget()
            self._views.clear()

    def missing(self) -> Mapping[str, str]:
        """What of the bundle is not there, and why."""
        # What the policy denies anyway is nothing that a run could miss.
        may_offer = self._settings.policy.may_offer
        optional = {name: why for name, why in self._fitting.missing_optional.items() if may_offer(name)}
        return {**self._fitting.missing_required, **optional}

    def view(self, own: Sequence[Tool], closed: frozenset[str] = frozenset()) -> View:
        """What a model sees now: the shown tools, and those of the loop itself but for the closed ones.

        The text is the same with and without the closed ones, so that a server's cache of the prompt stays good.
        """
        key = (closed, tuple(tool.name for tool in own))
        known = self._views.get(key)
        if known is None:
            known = self._made_view(own, closed)
            self._views[key] = known
        return known

    def _made_view(self, own: Sequence[Tool], closed: frozenset[str]) -> View:
        required = [tool for tool in self._fitting.required if tool.name in self._usable]
        optional = [tool for tool in self._optional() if tool.name in self._shown]
        open_tools = (*required, *optional, *(tool for tool in own if tool.name not in closed))
        offers = tuple(offer for tool in open_tools if (offer := self._narrowed(tool)) is not None)
        usable = (*required, *optional, *own)
        told = Told(
            instructions=self._settings.instructions,
            required=(*required, *own),
            optional=tuple(optional),
            hidden=len(self._optional()) - len(optional),
            missing=self.missing(),
            finish=self._settings.finish,
            schemas={tool.name: offer.schema for tool in usable if (offer := self._offer(tool)) is not None},
        )
        system = system_prompt(told, tokens=self._settings.prompt_tokens, count=self._count)
        make = self._settings.constraint
        return View(
            offers=offers,
            names=KnownNames.of_offers(offers),
            constraint=None if make is None else make(offers, self._settings.parallel),
            system=system,
            system_tokens=self._count(system),
        )

    def _offer(self, tool: Tool) -> ToolOffer | None:
        """The offer of a tool, made once; None where the policy leaves nothing of it. The loop's own stay whole."""
        known = self._offers.get(tool.name)
        if known is not None and known[0] is tool:
            return known[1]
        offer: ToolOffer | None = offer_of(tool)
        if tool.metadata.room != "agent":
            offer = offered(offer, self._settings.policy)
        self._offers[tool.name] = (tool, offer)
        return offer

    def _narrowed(self, tool: Tool) -> ToolOffer | None:
        """The offer of a tool with what is known of the workspace in it."""
        offer, narrow = self._offer(tool), self._settings.narrow
        return offer if offer is None or narrow is None else narrow(offer)

"""Tools of one run and how the model sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trysquare.agents.capabilities import BundleMatch, match_bundle, probe_all
from trysquare.agents.completion import criteria_lines
from trysquare.agents.journal import REQUEST_KEY
from trysquare.agents.parsing import KnownNames
from trysquare.agents.policy import Policy, allowed_offer
from trysquare.agents.prompt import TOOL_TOKENS, PromptParts, system_prompt
from trysquare.agents.run import AgentRun
from trysquare.catalog.descriptions import compact_description
from trysquare.catalog.search import Match, ToolIndex
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.tool import Tool
from trysquare.core.toolset import Change
from trysquare.models import Constraint, ToolSpec


def offer_of(tool: Tool) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=compact_description(tool),
        schema=_without_key(tool.arguments.exact),
        flat=_without_key(tool.arguments.wire),
    )


def _without_key(schema: JsonObject) -> JsonObject:
    if isinstance(options := schema.get("oneOf"), list):
        return {**schema, "oneOf": [_without_key(option) for option in as_list(options)]}
    properties = as_object(schema.get("properties"))
    if REQUEST_KEY not in properties:
        return schema
    remaining = {name: part for name, part in properties.items() if name != REQUEST_KEY}
    required = [name for name in as_list(schema.get("required")) if name != REQUEST_KEY]
    rest = {key: part for key, part in schema.items() if key not in ("properties", "required")}
    return {**rest, "properties": remaining, **({"required": required} if required else {})}


MAX_SHOWN = 12
"""Optional tools in a view; of more, search chooses those that match the task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a model sees of the tools in one request."""

    offers: tuple[ToolSpec, ...]
    names: KnownNames
    constraint: Constraint | None
    system: str
    system_tokens: int


class Toolbox:
    """Tools that the bundle names and the policy allows, and the built-in ones."""

    def __init__(self, run: AgentRun, policy: Policy) -> None:
        self._run, self._policy = run, policy
        self._match = BundleMatch(required=(), optional=(), missing_required={}, missing_optional={})
        self._usable: dict[str, Tool] = {}
        self._shown: dict[str, None] = {}
        self._offers: dict[str, tuple[Tool, ToolSpec | None]] = {}
        self._index = ToolIndex()
        self._views: dict[tuple[frozenset[str], tuple[str, ...]], View] = {}
        self._stale = True
        self.close = run.toolset.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change == "tools":
            self._stale = True

    async def refresh(self) -> None:
        """Read the toolset again if it has changed."""
        if not self._stale:
            return
        self._stale = False
        self._views.clear()
        # The built-in `find_tools` searches the tools of this run.
        every = self._run.toolset.tools()
        tools = [tool for tool in every if tool.metadata.toolset != "catalog"]
        self._match = match_bundle(self._run.definition.bundle, tools, await probe_all(tools, self._run.probes))
        if any(tool.may_be_paged for tool in self._match.tools):
            # What proposes a call for the next page comes with the tool that reads it.
            readers = [tool for tool in every if tool.reads_pages]
            self._match = replace(self._match, required=(*self._match.required, *readers))
        self._usable = {tool.name: tool for tool in self._match.tools if self._offer(tool) is not None}
        optional = self._optional()
        self._index.update(optional)
        if len(optional) <= MAX_SHOWN:
            self._shown = dict.fromkeys(tool.name for tool in optional)
        else:
            self._shown = {name: None for name in self._shown if name in self._usable}
            await self.search(self._run.task, limit=MAX_SHOWN - len(self._shown))
        if self._match.missing_required:
            missing = "; ".join(f"{name}: {why}" for name, why in self._match.missing_required.items())
            raise ConfigurationError(f"required tools are missing: {missing}.")

    def _optional(self) -> list[Tool]:
        return [tool for tool in self._match.optional if tool.name in self._usable]

    async def search(self, query: str, *, limit: int = 5) -> list[Match]:
        """Show and return the optional tools that are nearest to a query."""
        await self._index.prepare(query)
        return self._show(self._index.search(query, limit=limit))

    def show_further(self, query: str) -> list[Match]:
        """The same for tools that were not shown before."""
        return self._show(self._index.search(query, limit=5, allowed=lambda tool: tool.name not in self._shown))

    def _show(self, matches: list[Match]) -> list[Match]:
        if fresh := {match.tool.name: None for match in matches if match.tool.name not in self._shown}:
            self._shown.update(fresh)
            self._views.clear()
        return matches

    def find(self, name: str) -> Tool | None:
        """A tool that this run may call, shown or not."""
        return self._usable.get(name)

    def has_hidden(self) -> bool:
        return len(self._optional()) > len(self._shown)

    def refresh_facts(self) -> None:
        """Narrow the offers again after a change of the workspace."""
        if self._run.narrow is not None:
            self._run.narrow.forget()
            self._views.clear()

    def missing(self) -> Mapping[str, str]:
        """What is missing of the bundle, with the reason."""
        # A tool that the policy denies is not missing.
        optional = {name: why for name, why in self._match.missing_optional.items() if self._policy.may_offer(name)}
        return {**self._match.missing_required, **optional}

    def view(self, own: Sequence[Tool], closed: frozenset[str] = frozenset()) -> View:
        """The model's view; its text does not depend on `closed`, so that the prompt cache stays valid."""
        key = (closed, tuple(tool.name for tool in own))
        if key not in self._views:
            self._views[key] = self._build_view(own, closed)
        return self._views[key]

    def _build_view(self, own: Sequence[Tool], closed: frozenset[str]) -> View:
        required = [tool for tool in self._match.required if tool.name in self._usable]
        optional = [tool for tool in self._optional() if tool.name in self._shown]
        open_tools = (*required, *optional, *(tool for tool in own if tool.name not in closed))
        offers = tuple(offer for tool in open_tools if (offer := self._narrowed(tool)) is not None)
        usable = (*required, *optional, *own)
        run = self._run
        parts = PromptParts(
            instructions=run.definition.instructions,
            required=(*required, *own),
            optional=tuple(optional),
            hidden=len(self._optional()) - len(optional),
            missing=self.missing(),
            finish=criteria_lines(run.definition.criteria),
            schemas={tool.name: offer.schema for tool in usable if (offer := self._offer(tool)) is not None},
        )
        tokens = min(TOOL_TOKENS, run.model.context_tokens // 4)
        system = system_prompt(parts, tokens=tokens, count=run.model.count)
        return View(
            offers=offers,
            names=KnownNames.of_offers(offers),
            constraint=None if run.constraint is None else run.constraint(offers, run.definition.parallel),
            system=system,
            system_tokens=run.model.count(system),
        )

    def _offer(self, tool: Tool) -> ToolSpec | None:
        """The cached offer of a tool; None if the policy denies it. Built-in tools are not subject to it."""
        known = self._offers.get(tool.name)
        if known is not None and known[0] is tool:
            return known[1]
        offer: ToolSpec | None = offer_of(tool)
        if tool.metadata.toolset != "agent":
            offer = allowed_offer(offer, self._policy)
        self._offers[tool.name] = (tool, offer)
        return offer

    def _narrowed(self, tool: Tool) -> ToolSpec | None:
        offer, narrow = self._offer(tool), self._run.narrow
        return offer if offer is None or narrow is None else narrow(offer)

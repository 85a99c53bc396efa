"""Selection: which of the declared tools, prompts and resources are there, by name and by tag."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from trysquare.core.errors import DeclarationError
from trysquare.core.text import closest_names
from trysquare.core.toolset import StaticToolset


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    enabled: bool
    names: frozenset[str]
    tags: frozenset[str]
    is_for_all: bool = False

    def covers(self, name: str, tags: Collection[str]) -> bool:
        return self.is_for_all or name in self.names or not self.tags.isdisjoint(tags)


class Selection:
    """Rules that enable and disable. The last one that covers a name or one of its tags counts."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(self, names: Iterable[str], tags: Iterable[str], *, enabled: bool, only: bool = False) -> None:
        """Add a rule; with `only`, whatever it does not cover is disabled."""
        rule = _Rule(enabled=enabled, names=frozenset(names), tags=frozenset(tags))
        if not rule.names and not rule.tags:
            verb = "enable" if enabled else "disable"
            raise DeclarationError(f'Say what to {verb}: names, or tags={{"name"}}.')
        if only:
            self._rules.append(_Rule(enabled=False, names=frozenset(), tags=frozenset(), is_for_all=True))
        self._rules.append(rule)

    def of(self, whole: StaticToolset) -> StaticToolset:
        """The toolset with what is enabled. Refuses a rule for a name that nothing has."""
        if not self._rules:
            return whole
        tools, prompts, resources, templates = whole.tools(), whole.prompts(), whole.resources(), whole.templates()
        self._require_known(
            {each.name for each in (*tools, *prompts)}
            | {each.uri for each in resources}
            | {each.uri_template for each in templates}
        )
        return StaticToolset(
            (each for each in tools if self._allows(each.name, each.metadata.tags)),
            prompts=(each for each in prompts if self._allows(each.name, each.tags)),
            resources=(each for each in resources if self._allows(each.uri, each.extra.tags)),
            templates=(each for each in templates if self._allows(each.uri_template, each.extra.tags)),
            server_info=whole.server_info,
            routes=whole.routes,
            lifespans=whole.lifespans,
            request_middleware=whole.request_middleware,
        )

    def _require_known(self, names: Collection[str]) -> None:
        """Refuse a name that nothing has: a misspelt one would leave a tool where it must not be."""
        for wanted in (name for rule in self._rules for name in sorted(rule.names)):
            if wanted not in names:
                near = closest_names(wanted, names)
                hint = f" Did you mean `{near[0]}`?" if near else ""
                raise DeclarationError(f"`{wanted}` is enabled or disabled, and nothing has this name.{hint}")

    def _allows(self, name: str, tags: Collection[str]) -> bool:
        return next((rule.enabled for rule in reversed(self._rules) if rule.covers(name, tags)), True)

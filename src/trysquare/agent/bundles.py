"""Bundles: the tools that belong together, what of them is there, and why the rest is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trysquare.agent.capabilities import Capabilities
from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest
from trysquare.core.tool import Tool
from trysquare.files.globs import matches

Wanted: TypeAlias = Literal["required", "optional"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """Tools by name or pattern: those that an agent must have, and those that it may have."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def joined(self, other: Bundle) -> Bundle:
        """Both together; what one of them requires is required."""
        required = tuple(dict.fromkeys((*self.required, *other.required)))
        optional = dict.fromkeys((*self.optional, *other.optional))
        return Bundle(required=required, optional=tuple(name for name in optional if name not in required))


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitting:
    """What of a bundle is there: tools by their requirement, and what is missing, each with the reason."""

    required: tuple[Tool, ...]
    optional: tuple[Tool, ...]
    missing_required: Mapping[str, str]
    missing_optional: Mapping[str, str]

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All that are there, required ones first."""
        return (*self.required, *self.optional)


BUNDLES: Mapping[str, Bundle] = {
    "reading": Bundle(required=("search", "navigate"), optional=("file", "git")),
    "code": Bundle(required=("file", "code_edit", "search", "navigate"), optional=("git", "bash", "test")),
    "debugging": Bundle(optional=("debug_explain", "debug_*")),
    "research": Bundle(optional=("rss_feed", "static_links", "calendar")),
    "publishing": Bundle(optional=("blog_notion",)),
    "writing": Bundle(),
}
"""The bundles that a definition may name. The tools of `writing` are made for each run, so no name stands here."""


def bundle(name: str) -> Bundle:
    """The bundle of that name."""
    found = BUNDLES.get(name)
    if found is None:
        near = nearest(name, BUNDLES)
        hint = f"The nearest is `{near[0]}`." if near else f"There are {', '.join(BUNDLES)}."
        raise ConfigurationError(f"there is no bundle `{name}`.", hint=hint)
    return found


def fitted(wanted: Bundle, tools: Iterable[Tool], capabilities: Capabilities) -> Fitting:
    """What of a bundle is there. A tool whose needs are not met counts as missing, with what it needs."""
    named = {tool.name: tool for tool in tools}
    chosen: dict[str, tuple[Tool, Wanted]] = {}
    gone: dict[Wanted, dict[str, str]] = {"required": {}, "optional": {}}
    for requirement, pattern in _wanted(wanted):
        found = [tool for name, tool in named.items() if matches(name, pattern)]
        if not found:
            gone[requirement][pattern] = "no tool of that name is served here"
        for tool in found:
            if reasons := capabilities.missing(tool.metadata.needs):
                gone[requirement][tool.name] = "; ".join(reasons)
            else:
                chosen.setdefault(tool.name, (tool, requirement))
    return Fitting(
        required=tuple(tool for tool, requirement in chosen.values() if requirement == "required"),
        optional=tuple(tool for tool, requirement in chosen.values() if requirement == "optional"),
        missing_required=gone["required"],
        missing_optional=gone["optional"],
    )


def _wanted(wanted: Bundle) -> list[tuple[Wanted, str]]:
    required: list[tuple[Wanted, str]] = [("required", pattern) for pattern in wanted.required]
    return required + [("optional", pattern) for pattern in wanted.optional]

"""Capability probes and tool bundles."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trysquare.core.errors import ConfigurationError
from trysquare.core.text import closest_names
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.files.globs import matches
from trysquare.workbench.provider import code_probes

Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Checks a capability: None if available, else what is missing."""
_TIMEOUT = 10.0


Capabilities: TypeAlias = Mapping[str, str | None]
"""Results of the probes: None if available, else the reason."""


async def probe_all(tools: Iterable[Tool], probes: Mapping[str, Probe]) -> Capabilities:
    """Probe what the tools need, concurrently."""

    async def probe(need: str) -> str | None:
        if need not in probes:
            return f"no probe for the capability `{need}`"
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await probes[need]()
        except TimeoutError:
            return f"the probe of `{need}` timed out after {_TIMEOUT:.0f} s"

    needs = sorted({need for tool in tools for need in tool.metadata.needs})
    return dict(zip(needs, await asyncio.gather(*map(probe, needs)), strict=True))


def local_probes(root: Path) -> dict[str, Probe]:
    return {**code_probes(root), "debuggers": _debugpy}


async def _debugpy() -> str | None:
    found = await run_in_thread(lambda: importlib.util.find_spec("debugpy") is not None)
    return None if found else "debugpy is not installed; run `pip install 'trysquare[debug]'`"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """Required and optional tools, by name or pattern."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def merged(self, other: Bundle) -> Bundle:
        required = tuple(dict.fromkeys((*self.required, *other.required)))
        optional = dict.fromkeys((*self.optional, *other.optional))
        return Bundle(required=required, optional=tuple(name for name in optional if name not in required))


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleMatch:
    """Tools of a bundle that are available, and the reasons why others are not."""

    required: tuple[Tool, ...]
    optional: tuple[Tool, ...]
    missing_required: Mapping[str, str]
    missing_optional: Mapping[str, str]

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (*self.required, *self.optional)


BUNDLES: Mapping[str, Bundle] = {
    "reading": Bundle(required=("search", "navigate"), optional=("file", "git")),
    "code": Bundle(required=("file", "code_edit", "search", "navigate"), optional=("git", "bash", "test")),
    "debugging": Bundle(optional=("debug_explain", "debug_*")),
    "research": Bundle(optional=("rss_feed", "static_links", "calendar")),
    "publishing": Bundle(optional=("blog_notion",)),
    "writing": Bundle(),
}
"""Bundles that a definition may name. The tools of `writing` are built for each run."""


def bundle(name: str) -> Bundle:
    if name not in BUNDLES:
        near = closest_names(name, BUNDLES)
        hint = f"Did you mean `{near[0]}`?" if near else f"Use one of {', '.join(BUNDLES)}."
        raise ConfigurationError(f"unknown bundle `{name}`.", hint=hint)
    return BUNDLES[name]


def match_bundle(wanted: Bundle, tools: Iterable[Tool], capabilities: Capabilities) -> BundleMatch:
    """Match a bundle to tools. A tool whose needs are not met counts as missing."""
    by_name = {tool.name: tool for tool in tools}
    required, missing_required = _available(wanted.required, by_name, capabilities)
    optional, missing_optional = _available(wanted.optional, by_name, capabilities)
    return BundleMatch(
        required=tuple(required.values()),
        optional=tuple(tool for name, tool in optional.items() if name not in required),
        missing_required=missing_required,
        missing_optional=missing_optional,
    )


def _available(
    patterns: Iterable[str], tools: Mapping[str, Tool], capabilities: Capabilities
) -> tuple[dict[str, Tool], dict[str, str]]:
    """The tools that match the patterns, and the reasons for those that are missing."""
    available: dict[str, Tool] = {}
    missing: dict[str, str] = {}
    for pattern in patterns:
        found = [tool for name, tool in tools.items() if matches(name, pattern)]
        if not found:
            missing[pattern] = "no tool with this name is served here"
        for tool in found:
            if reasons := list(filter(None, map(capabilities.get, tool.metadata.needs))):
                missing[tool.name] = "; ".join(reasons)
            else:
                available[tool.name] = tool
    return available, missing

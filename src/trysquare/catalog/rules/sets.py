"""Rules about all tools together: what they cost, and whether they can be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trysquare.catalog.profiles import is_listed
from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.catalog.search import SearchIndex
from trysquare.catalog.tokens import definition_tokens
from trysquare.catalog.words import meaning, terms
from trysquare.core.metadata import FAMILY
from trysquare.core.tool import Tool

WHOLE_SET = "*"
"""Stands for the tool in a finding about all of them."""


def confusable_tools(tools: Sequence[Tool], options: LintOptions) -> Iterator[Problem]:
    """Two tools can be told apart by what is said of them, or by their place in a family."""
    index = SearchIndex(tools)
    known = {tool.name: tool for tool in tools}
    for tool in tools:
        # Each pair once: a tool is told of those that come before it by name.
        for other in sorted(name for name in index.neighbours(tool.name) if name < tool.name):
            alike = index.similarity(tool.name, other)
            if alike >= options.confusable and not _have_places(tool, known[other]):
                yield Problem(
                    tool=tool.name,
                    message=f"The tool reads like `{other}` ({alike:.0%} alike).",
                    fix="Say in both what sets them apart (`use_when`, `avoid_when`), or make them one.",
                )


def _have_places(one: Tool, other: Tool) -> bool:
    """Whether two tools of one family differ by a word that stands in the name and in the description of each."""
    family = one.metadata.meta.get(FAMILY)
    if family is None or family != other.metadata.meta.get(FAMILY):
        return False
    return bool(_own_words(one, other)) and bool(_own_words(other, one))


def _own_words(tool: Tool, other: Tool) -> set[str]:
    # Words of one meaning tell nothing apart.
    return (_meanings(tool.name) - _meanings(other.name)) & _meanings(tool.description)


def _meanings(text: str) -> set[str]:
    return {meaning(term) for term in terms(text)}


def profile_budget(tools: Sequence[Tool], options: LintOptions) -> Iterator[Problem]:
    """What is listed does not cost too many tokens in every conversation."""
    costs = {tool.name: definition_tokens(tool) for tool in tools if is_listed(tool, options.profiles)}
    total = sum(costs.values())
    if total > options.profile_tokens:
        largest = sorted(costs, key=lambda name: (-costs[name], name))[:3]
        yield Problem(
            tool=WHOLE_SET,
            message=f"The {len(costs)} listed tools cost about {total} tokens in each conversation; "
            f"{options.profile_tokens} is the limit.",
            fix=f"Choose a smaller profile, or shorten the largest: {', '.join(largest)}.",
        )


def listed_count(tools: Sequence[Tool], options: LintOptions) -> Iterator[Problem]:
    """No more tools are listed than clients take."""
    count = sum(is_listed(tool, options.profiles) for tool in tools)
    if count > options.listed_tools:
        yield Problem(
            tool=WHOLE_SET,
            message=f"{count} tools are listed, and many clients take at most {options.listed_tools}.",
            fix="Choose a smaller profile: --profile levels, or --profile search.",
        )

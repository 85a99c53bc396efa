"""Rules about the names of tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.catalog.words import split_words
from trysquare.core.tool import Tool

_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_+[a-z0-9]+)*")


def name_style(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Names are lower case with underscores, so that nobody has to guess how one is written."""
    if not _SNAKE.fullmatch(tool.name):
        instead = "_".join(split_words(tool.name)) or "a_name"
        yield Problem(message="The name is not in snake_case.", fix=f"Call it `{instead}`.")


def name_length(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Names leave room for what a client puts in front: the whole may have 64 characters."""
    if len(tool.name) > options.name_length:
        yield Problem(
            message=f"The name has {len(tool.name)} characters; {options.name_length} is the limit.",
            fix="Shorten it: clients put the server's name in front, and refuse more than 64 in all.",
        )


def distinct_names(tools: Sequence[Tool], options: LintOptions) -> Iterator[Problem]:
    """Two names differ by more than their spelling."""
    first: dict[str, str] = {}
    for tool in tools:
        folded = "".join(split_words(tool.name))
        if folded in first:
            yield Problem(
                tool=tool.name,
                message=f"The name differs from `{first[folded]}` only in how it is written.",
                fix="Give one of them another name.",
            )
        first.setdefault(folded, tool.name)

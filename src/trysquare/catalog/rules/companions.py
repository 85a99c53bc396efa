"""Rules about what stands beside the tools: prompts and resources."""

from __future__ import annotations

from collections.abc import Iterator

from trysquare.catalog.describe import is_positional
from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.core.toolset import Toolset


def prompts_described(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """A prompt and each of its arguments say what they are. Counted arguments stand for `*args` and are not shown."""
    for prompt in toolset.prompts():
        if not prompt.description.strip():
            yield Problem(
                tool=f"@{prompt.name}",
                message="The prompt has no description.",
                fix="Write a docstring that says what it asks for.",
            )
        for argument in prompt.arguments:
            if not argument.description and not is_positional(argument):
                yield Problem(
                    tool=f"@{prompt.name}",
                    field=argument.name,
                    message="The argument has no description.",
                    fix="Add a line for it under `Args:` in the docstring.",
                )


def resources_described(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """A resource says what is read there."""
    told = [(one.uri, one.description) for one in toolset.resources()]
    told += [(one.uri_template, one.description) for one in toolset.templates()]
    for uri, description in told:
        if not (description or "").strip():
            yield Problem(
                tool=uri,
                message="The resource has no description.",
                fix="Write a docstring that says what is read there.",
            )

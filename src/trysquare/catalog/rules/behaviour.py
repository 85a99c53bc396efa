"""Rules about what a tool may do, and whom it asks."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence

from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.catalog.rules.schema_nodes import fields
from trysquare.catalog.schema_parts import properties_of
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

_INSTEAD = re.compile(r"\b(?:use|instead|replaced by|call|superseded by|no replacement|without replacement)\b", re.I)


def destructive_asks(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """What cannot be undone is done with a person's consent."""
    metadata = tool.metadata
    if (
        metadata.destructive
        and not metadata.read_only
        and metadata.consent is None
        and metadata.consent_literal is None
    ):
        yield Problem(
            message="The tool is destructive and asks nobody.",
            fix='Declare it with consent=Consent(question="…"), which a model cannot answer itself.',
        )


def hints_agree(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool that only reads destroys nothing."""
    if tool.metadata.read_only and tool.metadata.destructive:
        yield Problem(
            message="The tool is declared both read-only and destructive.",
            fix="Leave out the one that is wrong.",
        )


def consent_literal_used(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A consent text that is announced is also demanded by an argument."""
    literal = tool.metadata.consent_literal
    if literal is None or any(_demands(node.keywords, literal) for node in fields(tool.input_schema)):
        return
    yield Problem(
        message=f'No argument demands the consent text "{literal}".',
        fix=f'Add an argument of type Literal["{literal}"], without a default.',
    )


def _demands(schema: JsonObject, literal: str) -> bool:
    return schema.get("const") == literal or schema.get("enum") == [literal]


def consent_question_fits(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A question names only arguments that there are."""
    if tool.metadata.consent is None:
        return
    known = properties_of(tool.input_schema)
    for name in _braced(tool.metadata.consent.question):
        if name not in known:
            yield Problem(
                message=f"The consent question names `{{{name}}}`, which is no argument.",
                fix=f"The arguments are {', '.join(known) or 'none'}.",
            )


def _braced(question: str) -> list[str]:
    try:
        parts = [name for _, name, _, _ in string.Formatter().parse(question) if name is not None]
    except ValueError:
        return ["unbalanced braces"]
    return [re.split(r"[.\[]", name)[0] for name in parts]


def deprecated_names_replacement(tools: Sequence[Tool], options: LintOptions) -> Iterator[Problem]:
    """A deprecated tool says what to use instead."""
    names = {tool.name for tool in tools}
    for tool in tools:
        told = tool.metadata.deprecated
        if told and not _INSTEAD.search(told) and not names & set(re.findall(r"[\w.-]+", told)):
            yield Problem(
                tool=tool.name,
                message="The tool is deprecated, and nothing says what to use instead.",
                fix='Name the replacement: deprecated="Use other_tool", or say that there is none.',
            )

"""Rules about what is told of a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trysquare.catalog.authored import read_authored
from trysquare.catalog.describe import compact_description
from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.catalog.rules.texts import texts_of
from trysquare.catalog.schema_parts import properties_of
from trysquare.catalog.tokens import definition_tokens
from trysquare.catalog.words import terms
from trysquare.core.tool import Tool

_WHEN = re.compile(
    r"\b(?:use (?:this|it|when|for|to|after|before|if)|when(?:ever)?|only if|instead of|before|after)\b", re.I
)
_PLACEHOLDER = re.compile(
    r"\bTODO\b|\bFIXME\b|\bTBD\b|\bXXX\b|lorem ipsum|\b(?:description|text|summary) (?:goes )?here\b|\bplaceholder\b"
    r"|\binsert \w+ here\b|\bto be (?:written|documented|described|defined)\b",
    re.IGNORECASE,
)
_RETOLD = re.compile(r"^\s*(?:Args|Arguments|Parameters|Params|Inputs?):", re.IGNORECASE | re.MULTILINE)


def description_present(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool says what it does."""
    if not read_authored(tool.description).description:
        yield Problem(message="The tool has no description.", fix="Write a docstring that says what it does.")


def short_first_line(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """The first line says it all, because many clients show no more."""
    first = read_authored(tool.description).description.partition("\n")[0]
    if len(first) > options.first_line:
        yield Problem(
            message=f"The first line has {len(first)} characters; {options.first_line} is the limit.",
            fix="Say what the tool does in one short line, and the rest after an empty one.",
        )


def says_more_than_name(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A description tells more than the name does."""
    told = set(terms(read_authored(tool.description).description))
    if told and told <= set(terms(tool.name)):
        yield Problem(
            message="The description only repeats the tool's name.",
            fix="Say what it acts on, what it returns, and what it does not do.",
        )


def says_when(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool says when to choose it, or which words call for it."""
    told = read_authored(tool.description).description
    said = tool.metadata.use_when or tool.metadata.trigger_words
    if told and not said and not _WHEN.search(told):
        yield Problem(message="Nothing says when to use the tool.", fix='Declare it with use_when="…".')


def no_placeholders(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """No text waits to be written."""
    for place, text in texts_of(tool):
        if found := _PLACEHOLDER.search(text):
            yield Problem(field=place, message=f"`{found[0]}` is a placeholder.", fix="Write the real text.")


def description_length(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A listed description is short: some clients cut it, and every conversation pays for it."""
    length = max(len(compact_description(tool)), len(read_authored(tool.description).description))
    if length > options.description_characters:
        yield Problem(
            message=f"The description has {length} characters; {options.description_characters} is the limit.",
            fix="Keep the purpose, and move details to `usage`, which is shown on demand.",
        )


def tool_budget(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool does not cost too many tokens in every conversation."""
    tokens = definition_tokens(tool)
    if tokens > options.tool_tokens:
        yield Problem(
            message=f"The tool costs about {tokens} tokens in each conversation; {options.tool_tokens} is the limit.",
            fix="Shorten its descriptions and schema, or split it.",
        )


def arguments_told_once(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """The arguments stand in the schema and are not told again."""
    told = read_authored(tool.description).description
    names = properties_of(tool.input_schema)
    listed = [name for name in names if re.search(rf"^\s*[-*]\s+`?{re.escape(name)}`?\s*[:(]", told, re.MULTILINE)]
    if _RETOLD.search(told) or len(listed) > 1:
        yield Problem(
            message="The description lists the arguments, which the schema beside it does already.",
            fix="Move what it says to the fields' own descriptions.",
        )

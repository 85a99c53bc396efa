"""Rules about examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from trysquare.catalog.authored import read_authored
from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.catalog.rules.schema_nodes import fields
from trysquare.catalog.schema_parts import properties_of
from trysquare.core.errors import InvalidArguments
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

_MANY = 5
_PLACEHOLDER = re.compile(
    r"<[^<>]+>|\[[A-Z_ ]+\]|\{[a-z_]+\}|\.{3}|…|(?:your|some|my)[-_ ]\w+|foo|bar|baz|string|value|xxx+", re.I
)


def examples_for_complex(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A schema that is not plain comes with an example."""
    if tool.metadata.examples or read_authored(tool.description).examples:
        return
    top = properties_of(tool.input_schema)
    nested = any(node.depth > 1 for node in fields(tool.input_schema))
    if nested or len(top) >= _MANY:
        why = "nested arguments" if nested else f"{len(top)} arguments"
        yield Problem(
            message=f"The tool has {why} and no example.",
            fix="Declare it with examples=(Example(arguments={…}, explanation=…),).",
        )


def examples_fit(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """An example is a call that the tool accepts."""
    for number, example in enumerate(tool.metadata.examples, start=1):
        try:
            tool.arguments.parse(tool.name, example.arguments)
        except InvalidArguments as error:
            yield Problem(
                field=f"examples[{number}]",
                message=f"The tool refuses its own example: {error.message}",
                fix="Correct the example.",
            )


def examples_concrete(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """An example has values that could be real."""
    for number, example in enumerate(tool.metadata.examples, start=1):
        found = next((text for text in _texts(example.arguments) if _PLACEHOLDER.fullmatch(text.strip())), None)
        if found is not None:
            yield Problem(
                field=f"examples[{number}]",
                message=f"`{found}` is a placeholder.",
                fix="Use a value that a real call could have.",
            )


def examples_explained(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """An example says what it shows."""
    for number, example in enumerate(tool.metadata.examples, start=1):
        if not example.explanation.strip():
            yield Problem(
                field=f"examples[{number}]",
                message="Nothing says what the example shows.",
                fix="Write an explanation of a few words.",
            )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in cast(JsonObject, value).values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in cast(list[Any], value):
            yield from _texts(part)

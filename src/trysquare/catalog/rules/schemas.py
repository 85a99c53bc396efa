"""Rules about the schema of a tool's arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.catalog.rules.schema_nodes import fields, nodes
from trysquare.catalog.schema_parts import as_list, properties_of
from trysquare.catalog.words import split_words
from trysquare.core.tool import Tool

_UNIONS = ("oneOf", "anyOf", "allOf", "not", "if", "enum", "const")
_VAGUE = frozenset(
    {"arg", "args", "content", "data", "id", "info", "input", "item", "obj", "object", "options", "param", "params",
     "payload", "ref", "result", "stuff", "temp", "text", "thing", "type", "val", "value", "x", "y"}
)  # fmt: skip
_FEWEST_WORDS = 4
_CHOICES = re.compile(
    r"\b(?:one of|either|must be|can be|allowed(?: values)?(?: are)?|options(?: are)?|possible values(?: are)?)\b"
    r"[^.]*?(?:[`'\"“][\w-]+[`'\"”][^.]*?(?:,|\bor\b|/|\|)[^.]*?[`'\"“][\w-]+[`'\"”])",
    re.IGNORECASE,
)


def object_at_top(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """The top of a schema is a plain object: large model APIs refuse unions there."""
    schema = tool.input_schema
    if schema.get("type") != "object":
        yield Problem(message="The schema's type is not `object`.", fix='Set "type": "object" and name the arguments.')
    for keyword in _UNIONS:
        if keyword in schema:
            yield Problem(
                message=f"`{keyword}` stands at the top of the schema, which large model APIs refuse.",
                fix="Use one flat object with an `action` enum; a union of ToolArguments becomes that by itself.",
            )


def closed_schema(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Unknown arguments are refused, and the schema says so."""
    if tool.input_schema.get("additionalProperties") is not False:
        yield Problem(
            message="The schema is open: a misspelt argument would be dropped in silence.",
            fix='Set "additionalProperties": false, or use ToolArguments.',
        )


def field_described(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Every field says what it is, at any depth."""
    for node in fields(tool.input_schema):
        if not node.text("description"):
            yield Problem(
                field=node.path,
                message="The field has no description.",
                fix="Say what it is and which values are valid: Field(description=…), or a line under `Args:`.",
            )


def field_says_more(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A field's description tells more than its name does."""
    for node in fields(tool.input_schema):
        told = set(split_words(node.text("description"))) - {"the", "a", "an", "of", "this", "tool"}
        if told and told <= set(split_words(node.path.rpartition(".")[2])):
            yield Problem(
                field=node.path,
                message="The description only repeats the field's name.",
                fix="Say what the value means, its form or unit, and which values are valid.",
            )


def clear_parameter_names(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A name that could mean anything is explained, or replaced."""
    for node in fields(tool.input_schema):
        name = node.path.rpartition(".")[2]
        told = split_words(node.text("description"))
        if name.lower() in _VAGUE and told and len(told) < _FEWEST_WORDS:
            yield Problem(
                field=node.path,
                message=f"`{name}` could mean anything, and its description is too short to tell.",
                fix="Name what it holds (`user_id`, `message_text`), or describe it in a sentence.",
            )


def no_titles(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Generated titles cost tokens and tell nothing."""
    places = ["the top", *(f"`{node.path}`" for node in nodes(tool.input_schema) if node.text("title"))]
    found = places[1:] if not isinstance(tool.input_schema.get("title"), str) else places
    if found:
        yield Problem(
            message=f"The schema has a `title` at {', '.join(found[:3])}: {len(found)} in all.",
            fix="Leave titles out; names and descriptions say it already.",
        )


def enum_for_closed_sets(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Where only some values are valid, the schema lists them."""
    for node in fields(tool.input_schema):
        is_free_text = node.text("type") == "string" and not {"enum", "const", "pattern"} & set(node.keywords)
        if is_free_text and _CHOICES.search(node.text("description")):
            yield Problem(
                field=node.path,
                message="The description lists the valid values, and the schema allows any text.",
                fix="List them in the schema: Literal[…] in Python.",
            )


def default_fits(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A default is one of the values that the field allows."""
    for node in fields(tool.input_schema):
        choices, default = as_list(node.keywords.get("enum")), node.keywords.get("default")
        if choices and default is not None and default not in choices:
            yield Problem(
                field=node.path,
                message=f"The default {default!r} is none of the valid values.",
                fix=f"Use one of {', '.join(map(repr, choices))}, or add it to them.",
            )


def shallow_schema(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Arguments are not nested deeply: models lose their way in braces."""
    deepest = max(fields(tool.input_schema), key=lambda node: node.depth, default=None)
    if deepest is not None and deepest.depth > options.depth:
        yield Problem(
            field=deepest.path,
            message=f"Arguments are nested {deepest.depth} levels deep; {options.depth} is the limit.",
            fix="Flatten them, or split the tool.",
        )


def few_parameters(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool has no more arguments than one can choose from."""
    count = len(properties_of(tool.input_schema))
    if count > options.parameters:
        yield Problem(
            message=f"The tool has {count} arguments; {options.parameters} is the limit.",
            fix="Split it into several tools, or group what belongs together.",
        )

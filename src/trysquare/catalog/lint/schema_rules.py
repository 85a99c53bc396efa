"""Lint rules for argument schemas and their portability."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trysquare.catalog.lint.base import LintOptions, Node, Problem, fields, nodes, tool_rule
from trysquare.core.json import as_list, properties_of, ref_of
from trysquare.core.tool import Tool
from trysquare.search.tokenize import split_words

_MAY_BE_BOOLEAN = ("additionalProperties",)
_SAYS_NOTHING = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
)


@tool_rule("error")
def schema_objects(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """`true` and `false` do not stand in for a schema."""
    for place, node in _schemas(tool):
        if isinstance(node.schema, bool) and node.keyword not in _MAY_BE_BOOLEAN:
            yield Problem(
                f"A bare `{str(node.schema).lower()}` instead of a schema.",
                'Say what the value is, such as {"type": "object", "additionalProperties": true}.',
                field=place,
            )


@tool_rule("warning")
def single_types(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """`type` is one name: some clients drop or refuse a list."""
    for place, node in _schemas(tool):
        kinds = node.keywords.get("type")
        if isinstance(kinds, list):
            yield Problem(
                "`type` is a list, which some clients refuse.",
                'Write {"anyOf": [{"type": …}, {"type": …}]}, or leave `null` out and the argument optional.',
                field=place,
            )


@tool_rule("warning")
def local_references(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A `$ref` points into the schema itself: no client fetches others."""
    for place, node in _schemas(tool):
        reference = ref_of(node.keywords)
        if reference is not None and not reference.startswith("#"):
            yield Problem(
                f"`$ref` points to another document: {reference}.",
                "Write the schema out, or put it into `$defs` and refer to `#/$defs/NAME`.",
                field=place,
            )


@tool_rule("warning")
def typed_values(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Every value has a type, so that a model knows what to write."""
    for place, node in _schemas(tool):
        if isinstance(node.schema, dict) and not set(node.keywords) - _SAYS_NOTHING:
            yield Problem(
                "The schema allows any value.",
                "Annotate what it is: str, int, list[str], dict[str, Any] …",
                field=place,
            )


def _schemas(tool: Tool) -> Iterator[tuple[str | None, Node]]:
    """Every part of both schemas. An empty one under `not` is the plain way to say never."""
    for place, schema in (("", tool.input_schema), ("output ", tool.output_schema or {})):
        for node in nodes(schema):
            if node.keyword != "not" or node.schema != {}:
                yield f"{place}{node.path}" or None, node


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


@tool_rule("error")
def object_at_top(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """The top of a schema is a plain object: large model APIs refuse unions there."""
    schema = tool.input_schema
    if schema.get("type") != "object":
        yield Problem("The schema's type is not `object`.", 'Set "type": "object" and name the arguments.')
    for keyword in _UNIONS:
        if keyword in schema:
            yield Problem(
                f"`{keyword}` stands at the top of the schema, which large model APIs refuse.",
                "Use one flat object with an `action` enum; a union of ToolArguments becomes that by itself.",
            )


@tool_rule("error")
def closed_schema(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Unknown arguments are refused, and the schema says so."""
    if tool.input_schema.get("additionalProperties") is not False:
        yield Problem(
            "The schema is open: a misspelt argument would be dropped in silence.",
            'Set "additionalProperties": false, or use ToolArguments.',
        )


@tool_rule("error")
def field_described(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Every field says what it is, at any depth."""
    for node in fields(tool.input_schema):
        if not node.text("description"):
            yield Problem(
                "The field has no description.",
                "Say what it is and which values are valid: Field(description=…), or a line under `Args:`.",
                field=node.path,
            )


@tool_rule("advice")
def field_says_more(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A field's description tells more than its name does."""
    for node in fields(tool.input_schema):
        text = set(split_words(node.text("description"))) - {"the", "a", "an", "of", "this", "tool"}
        if text and text <= set(split_words(node.path.rpartition(".")[2])):
            yield Problem(
                "The description only repeats the field's name.",
                "Say what the value means, its form or unit, and which values are valid.",
                field=node.path,
            )


@tool_rule("warning")
def clear_parameter_names(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A name that could mean anything is explained, or replaced."""
    for node in fields(tool.input_schema):
        name = node.path.rpartition(".")[2]
        text = split_words(node.text("description"))
        if name.lower() in _VAGUE and text and len(text) < _FEWEST_WORDS:
            yield Problem(
                f"`{name}` could mean anything, and its description is too short to tell.",
                "Name what it holds (`user_id`, `message_text`), or describe it in a sentence.",
                field=node.path,
            )


@tool_rule("advice")
def no_titles(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Generated titles cost tokens and tell nothing."""
    places = ["the top", *(f"`{node.path}`" for node in nodes(tool.input_schema) if node.text("title"))]
    found = places[1:] if not isinstance(tool.input_schema.get("title"), str) else places
    if found:
        yield Problem(
            f"The schema has a `title` at {', '.join(found[:3])}: {len(found)} in all.",
            "Leave titles out; names and descriptions say it already.",
        )


@tool_rule("warning")
def enum_for_closed_sets(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Where only some values are valid, the schema lists them."""
    for node in fields(tool.input_schema):
        is_free_text = node.text("type") == "string" and not {"enum", "const", "pattern"} & set(node.keywords)
        if is_free_text and _CHOICES.search(node.text("description")):
            yield Problem(
                "The description lists the valid values, and the schema allows any text.",
                "List them in the schema: Literal[…] in Python.",
                field=node.path,
            )


@tool_rule("error")
def default_fits(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A default is one of the values that the field allows."""
    for node in fields(tool.input_schema):
        choices, default = as_list(node.keywords.get("enum")), node.keywords.get("default")
        if choices and default is not None and default not in choices:
            yield Problem(
                f"The default {default!r} is none of the valid values.",
                f"Use one of {', '.join(map(repr, choices))}, or add it to them.",
                field=node.path,
            )


@tool_rule("warning")
def shallow_schema(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Arguments are not nested deeply: models lose their way in braces."""
    deepest = max(fields(tool.input_schema), key=lambda node: node.depth, default=None)
    if deepest is not None and deepest.depth > options.depth:
        yield Problem(
            f"Arguments are nested {deepest.depth} levels deep; {options.depth} is the limit.",
            "Flatten them, or split the tool.",
            field=deepest.path,
        )


@tool_rule("warning")
def few_parameters(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool has no more arguments than one can choose from."""
    count = len(properties_of(tool.input_schema))
    if count > options.parameters:
        yield Problem(
            f"The tool has {count} arguments; {options.parameters} is the limit.",
            "Split it into several tools, or group what belongs together.",
        )

"""Lint rules for argument schemas and their portability."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trysquare.catalog.lint.base import LintOptions, Node, Problem, each_field, each_tool, fields, nodes, rule
from trysquare.core.json import as_list, properties_of, ref_of
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.search.tokenize import split_words

_MAY_BE_BOOLEAN = ("additionalProperties",)
_SAYS_NOTHING = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
)


def _each_part(toolset: Toolset) -> Iterator[tuple[str, str | None, Node]]:
    """Every part of both schemas. An empty one under `not` is the plain way to say never."""
    for tool in toolset.tools():
        for place, schema in (("", tool.input_schema), ("output ", tool.output_schema or {})):
            for node in nodes(schema):
                if node.keyword != "not" or node.schema != {}:
                    yield tool.name, f"{place}{node.path}" or None, node


@rule("error", _each_part, 'Say what the value is, such as {"type": "object", "additionalProperties": true}.')
def schema_objects(node: Node, options: LintOptions) -> Iterator[str]:
    """`true` and `false` do not stand in for a schema."""
    if isinstance(node.schema, bool) and node.keyword not in _MAY_BE_BOOLEAN:
        yield f"A bare `{str(node.schema).lower()}` instead of a schema."


@rule(
    "warning", _each_part, 'Write {"anyOf": [{"type": …}, {"type": …}]}, or leave `null` out and the argument optional.'
)
def single_types(node: Node, options: LintOptions) -> Iterator[str]:
    """`type` is one name: some clients drop or refuse a list."""
    if isinstance(node.keywords.get("type"), list):
        yield "`type` is a list, which some clients refuse."


@rule("warning", _each_part, "Write the schema out, or put it into `$defs` and refer to `#/$defs/NAME`.")
def local_references(node: Node, options: LintOptions) -> Iterator[str]:
    """A `$ref` points into the schema itself: no client fetches others."""
    reference = ref_of(node.keywords)
    if reference is not None and not reference.startswith("#"):
        yield f"`$ref` points to another document: {reference}."


@rule("warning", _each_part, "Annotate what it is: str, int, list[str], dict[str, Any] …")
def typed_values(node: Node, options: LintOptions) -> Iterator[str]:
    """Every value has a type, so that a model knows what to write."""
    if isinstance(node.schema, dict) and not set(node.keywords) - _SAYS_NOTHING:
        yield "The schema allows any value."


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


@rule("error", each_tool, "Use one flat object with an `action` enum; a union of ToolArguments becomes that by itself.")
def object_at_top(tool: Tool, options: LintOptions) -> Iterator[str | Problem]:
    """The top of a schema is a plain object: large model APIs refuse unions there."""
    schema = tool.input_schema
    if schema.get("type") != "object":
        yield Problem("The schema's type is not `object`.", 'Set "type": "object" and name the arguments.')
    for keyword in _UNIONS:
        if keyword in schema:
            yield f"`{keyword}` is at the top of the schema, where large model APIs refuse it."


@rule("error", each_tool, 'Set "additionalProperties": false, or use ToolArguments.')
def closed_schema(tool: Tool, options: LintOptions) -> Iterator[str]:
    """Unknown arguments are refused, and the schema says so."""
    if tool.input_schema.get("additionalProperties") is not False:
        yield "The schema is open: a misspelt argument would be dropped in silence."


def _each_undescribed(toolset: Toolset) -> Iterator[tuple[str, str | None, Node]]:
    """Fields, but for those that the description of their tool names: "Greet a person by name" says what `name` is."""
    for tool in toolset.tools():
        said = set(split_words(tool.description))
        for node in fields(tool.input_schema):
            words = split_words(node.path)
            if node.path.lower() in _VAGUE or not words or not said.issuperset(words):
                yield tool.name, node.path, node


@rule(
    "error",
    _each_undescribed,
    "Say what it is and which values are valid: Field(description=…), or a line under `Args:`.",
)
def field_described(node: Node, options: LintOptions) -> Iterator[str]:
    """Every field says what it is, at any depth, unless the tool's description names it."""
    if not node.text("description"):
        yield "The field has no description."


@rule("advice", each_field, "Say what the value means, its form or unit, and which values are valid.")
def field_says_more(node: Node, options: LintOptions) -> Iterator[str]:
    """A field's description tells more than its name does."""
    text = set(split_words(node.text("description"))) - {"the", "a", "an", "of", "this", "tool"}
    if text and text <= set(split_words(node.path.rpartition(".")[2])):
        yield "The description only repeats the field's name."


@rule("warning", each_field, "Name what it holds (`user_id`, `message_text`), or describe it in a sentence.")
def clear_parameter_names(node: Node, options: LintOptions) -> Iterator[str]:
    """A name that could mean anything is explained, or replaced."""
    name = node.path.rpartition(".")[2]
    text = split_words(node.text("description"))
    if name.lower() in _VAGUE and text and len(text) < _FEWEST_WORDS:
        yield f"`{name}` is ambiguous, and its description is too short."


@rule("advice", each_tool, "Leave titles out; names and descriptions say it already.")
def no_titles(tool: Tool, options: LintOptions) -> Iterator[str]:
    """Generated titles cost tokens and add no information."""
    places = ["the top", *(f"`{node.path}`" for node in nodes(tool.input_schema) if node.text("title"))]
    found = places[1:] if not isinstance(tool.input_schema.get("title"), str) else places
    if found:
        yield f"The schema has a `title` at {', '.join(found[:3])}: {len(found)} in all."


@rule("warning", each_field, "List them in the schema: Literal[…] in Python.")
def enum_for_closed_sets(node: Node, options: LintOptions) -> Iterator[str]:
    """Where only some values are valid, the schema lists them."""
    is_free_text = node.text("type") == "string" and not {"enum", "const", "pattern"} & set(node.keywords)
    if is_free_text and _CHOICES.search(node.text("description")):
        yield "The description lists the valid values, and the schema allows any text."


@rule("error", each_field)
def default_fits(node: Node, options: LintOptions) -> Iterator[Problem]:
    """A default is one of the values that the field allows."""
    choices, default = as_list(node.keywords.get("enum")), node.keywords.get("default")
    if choices and default is not None and default not in choices:
        fix = f"Use one of {', '.join(map(repr, choices))}, or add it to them."
        yield Problem(f"The default {default!r} is not one of the valid values.", fix)


@rule("warning", each_tool, "Flatten them, or split the tool.")
def shallow_schema(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Arguments are not nested deeply: models lose their way in braces."""
    deepest = max(fields(tool.input_schema), key=lambda node: node.depth, default=None)
    if deepest is not None and deepest.depth > options.depth:
        message = f"Arguments are nested {deepest.depth} levels deep; {options.depth} is the limit."
        yield Problem(message, field=deepest.path)


@rule("warning", each_tool, "Split it into several tools, or group what belongs together.")
def few_parameters(tool: Tool, options: LintOptions) -> Iterator[str]:
    """A tool has no more arguments than one can choose from."""
    count = len(properties_of(tool.input_schema))
    if count > options.parameters:
        yield f"The tool has {count} arguments; {options.parameters} is the limit."

"""Rules about schemas that some clients refuse or misread, though JSON Schema allows them."""

from __future__ import annotations

from collections.abc import Iterator

from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.catalog.rules.schema_nodes import Node, nodes
from trysquare.core.tool import Tool

_MAY_BE_BOOLEAN = ("additionalProperties",)
_SAYS_NOTHING = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
)


def schema_objects(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """`true` and `false` do not stand in for a schema."""
    for place, node in _schemas(tool):
        if isinstance(node.schema, bool) and node.keyword not in _MAY_BE_BOOLEAN:
            yield Problem(
                field=place,
                message=f"A bare `{str(node.schema).lower()}` stands where a schema is expected.",
                fix='Say what the value is, such as {"type": "object", "additionalProperties": true}.',
            )


def single_types(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """`type` is one name: some clients drop or refuse a list."""
    for place, node in _schemas(tool):
        kinds = node.keywords.get("type")
        if isinstance(kinds, list):
            yield Problem(
                field=place,
                message="`type` is a list, which some clients refuse.",
                fix='Write {"anyOf": [{"type": …}, {"type": …}]}, or leave `null` out and the argument optional.',
            )


def local_references(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A `$ref` points into the schema itself: no client fetches others."""
    for place, node in _schemas(tool):
        reference = node.keywords.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            yield Problem(
                field=place,
                message=f"`$ref` points to another document: {reference}.",
                fix="Write the schema out, or put it into `$defs` and refer to `#/$defs/NAME`.",
            )


def typed_values(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Every value has a type, so that a model knows what to write."""
    for place, node in _schemas(tool):
        if isinstance(node.schema, dict) and not set(node.keywords) - _SAYS_NOTHING:
            yield Problem(
                field=place,
                message="The schema allows any value.",
                fix="Annotate what it is: str, int, list[str], dict[str, Any] …",
            )


def _schemas(tool: Tool) -> Iterator[tuple[str | None, Node]]:
    """Every part of both schemas. An empty one under `not` is the plain way to say never."""
    for place, schema in (("", tool.input_schema), ("output ", tool.output_schema or {})):
        for node in nodes(schema):
            if node.keyword != "not" or node.schema != {}:
                yield f"{place}{node.path}" or None, node

"""Schema nodes: every part of a schema, with its place and the keyword that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trysquare.catalog.schema_parts import as_list, as_object
from trysquare.core.types import JsonObject

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_DEEPEST = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One part of a schema. `depth` counts the objects and lists around it."""

    schema: Any
    path: str
    keyword: str
    depth: int

    @property
    def keywords(self) -> JsonObject:
        """What the schema says; nothing for a bare `true` or `false`, or for what is no schema at all."""
        return as_object(self.schema)

    def text(self, key: str) -> str:
        """A text of the schema, or an empty one."""
        value = self.keywords.get(key)
        return value.strip() if isinstance(value, str) else ""


def nodes(schema: JsonObject) -> Iterator[Node]:
    """The parts of a schema below its top, outermost first."""
    yield from _below(Node(schema=schema, path="", keyword="", depth=0))


def fields(schema: JsonObject) -> Iterator[Node]:
    """The parts that are named properties, at any depth."""
    return (node for node in nodes(schema) if node.keyword == "properties")


def _below(parent: Node) -> Iterator[Node]:
    if parent.depth > _DEEPEST:
        return
    for child in _children(parent.keywords, parent):
        yield child
        yield from _below(child)


def _children(schema: JsonObject, parent: Node) -> Iterator[Node]:
    for keyword in _MAPS:
        for name, part in as_object(schema.get(keyword)).items():
            yield Node(schema=part, path=_joined(parent.path, name), keyword=keyword, depth=parent.depth + 1)
    for keyword in _LISTS:
        for part in as_list(schema.get(keyword)):
            yield Node(schema=part, path=parent.path, keyword=keyword, depth=parent.depth)
    for keyword in _SINGLES:
        if keyword in schema:
            place = f"{parent.path}[]" if keyword == "items" else parent.path
            yield Node(schema=schema[keyword], path=place, keyword=keyword, depth=parent.depth)


def _joined(parent: str, name: str) -> str:
    return f"{parent}.{name}" if parent else name

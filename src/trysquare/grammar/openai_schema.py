"""OpenAI schema: calls as the strict form of a JSON schema that OpenAI and its imitators hold a model to.

In that form every property of an object is required and none may be added, so a property that may be left out becomes
one that may be null. `without_nulls` takes these nulls out again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.grammar.admission import admits
from trysquare.grammar.call_grammar import CallGrammar
from trysquare.grammar.expressions import Chars, repeated
from trysquare.grammar.json_text import EVERY_CHARACTER
from trysquare.grammar.refusals import Unsupported, at
from trysquare.grammar.schema_writing import SchemaWriter, pattern_text
from trysquare.grammar.shapes import (
    NOTHING,
    NULL,
    Anything,
    Arrays,
    Constants,
    Named,
    Objects,
    Property,
    Shape,
    ShapeTree,
    Strings,
    Union,
    any_of,
)

MOST_VALUES = 1_000
DEEPEST = 10
"""Limits that OpenAI documents for values of an enumeration and for objects inside one another."""


def openai_format(grammar: CallGrammar) -> JsonObject:
    """The `response_format` of a request whose answer is `{"call": …}`, or `{"calls": […]}` where several may come."""
    tree = grammar.tree()
    key = "calls" if grammar.calls.parallel else "call"
    outer = Objects(properties=(Property(name=key, shape=tree.root, required=True),), others=NOTHING)
    schema = strict_schema(ShapeTree(root=outer, named=tree.named))
    return {"type": "json_schema", "json_schema": {"name": "tool_call", "strict": True, "schema": schema}}


def strict_schema(tree: ShapeTree) -> JsonObject:
    """The tree as a strict schema. Raises `Unsupported` for what the strict form does not know."""
    return _StrictWriter(tree.named).document(tree)


class _StrictWriter(SchemaWriter):
    """Writes shapes with the keywords of the strict form alone."""

    def __init__(self, named: Mapping[str, Shape]) -> None:
        super().__init__()
        self._named = named
        self._pointer = ""
        self._depth = 0

    def written(self, shape: Shape) -> JsonObject:
        """The strict schema of one shape."""
        match shape:
            case Anything():
                raise self._refusal("schema", "a value of which nothing is said has no strict form")
            case Constants():
                return self._values(shape)
            case Strings(pattern=None) if shape.shortest or shape.longest is not None:
                any_text = repeated(Chars(EVERY_CHARACTER), shape.shortest, shape.longest)
                return {"type": "string", "pattern": pattern_text(any_text)}
            case Arrays(first=first) if first:
                raise self._refusal("prefixItems", "the strict form knows arrays of one kind of item only")
            case Objects():
                return self._strict_object(shape)
            case _:
                return super().written(shape)

    def _refusal(self, keyword: str, why: str) -> Unsupported:
        return Unsupported(keyword, self._pointer, why)

    def _values(self, shape: Constants) -> JsonObject:
        if len(shape.texts) > MOST_VALUES:
            raise self._refusal("enum", f"the strict form allows no more than {MOST_VALUES} values")
        if any(text.startswith(("[", "{")) for text in shape.texts):
            raise self._refusal("enum", "the strict form knows no constant arrays and objects")
        known = super().written(shape)
        return {"enum": [known["const"]]} if "const" in known else known

    def _strict_object(self, shape: Objects) -> JsonObject:
        if shape.others != NOTHING:
            raise self._refusal("additionalProperties", "the strict form knows closed objects only")
        if shape.fewest or shape.most is not None:
            raise self._refusal("minProperties", "the strict form does not count properties")
        if self._depth >= DEEPEST:
            raise self._refusal("properties", f"the strict form allows {DEEPEST} objects inside one another")
        self._depth += 1
        listed = {entry.name: self._property(entry) for entry in shape.properties if entry.shape != NOTHING}
        self._depth -= 1
        return {"type": "object", "properties": listed, "required": list(listed), "additionalProperties": False}

    def _property(self, entry: Property) -> JsonObject:
        before = self._pointer
        self._pointer = at(before, "properties", entry.name)
        as_it_is = entry.required or admits(entry.shape, None, self._named)
        found = self.written(entry.shape if as_it_is else any_of([entry.shape, NULL]))
        self._pointer = before
        return found


def without_nulls(tree: ShapeTree, value: Any) -> Any:
    """The value without the nulls that stand for properties that were left out."""
    return _without_nulls(tree.root, value, tree.named)


def _without_nulls(shape: Shape, value: Any, named: Mapping[str, Shape]) -> Any:
    match shape:
        case Named(name=name):
            return _without_nulls(named[name], value, named)
        case Union(options=options):
            changed = ((option, _without_nulls(option, value, named)) for option in options)
            return next((found for option, found in changed if admits(option, found, named)), value)
        case Objects() if isinstance(value, dict):
            return _object_without_nulls(shape, cast(JsonObject, value), named)
        case Arrays() if isinstance(value, list):
            return [_without_nulls(shape.rest, item, named) for item in cast(list[Any], value)]
        case _:
            return value


def _object_without_nulls(shape: Objects, value: JsonObject, named: Mapping[str, Shape]) -> JsonObject:
    listed = {entry.name: entry for entry in shape.properties}
    kept: JsonObject = {}
    for name, inner in value.items():
        entry = listed.get(name)
        left_out = inner is None and entry and not entry.required and not admits(entry.shape, None, named)
        if not left_out:
            kept[name] = _without_nulls(entry.shape, inner, named) if entry else inner
    return kept

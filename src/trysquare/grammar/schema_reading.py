"""Schema reading: a JSON Schema as a tree of shapes.

Every keyword of the drafts 4 to 2020-12 is either worked in or refused by name. Others, and notes such as
`description`, say nothing about values in any draft and are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations, permutations
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.grammar.admission import whole
from trysquare.grammar.intersection import Intersecting, Undecided, array_of, object_of
from trysquare.grammar.json_text import json_text
from trysquare.grammar.patterns import PatternRefused, read_pattern
from trysquare.grammar.productivity import circles, pruned
from trysquare.grammar.references import target_of
from trysquare.grammar.refusals import Unsupported, at
from trysquare.grammar.regex_text import says
from trysquare.grammar.scalar_keywords import read_count, read_numbers, read_strings
from trysquare.grammar.shapes import (
    ANYTHING,
    BOOLEANS,
    NOTHING,
    NULL,
    Arrays,
    Constants,
    Named,
    Objects,
    Property,
    Shape,
    ShapeTree,
    any_of,
    constants_of,
)

TYPES = ("null", "boolean", "number", "integer", "string", "array", "object")
REFUSED = {
    "if": "what holds only under a condition is no part of a grammar",
    "not": "what must not be is no part of a grammar",
    "contains": "one item among others cannot be looked for while writing",
    "minContains": "one item among others cannot be looked for while writing",
    "maxContains": "one item among others cannot be looked for while writing",
    "dependentSchemas": "what holds only under a condition is no part of a grammar",
    "unevaluatedProperties": "write `additionalProperties`",
    "unevaluatedItems": "write `items`",
    "$dynamicRef": "write `$ref`",
    "$recursiveRef": "write `$ref`",
}
BY_TYPE = {
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"),
    "object": (
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
        "maxProperties", "dependentRequired", "dependencies",
    ),
}  # fmt: skip
MOST_ARRANGEMENTS = 400
MOST_DEPENDENCIES = 4
DEEPEST = 120
LONGEST_NAME = 200
"""Names that are not listed are told apart from listed ones letter by letter, which is bounded."""


def read_schema(schema: JsonObject | bool, *, label: str = "") -> ShapeTree:
    """The values that a schema allows. Raises `Unsupported`, with the place, for what no grammar can hold.

    The label stands before every name in the tree's table, so that the tables of several schemas can be joined.
    """
    return _SchemaReader(schema, label).tree()


class _SchemaReader:
    """Reads a schema with what it refers to."""

    def __init__(self, document: JsonObject | bool, label: str) -> None:
        self._document = document
        self._label = label
        self._named: dict[str, Shape] = {}
        self._open: set[str] = set()
        self._exclusive: list[tuple[tuple[Shape, ...], str]] = []
        self._intersecting = Intersecting(self._named)

    def tree(self) -> ShapeTree:
        root = self._read(self._document, "")
        for options, pointer in self._exclusive:
            self._check_exclusive(options, pointer)
        circle = circles(self._named)
        if circle is not None:
            raise Unsupported(
                "$ref", circle.removeprefix(self._label), "it leads back to itself without anything in between"
            )
        tree = pruned(ShapeTree(root=root, named=self._named))
        if tree.root == NOTHING:
            raise Unsupported("schema", "", "no value fits it")
        return tree

    def _read(self, schema: Any, pointer: str) -> Shape:
        if isinstance(schema, bool):
            return ANYTHING if schema else NOTHING
        if not isinstance(schema, dict):
            raise Unsupported("schema", pointer, "a schema is an object, true or false")
        if pointer.count("/") > DEEPEST:
            raise Unsupported("schema", pointer, "it lies too deep inside others")
        found = cast(JsonObject, schema)
        self._refuse(found, pointer)
        parts = [self._typed(found, pointer), *self._combined(found, pointer)]
        shape = reduce(lambda one, other: self._meet(one, other, pointer), parts)
        return self._meet(self._constants(found, pointer), shape, pointer)

    def _refuse(self, schema: JsonObject, pointer: str) -> None:
        for keyword, why in REFUSED.items():
            if keyword not in schema or (keyword == "if" and not {"then", "else"} & schema.keys()):
                continue
            if keyword == "not" and schema["not"] is False:
                continue
            raise Unsupported(keyword, at(pointer, keyword), why)

    def _meet(self, one: Shape, other: Shape, pointer: str) -> Shape:
        try:
            return self._intersecting.meet(one, other)
        except Undecided as error:
            raise Unsupported("allOf", pointer, f"{error} cannot be put together") from error

    def _constants(self, schema: JsonObject, pointer: str) -> Shape:
        if "const" in schema:
            return constants_of([_constant(schema["const"], at(pointer, "const"))])
        if "enum" not in schema:
            return ANYTHING
        values = schema["enum"]
        if not isinstance(values, list):
            raise Unsupported("enum", at(pointer, "enum"), "it has to be an array")
        return constants_of(_constant(value, at(pointer, "enum")) for value in cast(list[Any], values))

    def _combined(self, schema: JsonObject, pointer: str) -> list[Shape]:
        """What references and the keywords that combine schemas add."""
        found: list[Shape] = []
        if "$ref" in schema:
            found.append(self._reference(schema["$ref"], at(pointer, "$ref")))
        found += self._several(schema, pointer, "allOf")
        if "anyOf" in schema:
            found.append(any_of(self._several(schema, pointer, "anyOf")))
        if "oneOf" in schema:
            options = tuple(self._several(schema, pointer, "oneOf"))
            self._exclusive.append((options, at(pointer, "oneOf")))
            found.append(any_of(options))
        return found

    def _several(self, schema: JsonObject, pointer: str, keyword: str) -> list[Shape]:
        inner = schema.get(keyword, [])
        if not isinstance(inner, list):
            raise Unsupported(keyword, at(pointer, keyword), "it has to be an array of schemas")
        schemas = cast(list[Any], inner)
        return [self._read(option, at(pointer, keyword, index)) for index, option in enumerate(schemas)]

    def _check_exclusive(self, options: Sequence[Shape], pointer: str) -> None:
        for one, other in combinations(options, 2):
            try:
                disjoint = self._intersecting.disjoint(one, other)
            except Undecided:
                disjoint = False
            if not disjoint:
                raise Unsupported("oneOf", pointer, "a value may fit two of its schemas; write `anyOf` if that is fine")

    def _reference(self, reference: Any, pointer: str) -> Shape:
        target, schema = target_of(self._document, reference, pointer)
        name = self._label + target
        if name not in self._named and name not in self._open:
            self._open.add(name)
            self._named[name] = self._read(schema, target)
            self._open.remove(name)
        return Named(name=name)

    def _typed(self, schema: JsonObject, pointer: str) -> Shape:
        """What the types and the keywords of each type allow."""
        names = _type_names(schema, pointer)
        if names is None and not any(keyword in schema for keywords in BY_TYPE.values() for keyword in keywords):
            return ANYTHING
        wanted = names or [name for name in TYPES if name != "integer"]
        return any_of(self._of_type(name, schema, pointer) for name in TYPES if name in wanted)

    def _of_type(self, name: str, schema: JsonObject, pointer: str) -> Shape:
        readers: dict[str, Callable[[], Shape]] = {
            "null": lambda: NULL,
            "boolean": lambda: BOOLEANS,
            "number": lambda: read_numbers(schema, pointer, whole=False),
            "integer": lambda: read_numbers(schema, pointer, whole=True),
            "string": lambda: read_strings(schema, pointer),
            "array": lambda: self._arrays(schema, pointer),
            "object": lambda: self._objects(schema, pointer),
        }
        return readers[name]()

    def _arrays(self, schema: JsonObject, pointer: str) -> Shape:
        tuple_form = isinstance(schema.get("items"), list)
        keyword, behind = ("items", "additionalItems") if tuple_form else ("prefixItems", "items")
        first = self._several(schema, pointer, keyword)
        rest = self._read(schema.get(behind, True), at(pointer, behind))
        dead = next((index for index, shape in enumerate(first) if shape == NOTHING), None)
        if dead is not None:
            first, rest = first[:dead], NOTHING
        fewest, most = read_count(schema, pointer, "minItems") or 0, read_count(schema, pointer, "maxItems")
        found = array_of(first, rest, fewest, most)
        return self._unique(found, pointer) if schema.get("uniqueItems") is True else found

    def _unique(self, shape: Shape, pointer: str) -> Shape:
        """Items that differ: every arrangement by itself, where the items are constants and these are few."""
        if not isinstance(shape, Arrays) or (shape.most is not None and shape.most <= 1):
            return shape
        rest = shape.rest
        if shape.first or not isinstance(rest, Constants):
            raise Unsupported("uniqueItems", at(pointer, "uniqueItems"), "a grammar does not remember earlier items")
        counts = range(shape.fewest, min(len(rest.texts), shape.most or len(rest.texts)) + 1)
        found: list[str] = []
        for texts in (texts for count in counts for texts in permutations(rest.texts, count)):
            found.append("[" + ",".join(texts) + "]")
            if len(found) > MOST_ARRANGEMENTS:
                raise Unsupported("uniqueItems", at(pointer, "uniqueItems"), "there are too many arrangements")
        return constants_of(found)

    def _objects(self, schema: JsonObject, pointer: str) -> Shape:
        listed = self._listed(schema, pointer)
        others, names = self._other_properties(schema, pointer, listed)
        required = _required(schema, pointer)
        entries = [Property(name=name, shape=shape, required=name in required) for name, shape in listed.items()]
        for name in (name for name in required if name not in listed):
            fits = names is None or says(names, name)
            entries.append(Property(name=name, shape=others if fits else NOTHING, required=True))
        bounds = (read_count(schema, pointer, "minProperties") or 0, read_count(schema, pointer, "maxProperties"))
        if others != NOTHING and any(len(entry.name) > LONGEST_NAME for entry in entries):
            raise Unsupported(
                "properties", pointer, f"a name has more than {LONGEST_NAME} characters in an open object"
            )
        found = object_of(entries, others, names, *bounds)
        self._check_count(found, pointer)
        return self._with_dependencies(found, schema, pointer)

    def _listed(self, schema: JsonObject, pointer: str) -> dict[str, Shape]:
        place = at(pointer, "properties")
        inner = _mapping(schema.get("properties", {}), "properties", place)
        return {name: self._read(value, at(place, name)) for name, value in inner.items()}

    def _other_properties(self, schema: JsonObject, pointer: str, listed: dict[str, Shape]) -> tuple[Shape, Any]:
        """The shape of properties that are not listed, and what their names are."""
        others = self._read(schema.get("additionalProperties", True), at(pointer, "additionalProperties"))
        place = at(pointer, "patternProperties")
        patterns = _mapping(schema.get("patternProperties", {}), "patternProperties", place)
        if "propertyNames" in schema and schema["propertyNames"] not in ({}, True):
            raise Unsupported("propertyNames", at(pointer, "propertyNames"), "write `patternProperties`")
        if not patterns:
            return others, None
        if len(patterns) > 1 or others != NOTHING:
            raise Unsupported("patternProperties", place, "only one pattern, in a closed object, can be told apart")
        (pattern, inner), *_ = patterns.items()
        names = _pattern(pattern, at(place, pattern))
        if any(says(names, name) for name in (*listed, *_required(schema, pointer))):
            raise Unsupported("patternProperties", at(place, pattern), "it is also the pattern of a listed property")
        return self._read(inner, at(place, pattern)), names

    def _check_count(self, shape: Shape, pointer: str) -> None:
        """Others may be written twice under one name, so that only the first of them surely counts."""
        if not isinstance(shape, Objects) or shape.others == NOTHING:
            return
        if shape.fewest > sum(entry.required for entry in shape.properties) + 1:
            raise Unsupported("minProperties", at(pointer, "minProperties"), "names that are not listed may repeat")

    def _with_dependencies(self, shape: Shape, schema: JsonObject, pointer: str) -> Shape:
        """For each property that needs others: the objects without it, and those with all of them."""
        needs = _dependencies(schema, pointer)
        if len(needs) > MOST_DEPENDENCIES:
            raise Unsupported("dependentRequired", pointer, f"there are more than {MOST_DEPENDENCIES} of them")
        for name, needed in needs.items():
            absent = _object_with({name: False})
            present = _object_with(dict.fromkeys((name, *needed), True))
            shape = any_of(self._meet(shape, case, pointer) for case in (absent, present))
        return shape


def _constant(value: Any, pointer: str) -> str:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise Unsupported(pointer.rpartition("/")[2], pointer, "it holds a number that JSON does not know") from error
    text = json_text(_whole_inside(value))
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise Unsupported(pointer.rpartition("/")[2], pointer, "it holds half of a surrogate pair")
    return text


def _whole_inside(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole_inside(inner) for key, inner in cast(JsonObject, value).items()}
    if isinstance(value, list):
        return [_whole_inside(inner) for inner in cast(list[Any], value)]
    return whole(value)


def _type_names(schema: JsonObject, pointer: str) -> list[str] | None:
    given = schema.get("type")
    if given is None:
        return None
    names: list[Any] = cast(list[Any], given) if isinstance(given, list) else [given]
    wrong = next((name for name in names if name not in TYPES), None)
    if wrong is not None or not names:
        raise Unsupported("type", at(pointer, "type"), f"{json_text(wrong)} is no type of JSON Schema")
    return [name for name in names if name != "integer" or "number" not in names]


def _mapping(value: Any, keyword: str, pointer: str) -> JsonObject:
    if not isinstance(value, dict):
        raise Unsupported(keyword, pointer, "it has to be an object")
    return cast(JsonObject, value)


def _pattern(pattern: str, pointer: str) -> Any:
    try:
        return read_pattern(pattern)
    except PatternRefused as error:
        raise Unsupported("patternProperties", pointer, f"{error} cannot be read") from error


def _required(schema: JsonObject, pointer: str) -> list[str]:
    names = schema.get("required", [])
    if not _are_names(names):
        raise Unsupported("required", at(pointer, "required"), "it has to be an array of names")
    return list(dict.fromkeys(cast(list[str], names)))


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast(list[Any], value))


def _dependencies(schema: JsonObject, pointer: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for keyword in ("dependentRequired", "dependencies"):
        place = at(pointer, keyword)
        for name, needed in _mapping(schema.get(keyword, {}), keyword, place).items():
            if not _are_names(needed):
                raise Unsupported(keyword, at(place, name), "what holds only under a condition is no part of a grammar")
            found[name] = [*found.get(name, []), *cast(list[str], needed)]
    return found


def _object_with(presence: dict[str, bool]) -> Objects:
    """An open object in which properties must be there, or must not."""
    entries = [
        Property(name=name, shape=ANYTHING if there else NOTHING, required=there) for name, there in presence.items()
    ]
    return Objects(properties=tuple(entries), others=ANYTHING)

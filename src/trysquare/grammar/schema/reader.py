"""Shapes of a JSON Schema.

Every keyword of the drafts 4 to 2020-12 is either read or rejected by name; others, and annotations such as
`description`, constrain no values in any draft and are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import combinations, permutations
from math import isfinite
from typing import Any, cast
from urllib.parse import unquote

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, map_leaves, resolve_pointer
from trysquare.grammar.schema import intersection, shapes
from trysquare.grammar.text.expressions import json_text
from trysquare.grammar.text.ranges import split_number
from trysquare.grammar.text.regex import PatternRefused, read_pattern, says

_YEAR = r"(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_DATE = rf"(?:{_YEAR}-{_DAY}|{_LEAP}-02-29)"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
_TIME = rf"{_CLOCK}(?:[Zz]|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_WITHOUT_SPACE = r"[^\x00-\x20\"<>\\^`{|}\x7f\s]"

# A format is an annotation by default. Those with a pattern constrain the text, those in STORED change nothing, and any
# other is rejected, so that none is ignored silently.
PATTERNS = {
    "date": rf"^{_DATE}$",
    "time": rf"^{_TIME}$",
    "date-time": rf"^{_DATE}[Tt]{_TIME}$",
    "uuid": r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    "ipv4": rf"^(?:{_BYTE}\.){{3}}{_BYTE}$",
    "email": rf"^[A-Za-z0-9!#$%&'*+/=?\^_`{{|}}~\-]+(?:\.[A-Za-z0-9!#$%&'*+/=?\^_`{{|}}~\-]+)*@{_HOST}$",
    "hostname": rf"^{_HOST}$",
    "uri": rf"^[A-Za-z][A-Za-z0-9+.\-]*:{_WITHOUT_SPACE}*$",
    "uri-reference": rf"^{_WITHOUT_SPACE}*$",
}
STORED = frozenset({"float", "double", "decimal", "password", "binary", "byte", "textarea", "string", "text"})
"""Formats of OpenAPI and others about storage or display, not about the text."""
WHOLE = {
    "int32": shapes.Integers(least=-(2**31), most=2**31 - 1),
    "int64": shapes.Integers(least=-(2**63), most=2**63 - 1),
    "uint32": shapes.Integers(least=0, most=2**32 - 1),
    "uint64": shapes.Integers(least=0, most=2**64 - 1),
}


class Unsupported(ToolError):
    """A part of a schema that no grammar can express."""

    default_code = ErrorCode.GRAMMAR_UNSUPPORTED

    def __init__(self, keyword: str, pointer: str, why: str, *, tool: str | None = None) -> None:
        whose = f" in the arguments of `{tool}`" if tool else ""
        super().__init__(
            f"`{keyword}` at `{pointer or '/'}`{whose} cannot be expressed as a grammar: {why}.",
            instruction="Change that part of the schema, or call the tool with a model without a grammar.",
            fields={"keyword": keyword, "pointer": pointer or "/"} | ({"tool": tool} if tool else {}),
        )
        self.keyword, self.pointer, self.why = keyword, pointer, why


def unsupported(keyword: str, pointer: str, why: str) -> Unsupported:
    """The error of a keyword of the schema at the pointer."""
    return Unsupported(keyword, at(pointer, keyword), why)


def unsupported_at(pointer: str, why: str) -> Unsupported:
    """The error of the keyword that the pointer ends with."""
    return Unsupported(pointer.rpartition("/")[2], pointer, why)


def at(pointer: str, *steps: str | int) -> str:
    """The JSON pointer of a part."""
    return pointer + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


NUMBER_FORMATS = STORED | WHOLE.keys()


def read_numbers(schema: JsonObject, pointer: str, *, whole: bool) -> shapes.Shape:
    """The numbers that a schema allows: integers, or all."""
    least, above = _bound(schema, pointer, "minimum", "exclusiveMinimum")
    most, below = _bound(schema, pointer, "maximum", "exclusiveMaximum")
    step = _step(schema, pointer, whole=whole)
    if whole or step is not None:
        try:
            found = intersection.integers_between(least, most, above=above, below=below, step=step or 1)
            name = schema.get("format")
            if isinstance(found, shapes.Integers) and isinstance(name, str) and name in WHOLE:
                return intersection.meet_numbers(found, WHOLE[name])
            return found
        except intersection.Undecided as error:
            raise unsupported("multipleOf", pointer, f"{error} are not supported") from error
    _check_digits(least, at(pointer, "minimum"))
    _check_digits(most, at(pointer, "maximum"))
    return intersection.numbers_between(least, most, above=above, below=below)


def exact_number(value: Any, pointer: str) -> Fraction:
    """A number of a schema, exactly as written."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise unsupported_at(pointer, "it must be a number")
    return Fraction(Decimal(str(value)))


def _bound(schema: JsonObject, pointer: str, plain: str, exclusive: str) -> tuple[Fraction | None, bool]:
    """The tighter of a bound and its exclusive form, which older drafts write as a boolean."""
    value, strict = schema.get(plain), schema.get(exclusive)
    bound = None if value is None else exact_number(value, at(pointer, plain))
    if strict is None or isinstance(strict, bool):
        return bound, bool(strict) and bound is not None
    open_bound = exact_number(strict, at(pointer, exclusive))
    if bound is None:
        return open_bound, True
    tighter = max(bound, open_bound) if plain == "minimum" else min(bound, open_bound)
    return tighter, tighter == open_bound


def _step(schema: JsonObject, pointer: str, *, whole: bool) -> int | None:
    if "multipleOf" not in schema:
        return None
    step = exact_number(schema["multipleOf"], at(pointer, "multipleOf"))
    if step <= 0:
        raise unsupported("multipleOf", pointer, "it must be positive")
    # An integer is a multiple of a fraction p/q in lowest terms exactly where it is one of p.
    if not whole and step.denominator != 1:
        raise unsupported("multipleOf", pointer, "it is not an integer")
    return step.numerator


def _check_digits(bound: Fraction | None, pointer: str) -> None:
    try:
        split_number(abs(bound or Fraction(0)))
    except ValueError as error:
        raise unsupported_at(pointer, str(error)) from error


def read_strings(schema: JsonObject, pointer: str) -> shapes.Shape:
    shortest = read_count(schema, pointer, "minLength") or 0
    longest = read_count(schema, pointer, "maxLength")
    pattern, by_format = schema.get("pattern"), _format_pattern(schema, pointer)
    if pattern is not None and by_format is not None:
        raise unsupported("format", pointer, "the string also has a pattern")
    if pattern is not None and not isinstance(pattern, str):
        raise unsupported("pattern", pointer, "it must be a string")
    keyword, text = ("format", by_format) if pattern is None else ("pattern", pattern)
    if text is None:
        return intersection.string_of(None, shortest, longest)
    try:
        return intersection.string_of(read_pattern(text), shortest, longest)
    except PatternRefused as error:
        raise unsupported(keyword, pointer, f"{error} is not supported in {json_text(text)}") from error
    except intersection.Undecided as error:
        raise unsupported(keyword, pointer, f"{error} make too many cases") from error


def _format_pattern(schema: JsonObject, pointer: str) -> str | None:
    name = schema.get("format")
    if name is None or (isinstance(name, str) and name in NUMBER_FORMATS):
        return None
    if not isinstance(name, str) or name not in PATTERNS:
        raise unsupported("format", pointer, f"unknown format {json_text(name)}")
    return PATTERNS[name]


def read_count(schema: JsonObject, pointer: str, keyword: str) -> int | None:
    """A non-negative integer such as `maxLength`."""
    if keyword not in schema:
        return None
    value = exact_number(schema[keyword], at(pointer, keyword))
    if value.denominator != 1 or value < 0:
        raise unsupported(keyword, pointer, "it must be a non-negative integer")
    return value.numerator


TYPES = ("null", "boolean", "number", "integer", "string", "array", "object")
REFUSED = {
    "if": "a grammar cannot express conditions",
    "not": "a grammar cannot express negation",
    "contains": "a grammar cannot search for an item",
    "minContains": "a grammar cannot search for an item",
    "maxContains": "a grammar cannot search for an item",
    "dependentSchemas": "a grammar cannot express conditions",
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
MAX_PERMUTATIONS = 400
MAX_DEPENDENCIES = 4
DEEPEST = 120
LONGEST_NAME = 200
"""Unlisted names are distinguished from listed ones letter by letter, which is bounded."""


def read_schema(schema: JsonObject | bool, *, label: str = "") -> shapes.ShapeTree:
    """The values that a schema allows. Raises `Unsupported`, with the pointer, for what no grammar can express.

    The label prefixes every name in the tree's table, so that the tables of several schemas can be joined.
    """
    return _SchemaReader(schema, label).tree()


class _SchemaReader:
    """Reads a schema with the targets of its references."""

    def __init__(self, document: JsonObject | bool, label: str) -> None:
        self._document = document
        self._label = label
        self._named: dict[str, shapes.Shape] = {}
        self._open: set[str] = set()
        self._exclusive: list[tuple[tuple[shapes.Shape, ...], str]] = []
        self._intersecting = intersection.Intersecting(self._named)

    def tree(self) -> shapes.ShapeTree:
        root = self._read(self._document, "")
        fitting = intersection.fitting_names(self._named)
        for options, pointer in self._exclusive:
            self._check_exclusive(options, pointer, fitting)
        circle = intersection.circles(self._named)
        if circle is not None:
            raise Unsupported("$ref", circle.removeprefix(self._label), "it refers to itself directly")
        tree = intersection.pruned(shapes.ShapeTree(root=root, named=self._named), fitting)
        if tree.root == shapes.NOTHING:
            raise Unsupported("schema", "", "no value matches it")
        return tree

    def _read(self, schema: Any, pointer: str) -> shapes.Shape:
        if isinstance(schema, bool):
            return shapes.ANYTHING if schema else shapes.NOTHING
        if not isinstance(schema, dict):
            raise Unsupported("schema", pointer, "it must be an object, true or false")
        if pointer.count("/") > DEEPEST:
            raise Unsupported("schema", pointer, "it is nested too deeply")
        found = cast(JsonObject, schema)
        for keyword, why in REFUSED.items():
            lone_if = keyword == "if" and not {"then", "else"} & found.keys()
            if keyword in found and not lone_if and not (keyword == "not" and found["not"] is False):
                raise unsupported(keyword, pointer, why)
        parts = [self._typed(found, pointer), *self._combined(found, pointer)]
        shape = reduce(lambda one, other: self._meet(one, other, pointer), parts)
        return self._meet(self._constants(found, pointer), shape, pointer)

    def _meet(self, one: shapes.Shape, other: shapes.Shape, pointer: str) -> shapes.Shape:
        try:
            return self._intersecting.meet(one, other)
        except intersection.Undecided as error:
            raise Unsupported("allOf", pointer, f"{error} cannot be combined") from error

    def _constants(self, schema: JsonObject, pointer: str) -> shapes.Shape:
        if "const" in schema:
            return shapes.constants_of([_constant(schema["const"], at(pointer, "const"))])
        if "enum" not in schema:
            return shapes.ANYTHING
        values = schema["enum"]
        if not isinstance(values, list):
            raise unsupported("enum", pointer, "it must be an array")
        return shapes.constants_of(_constant(value, at(pointer, "enum")) for value in cast(list[Any], values))

    def _combined(self, schema: JsonObject, pointer: str) -> list[shapes.Shape]:
        """The shapes of references and of the keywords that combine schemas."""
        found: list[shapes.Shape] = []
        if "$ref" in schema:
            found.append(self._reference(schema["$ref"], at(pointer, "$ref")))
        found += self._several(schema, pointer, "allOf")
        if "anyOf" in schema:
            found.append(shapes.any_of(self._several(schema, pointer, "anyOf")))
        if "oneOf" in schema:
            options = tuple(self._several(schema, pointer, "oneOf"))
            self._exclusive.append((options, at(pointer, "oneOf")))
            found.append(shapes.any_of(options))
        return found

    def _several(self, schema: JsonObject, pointer: str, keyword: str) -> list[shapes.Shape]:
        inner = schema.get(keyword, [])
        if not isinstance(inner, list):
            raise unsupported(keyword, pointer, "it must be an array of schemas")
        schemas = cast(list[Any], inner)
        return [self._read(option, at(pointer, keyword, index)) for index, option in enumerate(schemas)]

    def _check_exclusive(self, options: Sequence[shapes.Shape], pointer: str, fitting: set[str]) -> None:
        for one, other in combinations(options, 2):
            try:
                both = self._intersecting.meet(one, other)
            except intersection.Undecided:
                both = shapes.ANYTHING
            if intersection.fits_some(both, fitting):
                raise Unsupported("oneOf", pointer, "a value may match two of its schemas; use `anyOf` if that is fine")

    def _reference(self, reference: Any, pointer: str) -> shapes.Shape:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise Unsupported("$ref", pointer, f"{json_text(reference)} is not in this document; write `#/$defs/…`")
        schema = resolve_pointer(reference, self._document)
        if schema is None:
            raise Unsupported("$ref", pointer, f"{json_text(reference)} was not found")
        target = unquote(reference[1:])
        name = self._label + target
        if name not in self._named and name not in self._open:
            self._open.add(name)
            self._named[name] = self._read(schema, target)
            self._open.remove(name)
        return shapes.Named(name=name)

    def _typed(self, schema: JsonObject, pointer: str) -> shapes.Shape:
        """The shape of the types and their keywords."""
        names = _type_names(schema, pointer)
        if names is None and not any(keyword in schema for keywords in BY_TYPE.values() for keyword in keywords):
            return shapes.ANYTHING
        wanted = names or [name for name in TYPES if name != "integer"]
        return shapes.any_of(self._of_type(name, schema, pointer) for name in TYPES if name in wanted)

    def _of_type(self, name: str, schema: JsonObject, pointer: str) -> shapes.Shape:
        readers: dict[str, Callable[[], shapes.Shape]] = {
            "null": lambda: shapes.NULL,
            "boolean": lambda: shapes.BOOLEANS,
            "number": lambda: read_numbers(schema, pointer, whole=False),
            "integer": lambda: read_numbers(schema, pointer, whole=True),
            "string": lambda: read_strings(schema, pointer),
            "array": lambda: self._arrays(schema, pointer),
            "object": lambda: self._objects(schema, pointer),
        }
        return readers[name]()

    def _arrays(self, schema: JsonObject, pointer: str) -> shapes.Shape:
        tuple_form = isinstance(schema.get("items"), list)
        keyword, behind = ("items", "additionalItems") if tuple_form else ("prefixItems", "items")
        first = self._several(schema, pointer, keyword)
        rest = self._read(schema.get(behind, True), at(pointer, behind))
        fewest, most = read_count(schema, pointer, "minItems") or 0, read_count(schema, pointer, "maxItems")
        found = intersection.array_of(first, rest, fewest, most)
        return self._unique(found, pointer) if schema.get("uniqueItems") is True else found

    def _unique(self, shape: shapes.Shape, pointer: str) -> shapes.Shape:
        """Unique items: every permutation, where the items are few constants."""
        if not isinstance(shape, shapes.Arrays) or (shape.most is not None and shape.most <= 1):
            return shape
        rest = shape.rest
        if shape.first or not isinstance(rest, shapes.Constants):
            raise unsupported("uniqueItems", pointer, "a grammar cannot compare items")
        counts = range(shape.fewest, min(len(rest.texts), shape.most or len(rest.texts)) + 1)
        found: list[str] = []
        for texts in (texts for count in counts for texts in permutations(rest.texts, count)):
            found.append(f"[{','.join(texts)}]")
            if len(found) > MAX_PERMUTATIONS:
                raise unsupported("uniqueItems", pointer, "there are too many permutations")
        return shapes.constants_of(found)

    def _objects(self, schema: JsonObject, pointer: str) -> shapes.Shape:
        location = at(pointer, "properties")
        inner = _mapping(schema.get("properties", {}), "properties", location)
        listed = {name: self._read(value, at(location, name)) for name, value in inner.items()}
        others, names = self._other_properties(schema, pointer, listed)
        required = _required(schema, pointer)
        unlisted = {
            name: others if names is None or says(names, name) else shapes.NOTHING
            for name in required
            if name not in listed
        }
        entries = [
            shapes.Property(name=name, shape=shape, required=name in required)
            for name, shape in {**listed, **unlisted}.items()
        ]
        fewest, most = read_count(schema, pointer, "minProperties") or 0, read_count(schema, pointer, "maxProperties")
        if others != shapes.NOTHING and any(len(entry.name) > LONGEST_NAME for entry in entries):
            why = f"a name has more than {LONGEST_NAME} characters in an open object"
            raise Unsupported("properties", pointer, why)
        found = intersection.object_of(entries, others, names, fewest, most)
        # Unlisted names may repeat, so only the first of them surely counts.
        if isinstance(found, shapes.Objects) and found.others != shapes.NOTHING and found.fewest > len(required) + 1:
            raise unsupported("minProperties", pointer, "unlisted names may repeat")
        return self._with_dependencies(found, schema, pointer)

    def _other_properties(
        self, schema: JsonObject, pointer: str, listed: dict[str, shapes.Shape]
    ) -> tuple[shapes.Shape, Any]:
        """The shape of unlisted properties, and the pattern of their names."""
        others = self._read(schema.get("additionalProperties", True), at(pointer, "additionalProperties"))
        location = at(pointer, "patternProperties")
        patterns = _mapping(schema.get("patternProperties", {}), "patternProperties", location)
        if "propertyNames" in schema and schema["propertyNames"] not in ({}, True):
            raise unsupported("propertyNames", pointer, "write `patternProperties`")
        if not patterns:
            return others, None
        if len(patterns) > 1 or others != shapes.NOTHING:
            raise Unsupported("patternProperties", location, "only one pattern, in a closed object, is supported")
        (pattern, inner), *_ = patterns.items()
        try:
            names = read_pattern(pattern)
        except PatternRefused as error:
            raise Unsupported("patternProperties", at(location, pattern), f"{error} is not supported") from error
        if any(says(names, name) for name in (*listed, *_required(schema, pointer))):
            raise Unsupported("patternProperties", at(location, pattern), "it also matches a listed property")
        return self._read(inner, at(location, pattern)), names

    def _with_dependencies(self, shape: shapes.Shape, schema: JsonObject, pointer: str) -> shapes.Shape:
        """For each property that requires others: the objects without it, and those with all of them."""
        needs = _dependencies(schema, pointer)
        if len(needs) > MAX_DEPENDENCIES:
            raise Unsupported("dependentRequired", pointer, f"there are more than {MAX_DEPENDENCIES} of them")
        for name, needed in needs.items():
            absent = _object_with({name: False})
            present = _object_with(dict.fromkeys((name, *needed), True))
            shape = shapes.any_of(self._meet(shape, case, pointer) for case in (absent, present))
        return shape


def _constant(value: Any, pointer: str) -> str:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise unsupported_at(pointer, "it has a number that JSON cannot express") from error
    text = json_text(map_leaves(value, shapes.whole))
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise unsupported_at(pointer, "it has an unpaired surrogate")
    return text


def _type_names(schema: JsonObject, pointer: str) -> list[str] | None:
    given = schema.get("type")
    if given is None:
        return None
    names: list[Any] = cast(list[Any], given) if isinstance(given, list) else [given]
    wrong = next((name for name in names if name not in TYPES), None)
    if wrong is not None or not names:
        raise unsupported("type", pointer, f"unknown type {json_text(wrong)}")
    return [name for name in names if name != "integer" or "number" not in names]


def _mapping(value: Any, keyword: str, pointer: str) -> JsonObject:
    if not isinstance(value, dict):
        raise Unsupported(keyword, pointer, "it must be an object")
    return cast(JsonObject, value)


def _required(schema: JsonObject, pointer: str) -> list[str]:
    names = schema.get("required", [])
    if not _are_names(names):
        raise unsupported("required", pointer, "it must be an array of strings")
    return list(dict.fromkeys(cast(list[str], names)))


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast(list[Any], value))


def _dependencies(schema: JsonObject, pointer: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for keyword in ("dependentRequired", "dependencies"):
        location = at(pointer, keyword)
        for name, needed in _mapping(schema.get(keyword, {}), keyword, location).items():
            if not _are_names(needed):
                raise Unsupported(keyword, at(location, name), "a grammar cannot express conditions")
            found[name] = [*found.get(name, []), *cast(list[str], needed)]
    return found


def _object_with(presence: dict[str, bool]) -> shapes.Objects:
    """An open object in which properties are required, or absent."""
    entries = [
        shapes.Property(name=name, shape=shapes.ANYTHING if there else shapes.NOTHING, required=there)
        for name, there in presence.items()
    ]
    return shapes.Objects(properties=tuple(entries), others=shapes.ANYTHING)

"""Schema writing: a tree of shapes as a plain JSON Schema.

Everything that combines schemas has been worked out, so what is written uses few keywords, which every engine that
takes JSON Schema reads alike.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import chain, count
from typing import Any

from trysquare.core.json import JsonObject, definition_ref
from trysquare.grammar.schema import shapes
from trysquare.grammar.text.expressions import Expression, json_text
from trysquare.grammar.text.regex import regex_text

EXACT_INTEGERS = 2**53
"""Beyond this, engines that read numbers as floating point would take another bound."""


def schema_of(tree: shapes.ShapeTree) -> JsonObject:
    """The tree as a schema; names become definitions."""
    return SchemaWriter().document(tree)


class SchemaWriter:
    """Writes shapes, and collects the names that they refer to."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def document(self, tree: shapes.ShapeTree) -> JsonObject:
        """A whole schema with its definitions."""
        schema = self.written(tree.root)
        definitions: JsonObject = {}
        waiting = list(self._keys)
        while waiting:
            name = waiting.pop(0)
            definitions[self._keys[name]] = self.written(tree.named[name])
            waiting += [known for known in self._keys if self._keys[known] not in definitions and known not in waiting]
        return {**schema, "$defs": definitions} if definitions else schema

    def _key(self, name: str) -> str:
        if name not in self._keys:
            plain = re.sub(r"[^A-Za-z0-9_]", "_", name.rpartition("/")[2]) or "root"
            taken = set(self._keys.values())
            keys = chain([plain], (f"{plain}_{number}" for number in count(2)))
            self._keys[name] = next(key for key in keys if key not in taken)
        return self._keys[name]

    def written(self, shape: shapes.Shape) -> JsonObject:
        """The schema of one shape."""
        match shape:
            case shapes.Anything():
                return {}
            case shapes.Constants():
                return _constants(shape)
            case shapes.Integers() | shapes.Numbers():
                return _numbers(shape)
            case shapes.Strings():
                pattern = None if shape.pattern is None else pattern_text(shape.pattern)
                bounds = _bounds(minLength=shape.shortest or None, maxLength=shape.longest, pattern=pattern)
                return {"type": "string", **bounds}
            case shapes.Arrays():
                return self._array(shape)
            case shapes.Objects():
                return self._object(shape)
            case shapes.Union(options=options):
                return {"anyOf": [self.written(option) for option in options]} if options else {"not": {}}
            case shapes.Named(name=name):
                return definition_ref(self._key(name))

    def _array(self, shape: shapes.Arrays) -> JsonObject:
        schema: JsonObject = {"type": "array"}
        if shape.first:
            schema["prefixItems"] = [self.written(inner) for inner in shape.first]
        schema["items"] = False if shape.rest == shapes.NOTHING else self.written(shape.rest)
        return {**schema, **_bounds(minItems=shape.fewest or None, maxItems=shape.most)}

    def _object(self, shape: shapes.Objects) -> JsonObject:
        schema: JsonObject = {"type": "object"}
        schema["properties"] = {
            entry.name: False if entry.shape == shapes.NOTHING else self.written(entry.shape)
            for entry in shape.properties
        }
        schema["required"] = [entry.name for entry in shape.properties if entry.required]
        others = False if shape.others == shapes.NOTHING else self.written(shape.others)
        if shape.names is not None:
            schema["patternProperties"] = {pattern_text(shape.names): others}
            others = False
        schema["additionalProperties"] = others
        return {**schema, **_bounds(minProperties=shape.fewest or None, maxProperties=shape.most)}


def _constants(shape: shapes.Constants) -> JsonObject:
    values = list(shape.values)
    if shape.texts == ("null",):
        return {"type": "null"}
    if set(shape.texts) == {"true", "false"}:
        return {"type": "boolean"}
    return {"const": values[0]} if len(values) == 1 else {"enum": values}


def _numbers(shape: shapes.Integers | shapes.Numbers) -> JsonObject:
    if isinstance(shape, shapes.Integers):
        step = shape.step if shape.step != 1 else None
        return {"type": "integer", **_bounds(minimum=shape.least, maximum=shape.most, multipleOf=step)}
    low = "exclusiveMinimum" if shape.above else "minimum"
    high = "exclusiveMaximum" if shape.below else "maximum"
    return {"type": "number", **_bounds(**{low: _number(shape.least), high: _number(shape.most)})}


def _number(value: Fraction | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)


def pattern_text(expression: Expression) -> str:
    """A pattern in the few forms that ECMAScript, Python and Rust share."""
    return f"^(?:{regex_text(expression, point=_shared_point)})$"


def _shared_point(code: int) -> str:
    char = chr(code)
    if code < 128:
        return char if char in " !\"#%&',:;<=>@_`~" else f"\\{char}" if 32 < code < 127 else f"\\x{code:02x}"
    return char if code in (0xA0, 0x3000) or code > 0xFFFF else f"\\u{code:04x}"


def _bounds(**given: Any) -> JsonObject:
    return {keyword: value for keyword, value in given.items() if value is not None}


def is_plain(tree: shapes.ShapeTree) -> bool:
    """Whether llguidance reads the written schema exactly as it is meant here."""
    return all(_is_plain(shape) for shape in (tree.root, *tree.named.values()))


def _is_plain(shape: shapes.Shape) -> bool:
    match shape:
        case shapes.Constants(texts=texts):
            # It knows further ways to write escapes, and writes fractions in a way of its own.
            return not any("\\" in text or re.search(r"(?<!\")[0-9](?:\.|e)", text) for text in texts)
        case shapes.Integers():
            return shape.step == 1 and all(abs(bound or 0) < EXACT_INTEGERS for bound in (shape.least, shape.most))
        case shapes.Numbers() | shapes.Anything():
            # It lets exponents be of any length, and 1e999 is infinite.
            return False
        case shapes.Strings():
            return shape.pattern is None
        case shapes.Arrays():
            return all(map(_is_plain, (*shape.first, shape.rest)))
        case shapes.Objects():
            # Under names that are not listed it allows listed ones, written with escapes.
            closed = shape.others == shapes.NOTHING and not shape.fewest and shape.most is None
            return closed and all(
                "\\" not in json_text(each.name) and _is_plain(each.shape) for each in shape.properties
            )
        case shapes.Union(options=options):
            return all(map(_is_plain, options))
        case shapes.Named():
            return True

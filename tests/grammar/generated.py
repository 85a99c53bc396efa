"""Generated schemas of every kind that tools have, each with instances that fit it and some that do not."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from random import Random
from typing import Any

from trysquare.core.json import JsonObject

WORDS = ("path", "limit", "query", "a", "A", "ä", "in valid", 'quo"te', "x/y", "~", "", "名", "line_no", "back\\slash")
PATTERNS = {
    "^[a-z]+$": ("abc", "ABC"),
    "^[A-Z]{2,4}-[0-9]+$": ("AB-12", "A-12"),
    "^(foo|bar)(/baz)?$": ("foo/baz", "foo/"),
    "ab": ("xaby", "ba"),
    r"^\d{3}[ \-]\w*$": ("123-a_9", "12-a"),
    r"^[^\"\\\n]{1,5}$": ("a'b", 'a"b'),
    r"\.py$": ("main.py", "main.pyc"),
}
FORMATS = {"date": ("2024-02-29", "2023-02-29"), "uuid": ("9b2e0c1a-0000-4abc-8def-0123456789ab", "9b2e")}


class NoInstance(Exception):
    """Nothing fits, or nothing that was tried."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A schema with instances."""

    schema: JsonObject
    instances: tuple[Any, ...]
    """Values near the schema; the validator says which of them fit."""


def cases(seed: int, count: int) -> list[Case]:
    """So many cases, always the same for a seed."""
    return [_Maker(Random(f"{seed}/{number}")).case() for number in range(count)]


class _Maker:
    """Makes one schema with a document's definitions."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._definitions: JsonObject = {}
        self._recursive = False

    def case(self) -> Case:
        schema = self._object(depth=self._random.choice((1, 2, 2, 3)))
        if self._definitions:
            schema["$defs"] = self._definitions
        instances = [self._instance(schema, schema) for _ in range(4)]
        wrong = [self._mutated(instance) for instance in instances for _ in range(3)]
        return Case(schema=schema, instances=(*instances, *wrong))

    def _value(self, depth: int) -> JsonObject:
        kinds = [self._string, self._integer, self._number, self._enum, self._string, self._boolean, self._constant]
        if depth > 0:
            inner = depth - 1
            kinds += [
                lambda: self._object(inner),
                lambda: self._array(inner),
                lambda: self._array(inner),
                lambda: self._union(inner),
                lambda: self._reference(inner),
                lambda: self._intersection(inner),
                lambda: self._tuple(inner),
                dict[str, Any],
            ]
        return self._random.choice(kinds)()

    def _string(self) -> JsonObject:
        kind = self._random.randrange(8)
        if kind == 0:
            return {"type": "string", "pattern": self._random.choice(list(PATTERNS))}
        if kind == 1:
            return {"type": "string", "format": self._random.choice(list(FORMATS))}
        if kind == 2:
            low = self._random.randrange(4)
            return {"type": "string", "minLength": low, "maxLength": low + self._random.randrange(6)}
        if kind == 3:
            return {"type": ["string", "null"], "maxLength": self._random.randrange(1, 9)}
        return {"type": "string", "description": "a text"}

    def _integer(self) -> JsonObject:
        low = self._random.choice((-1000, -17, -1, 0, 1, 5, 99, 12345))
        schema: JsonObject = {"type": "integer"}
        if self._random.random() < 0.6:
            schema[self._random.choice(("minimum", "exclusiveMinimum"))] = low
        if self._random.random() < 0.6:
            schema[self._random.choice(("maximum", "exclusiveMaximum"))] = low + self._random.choice((3, 8, 100, 98765))
        if self._random.random() < 0.1:
            schema = {"type": "integer", "multipleOf": self._random.choice((2, 5, 10, 25, 100))}
        return schema

    def _number(self) -> JsonObject:
        low = self._random.choice((-2.75, -1, 0, 0.125, 0.5, 3, 10.01, 99.9))
        schema: JsonObject = {"type": "number"}
        if self._random.random() < 0.4:
            schema[self._random.choice(("minimum", "exclusiveMinimum"))] = low
        if self._random.random() < 0.4:
            high = round(low + self._random.choice((0.01, 0.5, 1, 12.345)), 4)
            schema[self._random.choice(("maximum", "exclusiveMaximum"))] = high
        return schema

    def _enum(self) -> JsonObject:
        values: list[Any] = ["read", "write", "a\nb", 'q"', 1, 2.5, True, None, "ü", "", -3, ["x"], {"k": 1}]
        chosen = self._random.sample(values, self._random.randrange(1, 5))
        return {"enum": chosen}

    def _boolean(self) -> JsonObject:
        return {"type": "boolean"}

    def _constant(self) -> JsonObject:
        return {"const": self._random.choice(["on", 0, None, "\t", [1, 2]])}

    def _object(self, depth: int) -> JsonObject:
        names = self._random.sample(WORDS, self._random.randrange(0, 6))
        properties = {name: self._value(depth) for name in names}
        schema: JsonObject = {"type": "object", "properties": properties}
        required = [name for name in names if self._random.random() < 0.5]
        if required or self._random.random() < 0.5:
            schema["required"] = required
        closed = self._random.randrange(4)
        if closed < 2:
            schema["additionalProperties"] = False
        elif closed == 2:
            schema["additionalProperties"] = self._value(0)
        if self._random.random() < 0.1:
            schema["minProperties"] = min(len(required) + 1, max(1, len(names)))
        if self._random.random() < 0.1:
            schema["maxProperties"] = len(required) + self._random.randrange(1, 3)
        if len(names) > 1 and self._random.random() < 0.1:
            schema["dependentRequired"] = {names[0]: [names[1]]}
        return schema

    def _array(self, depth: int) -> JsonObject:
        schema: JsonObject = {"type": "array", "items": self._value(depth)}
        if self._random.random() < 0.4:
            schema["minItems"] = self._random.randrange(3)
        if self._random.random() < 0.4:
            schema["maxItems"] = schema.get("minItems", 0) + self._random.randrange(1, 4)
        if self._random.random() < 0.1:
            schema = {"type": "array", "items": {"enum": ["a", "b", 3]}, "uniqueItems": True}
        return schema

    def _tuple(self, depth: int) -> JsonObject:
        first = [self._value(depth) for _ in range(self._random.randrange(1, 3))]
        return {"type": "array", "prefixItems": first, "items": self._random.choice((False, {"type": "integer"}))}

    def _union(self, depth: int) -> JsonObject:
        if self._random.random() < 0.4:
            return {"oneOf": [self._action(name, depth) for name in self._random.sample(("go", "stop", "turn"), 2)]}
        return {"anyOf": [self._value(depth) for _ in range(self._random.randrange(1, 4))]}

    def _action(self, name: str, depth: int) -> JsonObject:
        schema = self._object(depth)
        schema["properties"] = {"action": {"const": name}, **schema["properties"]}
        schema["required"] = ["action", *schema.get("required", [])]
        return schema

    def _intersection(self, depth: int) -> JsonObject:
        kind = self._random.randrange(6)
        if kind == 0:
            return {"allOf": [self._string(), {"maxLength": self._random.randrange(2, 12)}, {"minLength": 1}]}
        if kind == 1:
            return {"allOf": [{"type": "integer", "multipleOf": 4}, {"minimum": -4, "maximum": 25}]}
        if kind < 4:
            return {"allOf": [self._integer(), {"minimum": self._random.randrange(-5, 5)}]}
        return {"allOf": [self._object(depth), {"required": [self._random.choice(WORDS)]}]}

    def _reference(self, depth: int) -> JsonObject:
        name = f"d{len(self._definitions)}"
        self._definitions[name] = {}
        if self._random.random() < 0.4:
            again = {"type": "array", "items": {"$ref": f"#/$defs/{name}"}, "maxItems": 2}
            self._definitions[name] = {"type": "object", "properties": {"again": again, "x": self._value(0)}}
        else:
            self._definitions[name] = self._value(depth)
        return {"$ref": f"#/$defs/{name}"}

    def _instance(self, schema: Any, document: JsonObject, depth: int = 0) -> Any:
        """A value made after the schema; mostly it fits."""
        return _InstanceMaker(self._random, document).make(schema, depth)

    def _mutated(self, value: Any) -> Any:
        """The value with one thing changed somewhere."""
        if isinstance(value, dict) and value and self._random.random() < 0.8:
            changed = dict(value)
            name = self._random.choice(list(changed))
            way = self._random.randrange(4)
            if way == 0:
                del changed[name]
            elif way == 1:
                changed[self._random.choice(("extra", *WORDS))] = self._random.choice((1, "y", None))
            else:
                changed[name] = self._mutated(changed[name])
            return changed
        if isinstance(value, list) and value and self._random.random() < 0.7:
            place = self._random.randrange(len(value))
            return [*value[:place], self._mutated(value[place]), *value[place + 1 :]]
        return self._random.choice((None, True, 0, -1, 7, 1.5, "", "zz", [], {}, [1], {"k": 2}, 123456, "AB-1"))


class _InstanceMaker:
    """Makes values after a schema."""

    def __init__(self, random: Random, document: JsonObject) -> None:
        self._random, self._document = random, document

    def make(self, schema: Any, depth: int) -> Any:
        if schema in (True, {}) or schema is False:
            return self._random.choice((None, 1, "any", [], {"free": [True]}))
        if "$ref" in schema:
            return self.make(self._document["$defs"][schema["$ref"].rpartition("/")[2]], depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self.make(self._random.choice(schema[keyword]), depth)
        if "allOf" in schema:
            return self._met(schema["allOf"], depth)
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        return self._typed(schema, depth)

    def _met(self, parts: list[Any], depth: int) -> Any:
        value = self.make(parts[0], depth)
        if isinstance(value, dict):
            return {**value, **{name: value.get(name, 1) for name in parts[1].get("required", [])}}
        return max(value, parts[1].get("minimum", value)) if isinstance(value, int) else value

    def _typed(self, schema: JsonObject, depth: int) -> Any:
        kind = schema.get("type", "object")
        kind = self._random.choice(kind) if isinstance(kind, list) else kind
        makers = {"string": self._string, "integer": self._integer, "number": self._number, "array": self._array}
        if kind in makers:
            return makers[kind](schema, depth)
        if kind == "object":
            return self._object(schema, depth)
        return None if kind == "null" else self._random.random() < 0.5

    def _string(self, schema: JsonObject, depth: int) -> str:
        if "pattern" in schema:
            return PATTERNS[schema["pattern"]][self._random.random() < 0.1]
        if "format" in schema:
            return FORMATS[schema["format"]][self._random.random() < 0.1]
        length = self._random.randrange(schema.get("minLength", 0), schema.get("maxLength", 9) + 1)
        letters = string.ascii_letters + string.digits + ' "\\\n\t\x01\x7fäß名😀/{}[],:'
        return "".join(self._random.choice(letters) for _ in range(length))

    def _integer(self, schema: JsonObject, depth: int) -> int:
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 200))
        step = schema.get("multipleOf", 1)
        return (
            self._random.choice((low, low + 1, high, high - 1, self._random.randint(min(low, high), high)))
            // step
            * step
        )

    def _number(self, schema: JsonObject, depth: int) -> float:
        low = schema.get("minimum", schema.get("exclusiveMinimum", -3))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 20))
        return self._random.choice(
            (low, high, round((low + high) / 2, 6), 1e-7, 2.5e20, self._random.uniform(low, high))
        )

    def _array(self, schema: JsonObject, depth: int) -> list[Any]:
        first = [self.make(inner, depth + 1) for inner in schema.get("prefixItems", [])]
        if schema.get("items") is False or depth > 4:
            return first
        low = schema.get("minItems", 0)
        count = self._random.randrange(low, schema.get("maxItems", low + 2) + 1)
        return [*first, *(self.make(schema["items"], depth + 1) for _ in range(count))]

    def _object(self, schema: JsonObject, depth: int) -> JsonObject:
        required = schema.get("required", [])
        value = {
            name: self.make(inner, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or (depth < 5 and self._random.random() < 0.6)
        }
        others = schema.get("additionalProperties", True)
        if others is not False and self._random.random() < 0.3:
            value[self._random.choice(("other", "zz", "lim"))] = self.make(others, depth + 1)
        items = list(value.items())
        self._random.shuffle(items)
        return dict(items)


def as_json(value: Any) -> str:
    """A value as text, for messages."""
    return json.dumps(value, ensure_ascii=False)

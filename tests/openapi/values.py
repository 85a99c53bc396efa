"""Random values of a JSON Schema, for arguments of tools and answers of an API."""

from __future__ import annotations

import contextlib
import random
import re
import warnings
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies
from hypothesis.errors import HypothesisException, NonInteractiveExampleWarning
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from referencing.exceptions import Unresolvable

FORMATS = {
    "date": "2026-02-03", "date-time": "2026-02-03T04:05:06Z", "time": "04:05:06Z", "duration": "P1D",
    "email": "a@example.com", "uuid": "12345678-1234-4234-8234-123456789abc", "uri": "https://example.com/a?b=c",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.com", "byte": "aGk=", "binary": "aGk=",
}  # fmt: skip
"""A value of each format that a server might check."""
WORDS = ("tea", "a b", "ä/ö", "50%", "x&y=z", "#1", "a,b", "it's", "c+d", "semi;colon", "q?", "日本")
"""Texts with what path, query and form encode."""
_MAX_DEPTH = 5
_CANDIDATES = (
    *FORMATS.values(),
    *WORDS,
    "A1",
    "AB1",
    "EUR",
    "de",
    "US",
    "en-US",
    "12",
    "1",
    "ABCDEFGH",
    "0123456789",
    "#aabbcc",
    "/a/b",
    "a_b",
)
"""Texts that are tried on a pattern before one is made of it, which is slow."""


class NoValue(Exception):
    """No value of the schema was found."""


class Values:
    """Values of the schemas of one document, the same for one seed."""

    def __init__(self, root: Mapping[str, Any], seed: int, *, plain: bool = False) -> None:
        self._root, self._random, self._plain = root, random.Random(seed), plain

    def of(self, schema: Any, *, fill: float = 0.5) -> Any:
        """A valid value, with each optional property by the chance `fill`. Raises `NoValue`."""
        validator = validator_of(self._root, schema)
        for _ in range(20):
            value = self._any(schema, 0, fill)
            if fits(validator, value):
                return value
        raise NoValue(str(schema)[:200])

    def _any(self, schema: Any, depth: int, fill: float) -> Any:
        if not isinstance(schema, dict) or not schema:
            return self._random.choice([1, "any", True])
        schema = self._merged(schema, 0)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if choices := schema.get("anyOf") or schema.get("oneOf"):
            beside = {key: part for key, part in schema.items() if key not in ("anyOf", "oneOf")}
            chosen = self._random.choice(choices) if depth < _MAX_DEPTH else min(choices, key=lambda one: len(str(one)))
            return self._any({"allOf": [beside, chosen]} if beside.keys() - {"description"} else chosen, depth, fill)
        return self._typed(schema, depth, fill)

    def _typed(self, schema: Any, depth: int, fill: float) -> Any:
        kind = schema.get("type") or (
            "object" if "properties" in schema else "array" if "items" in schema else "string"
        )
        if isinstance(kind, list):
            kinds = [each for each in kind if each != "null"] if len(kind) > 1 and self._random.random() < 0.8 else kind
            kind = self._random.choice(kinds)
        if kind == "object":
            return self._object(schema, depth, fill)
        if kind == "array":
            least = schema.get("minItems", 0)
            count = max(least, min(schema.get("maxItems", 3), self._random.randint(1, 3) if depth < _MAX_DEPTH else 0))
            return [self._any(schema.get("items"), depth + 1, fill) for _ in range(count)]
        if kind in ("integer", "number"):
            return self._number(schema, kind)
        return (
            {"boolean": self._random.random() < 0.5, "null": None}.get(kind) if kind != "string" else self._text(schema)
        )

    def _object(self, schema: Any, depth: int, fill: float) -> Any:
        required = set(schema.get("required", ()))
        made = {
            name: self._any(part, depth + 1, fill)
            for name, part in schema.get("properties", {}).items()
            if name in required or (depth < _MAX_DEPTH and self._random.random() < fill)
        }
        if not made and schema.get("properties") and depth:
            # Without a name at all, path and query cannot hold it.
            name, part = next(iter(schema["properties"].items()))
            made[name] = self._any(part, depth + 1, fill)
        others = schema.get("additionalProperties")
        made |= {name: self._any(others, depth + 1, fill) for name in required if name not in made}
        if isinstance(others, dict) or (others is True and not made):
            made |= {
                f"key{number}": self._any(others, depth + 1, fill) for number in range(schema.get("minProperties", 1))
            }
        return made

    def _number(self, schema: Any, kind: str) -> Any:
        low, high = (
            schema.get("minimum", schema.get("exclusiveMinimum")),
            schema.get("maximum", schema.get("exclusiveMaximum")),
        )
        low = (0 if high is None or high > 0 else high - 100) if low is None else low
        high = low + 100 if high is None else high
        step = schema.get("multipleOf")
        if step:
            return step * self._random.randint(-(-low // step), max(-(-low // step), high // step))
        return (
            self._random.randint(int(-(-low // 1)), int(high // 1))
            if kind == "integer" or high - low > 2
            else low + (high - low) / 2
        )

    def _text(self, schema: Any) -> str:
        if "pattern" in schema:
            return self._matching(schema["pattern"])
        if schema.get("format") in FORMATS:
            return FORMATS[schema["format"]]
        text = "word" if self._plain else self._random.choice(WORDS)
        least, most = schema.get("minLength", 0), schema.get("maxLength", 10_000)
        return (text * (1 + least // len(text)))[: max(least, min(len(text), most))]

    def _matching(self, pattern: str) -> str:
        with contextlib.suppress(re.error):
            if found := [text for text in _CANDIDATES if re.search(pattern, text)]:
                return self._random.choice(found)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NonInteractiveExampleWarning)
                found = strategies.from_regex(
                    pattern, alphabet=strategies.characters(max_codepoint=126, min_codepoint=32)
                )
                # Python's `$` also matches before a final line break, which that of JSON Schema does not.
                return found.example().removesuffix("\n")
        except (HypothesisException, ValueError, OverflowError):
            return "a"

    def _merged(self, schema: Any, hops: int) -> Any:
        """The schema with what it refers to, and its `allOf`, in one."""
        if hops > 30 or not isinstance(schema, dict):
            return {}
        if "$ref" in schema:
            beside = {key: part for key, part in schema.items() if key != "$ref"}
            return self._merged({**resolved(self._root, schema["$ref"]), **beside}, hops + 1)
        if not schema.get("allOf"):
            return schema
        made = {key: part for key, part in schema.items() if key != "allOf"}
        for each in schema["allOf"]:
            for key, part in self._merged(each, hops + 1).items():
                if key == "properties":
                    made[key] = {**part, **made.get(key, {})}
                elif key == "required":
                    made[key] = [*made.get(key, ()), *part]
                elif key in ("anyOf", "oneOf") and key in made:
                    made[key] = [{"allOf": [one, other]} for one in made[key] for other in part]
                else:
                    made.setdefault(key, part)
        return made


def resolved(root: Mapping[str, Any], reference: str) -> Any:
    """What a reference leads to in its document."""
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        part = part.replace("%7B", "{").replace("%7D", "}").replace("~1", "/").replace("~0", "~")
        found = found[int(part)] if isinstance(found, list) else found[part]
    return found


def validator_of(root: Mapping[str, Any], schema: Any) -> Validator:
    """A validator of a schema whose references lead into a document."""
    parts = {key: root[key] for key in ("components", "$defs", "paths") if key in root}
    return Draft202012Validator({**parts, **schema} if isinstance(schema, dict) else schema)


def fits(validator: Validator, value: Any) -> bool:
    """Whether a value is valid; a schema that is none itself takes everything."""
    try:
        return validator.is_valid(value)
    except (SchemaError, Unresolvable, RecursionError):
        return True

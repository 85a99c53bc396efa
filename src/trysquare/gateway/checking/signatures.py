"""Signatures: a tool in one line, `create_issue(owner, repo, title, body?, labels?: str[]) - Open an issue`.

A fifth of the tokens of a schema, and all that a call needs. Text is the type that needs no word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from trysquare.catalog.schema_parts import as_list, as_object, one_line_json, properties_of, required_of
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text
from trysquare.gateway.checking.local_refs import resolved
from trysquare.gateway.server import Definition

LONGEST = 700
"""Characters of a whole signature; a server's own texts may be of any length."""
_LINE, _NAME, _CHOICES, _DEFAULT, _TYPE = 140, 64, 8, 40, 120
_DEPTH = 2
_WORDS = {"string": "str", "integer": "int", "number": "num", "boolean": "bool", "object": "obj", "array": "list"}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def signature(definition: Definition) -> str:
    """One line about a tool: how it is called, and what it is for."""
    called = f"{_name(definition.name)}({inputs_text(definition)})"
    purpose = one_line(definition.description or definition.title or "")
    return short(f"{called} - {purpose}" if purpose else called, LONGEST + _LINE)


def inputs_text(definition: Definition) -> str:
    """The inputs of a tool, required ones first: `owner, repo, labels?: str[] = []`."""
    whole = as_object(definition.input_schema)
    properties, required = properties_of(resolved(whole, whole)), set(required_of(resolved(whole, whole)))
    ordered = sorted(properties.items(), key=lambda item: item[0] not in required)
    parts = [_parameter(name, part, name in required, whole) for name, part in ordered]
    return _joined(parts, LONGEST)


def one_line(text: str) -> str:
    """The first sentence of a text, on one line, without what cannot be seen."""
    line = next((line for line in cleaned_text(text[:2_000]).splitlines() if line.strip()), "")
    first = _SENTENCE_END.split(" ".join(line.split()), maxsplit=1)[0]
    return short(first, _LINE).removesuffix(".")


def schema_text(schema: Any, whole: JsonObject | None = None, depth: int = _DEPTH) -> str:
    """A schema's type in a few letters: `str`, `int[]`, `"open"|"closed"`, `{path, mode?: int}`."""
    known = resolved(as_object(schema), whole or {})
    return short(_type(known, whole or {}, depth), _TYPE)


def _type(schema: JsonObject, whole: JsonObject, depth: int) -> str:
    if "const" in schema:
        return _value(schema["const"])
    if choices := as_list(schema.get("enum")):
        return _choices(choices)
    options = as_list(schema.get("anyOf")) or as_list(schema.get("oneOf"))
    if options:
        return _union(schema_text(option, whole, depth - 1) for option in options[:_CHOICES] if not _is_null(option))
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(_type({**schema, "type": one}, whole, depth) for one in as_list(kind) if one != "null")
    if kind == "array":
        return _array(schema, whole, depth)
    if properties_of(schema) and depth > 0:
        return _object(schema, whole, depth)
    return _WORDS.get(str(kind), "any")


def _array(schema: JsonObject, whole: JsonObject, depth: int) -> str:
    if depth <= 0 or not as_object(schema.get("items")):
        return "list"
    inner = schema_text(schema["items"], whole, depth - 1)
    return f"({inner})[]" if "|" in inner else f"{inner}[]"


def _object(schema: JsonObject, whole: JsonObject, depth: int) -> str:
    required = set(required_of(schema))
    parts = [_parameter(name, part, name in required, whole, depth - 1) for name, part in properties_of(schema).items()]
    return "{" + _joined(parts, _TYPE - 10) + "}"


def _parameter(name: str, schema: JsonObject, required: bool, whole: JsonObject, depth: int = _DEPTH) -> str:
    kind = schema_text(schema, whole, depth)
    typed = "" if kind == "str" else f": {kind}"
    default = "" if schema.get("default") is None else f" = {_value(schema['default'])}"
    return f"{_name(name)}{'' if required else '?'}{typed}{default}"


def _joined(parts: list[str], limit: int) -> str:
    """The parts with commas between; those past the limit are counted."""
    kept: list[str] = []
    for part in parts:
        limit -= len(part) + 2
        if limit < 0:
            return ", ".join([*kept, f"… {len(parts) - len(kept)} more"])
        kept.append(part)
    return ", ".join(kept)


def _union(options: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(options)) or "null"


def _choices(choices: list[Any]) -> str:
    more = [f"… {len(choices) - _CHOICES} more"] if len(choices) > _CHOICES else []
    return "|".join([*(_value(choice) for choice in choices[:_CHOICES]), *more])


def _is_null(schema: Any) -> bool:
    return as_object(schema).get("type") == "null"


def _value(value: Any) -> str:
    return short(cleaned_text(one_line_json(value)), _DEFAULT)


def _name(name: str) -> str:
    return short(" ".join(cleaned_text(name).split()), _NAME)

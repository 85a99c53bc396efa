"""Schemas as text: types in a few words or letters, the inputs of a tool in one line, arguments as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from trysquare.core.json import (
    JsonObject,
    JsonPath,
    as_list,
    as_object,
    one_line_json,
    properties_of,
    required_of,
    resolve_ref,
)
from trysquare.core.text import truncate
from trysquare.core.untrusted import cleaned_text

LONGEST = 700
"""Characters of a whole signature; a server's own texts may be of any length."""
LINE = 140
_NAME, _CHOICES, _DEFAULT, _TYPE = 64, 8, 40, 120
_DEPTH = 2
_WORDS = {"string": "str", "integer": "int", "number": "num", "boolean": "bool", "object": "obj", "array": "list"}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def inputs_text(schema: Any) -> str:
    """The inputs of a tool, required ones first: `owner, repo, labels?: str[] = []`.

    Alternatives follow as `{a: int}|{b}`, and a map of any names as `[name]: int`.
    """
    whole = as_object(schema)
    root = resolve_ref(whole, whole)
    members = [root, *(resolve_ref(as_object(part), whole) for part in as_list(root.get("allOf")))]
    properties = {name: part for member in reversed(members) for name, part in properties_of(member).items()}
    required = {name for member in members for name in required_of(member)}
    ordered = sorted(properties.items(), key=lambda item: item[0] not in required)
    parts = [_parameter(name, part, name in required, whole) for name, part in ordered]
    for member in members:
        if options := as_list(member.get("anyOf")) or as_list(member.get("oneOf")):
            parts.append(_union(_alternative(option, whole) for option in options[:_CHOICES]))
        parts.extend(f"[name]: {schema_text(values, whole)}" for values in _any_names(member))
    return _joined(parts, LONGEST)


def _alternative(option: Any, whole: JsonObject) -> str:
    """One way to fill in a tool's inputs; one without properties of its own names those that it asks for."""
    known = resolve_ref(as_object(option), whole)
    if properties_of(known):
        return _object(known, whole, _DEPTH)
    return "{" + ", ".join(shown_name(name) for name in required_of(known)) + "}"


def _any_names(schema: JsonObject) -> list[JsonObject]:
    """The schemas of values under names that the caller chooses."""
    named = [*as_object(schema.get("patternProperties")).values(), schema.get("additionalProperties")]
    return [known for known in map(as_object, named) if known]


def one_line(text: str) -> str:
    """The first sentence of a text, on one line, without what cannot be seen."""
    line = next((line for line in cleaned_text(text[:2_000]).splitlines() if line.strip()), "")
    first = _SENTENCE_END.split(" ".join(line.split()), maxsplit=1)[0]
    return truncate(first, LINE).removesuffix(".")


def schema_text(schema: Any, whole: JsonObject | None = None, depth: int = _DEPTH) -> str:
    """A schema's type in a few letters: `str`, `int[]`, `"open"|"closed"`, `{path, mode?: int}`."""
    known = resolve_ref(as_object(schema), whole or {})
    return truncate(_type(known, whole or {}, depth), _TYPE)


def _type(schema: JsonObject, whole: JsonObject, depth: int) -> str:
    if "const" in schema:
        return _value(schema["const"])
    if choices := as_list(schema.get("enum")):
        return _choices(choices)
    options = as_list(schema.get("anyOf")) or as_list(schema.get("oneOf"))
    if options:
        shown = [option for option in options[:_CHOICES] if as_object(option).get("type") != "null"]
        return _union(schema_text(option, whole, depth - 1) for option in shown)
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
    return f"{shown_name(name)}{'' if required else '?'}{typed}{default}"


def _joined(parts: list[str], limit: int) -> str:
    """The parts joined by commas; those past the limit are counted."""
    shown: list[str] = []
    for part in parts:
        limit -= len(part) + 2
        if limit < 0:
            return ", ".join([*shown, f"… {len(parts) - len(shown)} more"])
        shown.append(part)
    return ", ".join(shown)


def _union(options: Iterable[str]) -> str:
    return "|".join(dict.fromkeys(options)) or "null"


def _choices(choices: list[Any]) -> str:
    more = [f"… {len(choices) - _CHOICES} more"] if len(choices) > _CHOICES else []
    return "|".join([*(_value(choice) for choice in choices[:_CHOICES]), *more])


def _value(value: Any) -> str:
    return truncate(cleaned_text(one_line_json(value)), _DEFAULT)


def path_text(path: JsonPath) -> str:
    """A path as people write it: `files[0].path`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return truncate(cleaned_text(text.removeprefix(".")))


def shown_name(name: str) -> str:
    """A name on one line, cleaned and shortened."""
    return truncate(" ".join(cleaned_text(name).split()), _NAME)


def schema_markdown(schema: JsonObject) -> str:
    required = set(required_of(schema))
    lines = [_argument_line(name, part, name in required) for name, part in properties_of(schema).items()]
    return "## Arguments\n\n" + ("\n".join(lines) or "None.")


def _argument_line(name: str, schema: JsonObject, required: bool) -> str:
    need = "required" if required else "optional"
    default = f", default {schema['default']!r}" if schema.get("default") is not None else ""
    description = f": {schema['description']}" if schema.get("description") else ""
    return f"- `{name}` ({type_text(schema)}, {need}{default}){description}"


def type_text(schema: Any) -> str:
    """A schema's type in a few words: `string`, `"warm" | "formal"`, `list of integer`; `any` for a malformed one."""
    known = as_object(schema)
    if "const" in known:
        return _quoted(known["const"])
    if isinstance(choices := known.get("enum"), list):
        return " | ".join(_quoted(choice) for choice in cast(list[Any], choices))
    if isinstance(options := known.get("anyOf", known.get("oneOf")), list):
        return " | ".join(type_text(option) for option in cast(list[Any], options))
    if isinstance(fixed := known.get("prefixItems"), list):
        return f"[{', '.join(type_text(item) for item in cast(list[Any], fixed))}]"
    if known.get("type") == "array":
        return f"list of {type_text(known.get('items'))}"
    if "$ref" in known:
        return str(known["$ref"]).rsplit("/", 1)[-1]
    return str(known.get("type", "any"))


def _quoted(choice: Any) -> str:
    return (
        f'"{choice}"' if isinstance(choice, str) else str(choice).lower() if isinstance(choice, bool) else str(choice)
    )

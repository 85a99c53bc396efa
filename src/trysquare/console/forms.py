"""The schema of a tool as a form, and what was filled in as arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from trysquare.core.json import JsonObject, as_object

Kind: TypeAlias = Literal["text", "number", "choice", "lines", "object", "json"]
_DEEPEST = 4
"""Objects inside of objects that are drawn; what is deeper is written as JSON."""
_PREFIX = "arg"
_REFERENCE = "#/$defs/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One value of a field: as JSON, and as it is shown."""

    value: str
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One field of a form. `name` is that of the form, with the place of the value in the arguments."""

    name: str
    label: str
    kind: Kind
    required: bool
    about: str = ""
    type: str = ""
    """What the schema takes, in a few words."""
    value: str = ""
    choices: tuple[Choice, ...] = ()
    fields: tuple[Field, ...] = ()
    is_text: bool = False
    """Whether the items of a list are texts, which need no quotes."""
    is_long: bool = False


def form_fields(schema: JsonObject, values: JsonObject | None = None) -> tuple[Field, ...]:
    """The fields of a tool's arguments, filled with values."""
    return tuple(_Reader(as_object(schema.get("$defs"))).fields(schema, values or {}, _PREFIX, 0))


def read_form(fields: Sequence[Field], given: Mapping[str, str]) -> JsonObject:
    """The arguments of a filled form. An optional field that was left empty is not sent."""
    found: JsonObject = {}
    for field in fields:
        if field.kind == "object":
            inner = read_form(field.fields, given)
            if inner or field.required:
                found[field.label] = inner
            continue
        text = given.get(field.name, "")
        if text or (field.required and field.kind == "text"):
            found[field.label] = _value(field, text)
    return found


def _value(field: Field, text: str) -> Any:
    if field.kind == "text":
        return text
    if field.kind == "lines":
        lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
        return lines if field.is_text else [_parsed(line) for line in lines]
    return _parsed(text)


def _parsed(text: str) -> Any:
    """A value in JSON; what is none is sent as the text that it is, so that the tool says what is wrong."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class _Reader:
    def __init__(self, definitions: JsonObject) -> None:
        self._definitions = definitions

    def fields(self, schema: JsonObject, values: JsonObject, place: str, depth: int) -> Iterator[Field]:
        required = schema.get("required", ())
        for name, part in as_object(schema.get("properties")).items():
            given = (values[name],) if name in values else ()
            yield self._field(name, as_object(part), given, f"{place}/{name}", name in required, depth)

    def _field(
        self, label: str, part: JsonObject, given: tuple[Any, ...], name: str, required: bool, depth: int
    ) -> Field:
        about = str(part.get("description", ""))
        schema, branches = self._resolved(part)
        about = about or str(schema.get("description", ""))
        default = part.get("default", schema.get("default"))
        value = given[0] if given else default if not required and default is not None else None
        choices = self._choices(branches)
        if choices:
            shown = "" if value is None else json.dumps(value)
            return Field(
                name=name, label=label, kind="choice", required=required, about=about, value=shown, choices=choices
            )
        if len(branches) > 1:
            kinds = " or ".join(dict.fromkeys(str(each.get("type", "any")) for each in branches))
            shown = "" if value is None else json.dumps(value, ensure_ascii=False)
            return Field(
                name=name, label=label, kind="json", required=required, about=about, type=f"JSON: {kinds}", value=shown
            )
        if schema.get("type") == "object" and schema.get("properties") and depth < _DEEPEST:
            inner = tuple(self.fields(schema, as_object(value), name, depth + 1))
            return Field(name=name, label=label, kind="object", required=required, about=about, fields=inner)
        return self._simple(schema, label, name, required, about, value)

    def _simple(self, schema: JsonObject, label: str, name: str, required: bool, about: str, value: Any) -> Field:
        kind = schema.get("type")
        if kind == "string":
            text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
            is_long = "\n" in text or len(text) > 80 or int(schema.get("maxLength", 0) or 0) > 200
            about_type = str(schema.get("format", "text"))
            return Field(
                name=name, label=label, kind="text", required=required, about=about, type=about_type, value=text,
                is_long=is_long,
            )  # fmt: skip
        shown = "" if value is None else json.dumps(value, ensure_ascii=False)
        if kind in ("integer", "number"):
            return Field(
                name=name, label=label, kind="number", required=required, about=about, type=_bounds(schema), value=shown
            )
        items, _ = self._resolved(as_object(schema.get("items")))
        if kind == "array" and items.get("type") in ("string", "integer", "number", "boolean"):
            is_text = items.get("type") == "string"
            found = cast(list[Any], value) if isinstance(value, list) else []
            # A text with several lines needs quotes, which one line each does not.
            if not any(isinstance(each, str) and "\n" in each for each in found):
                lines = "\n".join(each if is_text and isinstance(each, str) else json.dumps(each) for each in found)
                return Field(
                    name=name, label=label, kind="lines", required=required, about=about,
                    type=f"list of {items['type']}, one a line", value=lines, is_text=is_text,
                )  # fmt: skip
        return Field(
            name=name, label=label, kind="json", required=required, about=about, type=f"JSON: {kind or 'any'}",
            value=shown,
        )  # fmt: skip

    def _resolved(self, part: JsonObject, depth: int = 0) -> tuple[JsonObject, list[JsonObject]]:
        """The schema behind references, and the alternatives without null."""
        reference = part.get("$ref")
        if isinstance(reference, str) and depth < 8:
            known = as_object(self._definitions.get(reference.removeprefix(_REFERENCE)))
            return self._resolved({**known, **{key: each for key, each in part.items() if key != "$ref"}}, depth + 1)
        branches = cast(list[Any], part.get("anyOf") or part.get("oneOf") or [])
        if not branches or depth >= 8:
            return part, [part]
        found = [self._resolved(as_object(each), depth + 1)[0] for each in branches]
        found = [each for each in found if each.get("type") != "null"]
        return (found[0], found) if len(found) == 1 else (part, found)

    def _choices(self, branches: Sequence[JsonObject]) -> tuple[Choice, ...]:
        """The values of a field that takes only a few."""
        found: list[Any] = []
        for branch in branches:
            kind = branch.get("type")
            kinds = cast(list[Any], kind) if isinstance(kind, list) else [kind]
            if "const" in branch:
                found.append(branch["const"])
            elif isinstance(branch.get("enum"), list):
                found += branch["enum"]
            elif kinds == ["boolean"]:
                found += [True, False]
            else:
                return ()
        known = dict.fromkeys(json.dumps(each) for each in found if each is not None)
        return tuple(Choice(value=each, label=_label(each)) for each in known)


def _label(text: str) -> str:
    value = json.loads(text)
    return value if isinstance(value, str) else text


def _bounds(schema: JsonObject) -> str:
    limits = [
        ("at least", "minimum"),
        ("above", "exclusiveMinimum"),
        ("at most", "maximum"),
        ("below", "exclusiveMaximum"),
    ]
    named = [f"{word} {schema[key]}" for word, key in limits if key in schema]
    return ", ".join([str(schema["type"]), *named])

"""The schema of a tool as a form, and what was filled in as arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from trysquare.core.json import JsonObject, as_object

Kind: TypeAlias = Literal["text", "number", "choice", "lines", "object", "rows", "variants", "json"]
_DEEPEST = 4
"""Objects inside of objects that are drawn; what is deeper is written as JSON."""
_PREFIX = "arg"
_VARIANT = "variant/"
"""What the name of a choice between several shapes begins with."""
_REFERENCE = "#/$defs/"
_MAX_ROWS = 200
_INPUTS = {"date": "date", "time": "time", "email": "email"}
"""Formats for which browsers have an input of their own."""
_HINTS = {"date-time": "2026-05-04T09:30:00Z", "uri": "https://example.org", "uuid": ""}
_BYTES = frozenset({"byte", "base64", "base64url"})


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
    """Those of an object, the rows of a list, or the one of the chosen shape."""
    is_text: bool = False
    """Whether the items of a list are texts, which need no quotes."""
    is_long: bool = False
    input: str = "text"
    """The input of the browser."""
    hint: str = ""
    file: Literal["", "text", "base64"] = ""
    """As what the content of a file is put in here, where it can be."""


def form_fields(
    schema: JsonObject, values: JsonObject | None = None, given: Mapping[str, str] | None = None
) -> tuple[Field, ...]:
    """The fields of a tool's arguments, filled with values. `given` is a filled form, with its rows and choices."""
    reader = _Reader(as_object(schema.get("$defs")), given or {})
    return tuple(reader.fields(schema, values or {}, _PREFIX, 0))


def read_form(fields: Sequence[Field], given: Mapping[str, str]) -> JsonObject:
    """The arguments of a filled form. An optional field that was left empty is not sent."""
    found: JsonObject = {}
    for field in fields:
        value = _read(field, given)
        if value is not _NOTHING:
            found[field.label] = value
    return found


_NOTHING = object()


def _read(field: Field, given: Mapping[str, str]) -> Any:
    """The value of a field; `_NOTHING` for one that is not sent."""
    if field.kind == "object":
        inner = read_form(field.fields, given)
        return inner if inner or field.required else _NOTHING
    if field.kind == "rows":
        rows = [_read(each, given) for each in field.fields]
        return rows if rows or field.required else _NOTHING
    if field.kind == "variants":
        return _read(field.fields[0], given)
    text = given.get(field.name, "")
    return _value(field, text) if text or (field.required and field.kind == "text") else _NOTHING


def edited(fields: Sequence[Field], given: Mapping[str, str], *, add: str = "", remove: str = "") -> dict[str, str]:
    """A filled form with one row more in a list, or without one of its rows."""
    rows = {field.name: field for field in _all(fields) if field.kind == "rows"}
    changed = dict(given)
    if add in rows and len(rows[add].fields) < _MAX_ROWS:
        changed[f"{add}/{len(rows[add].fields)}"] = ""
    parent, _, number = remove.rpartition("/")
    if parent in rows and number.isdecimal():
        changed = _without_row(changed, parent, int(number))
    return changed


def _without_row(given: Mapping[str, str], parent: str, gone: int) -> dict[str, str]:
    """The form without a row; those after it move up."""
    place = re.compile(rf"((?:{re.escape(_VARIANT)})?{re.escape(parent)}/)(\d+)(/.*|)$")
    found: dict[str, str] = {}
    for name, value in given.items():
        match = place.match(name)
        number = int(match[2]) if match else -1
        if match is None or number < gone:
            found[name] = value
        elif number > gone:
            found[f"{match[1]}{number - 1}{match[3]}"] = value
    return found


def _all(fields: Sequence[Field]) -> Iterator[Field]:
    for field in fields:
        yield field
        yield from _all(field.fields)


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
    def __init__(self, definitions: JsonObject, given: Mapping[str, str]) -> None:
        self._definitions = definitions
        self._given = given

    def fields(self, schema: JsonObject, values: JsonObject, place: str, depth: int) -> Iterator[Field]:
        required = schema.get("required", ())
        for name, part in as_object(schema.get("properties")).items():
            given = (values[name],) if name in values else ()
            yield self._field(name, as_object(part), given, f"{place}/{name}", name in required, depth)

    def _field(
        self, label: str, part: JsonObject, given: tuple[Any, ...], name: str, required: bool, depth: int
    ) -> Field:
        schema, branches = self._resolved(part)
        about = str(part.get("description") or schema.get("description", ""))
        default = part.get("default", schema.get("default"))
        value = given[0] if given else default if not required else None
        base = Field(name=name, label=label, kind="json", required=required, about=about)
        choices = self._choices(branches)
        if choices:
            shown = self._given.get(name, "" if value is None else json.dumps(value))
            return replace(base, kind="choice", value=shown, choices=choices)
        if len(branches) > 1:
            return self._variants(base, branches, value, depth)
        if schema.get("type") == "object" and schema.get("properties") and depth < _DEEPEST:
            inner = tuple(self.fields(schema, as_object(value), name, depth + 1))
            return replace(base, kind="object", fields=inner)
        if schema.get("type") == "array" and depth < _DEEPEST:
            return self._list(base, schema, value, depth)
        return self._simple(base, schema, value)

    def _variants(self, base: Field, branches: Sequence[JsonObject], value: Any, depth: int) -> Field:
        """A choice between shapes, and the field of the chosen one."""
        key = f"{_VARIANT}{base.name}"
        chosen = next((str(at) for at, each in enumerate(branches) if value is not None and _fits(each, value)), "0")
        chosen = self._given.get(key, chosen)
        at = int(chosen) if chosen.isdecimal() and int(chosen) < len(branches) else 0
        labels = [str(each.get("title") or each.get("type") or "any") for each in branches]
        choices = tuple(Choice(value=str(number), label=label) for number, label in enumerate(labels))
        given = (value,) if value is not None and _fits(branches[at], value) else ()
        inner = self._field(base.label, {**branches[at], "description": ""}, given, base.name, base.required, depth)
        return replace(base, kind="variants", name=key, value=str(at), choices=choices, fields=(inner,))

    def _list(self, base: Field, schema: JsonObject, value: Any, depth: int) -> Field:
        items, _ = self._resolved(as_object(schema.get("items")))
        found = cast(list[Any], value) if isinstance(value, list) else []
        if items.get("type") == "object" and items.get("properties"):
            # A filled form says itself how many rows there are.
            found = [] if self._given else found
            row = re.compile(rf"{re.escape(base.name)}/(\d{{1,4}})(?:/|$)")
            sent = [int(match[1]) for name in self._given if (match := row.match(name))]
            count = min(max([len(found), *(number + 1 for number in sent)]), _MAX_ROWS)
            rows = [
                Field(
                    name=f"{base.name}/{at}",
                    label=str(at + 1),
                    kind="object",
                    required=True,
                    fields=tuple(
                        self.fields(
                            items, as_object(found[at] if at < len(found) else {}), f"{base.name}/{at}", depth + 1
                        )
                    ),
                )
                for at in range(count)
            ]
            return replace(base, kind="rows", type="list", fields=tuple(rows))
        kind = items.get("type")
        # A text with several lines needs quotes, which one line each does not.
        is_flat = not any(isinstance(each, str) and "\n" in each for each in found)
        if kind in ("string", "integer", "number", "boolean") and is_flat:
            is_text = kind == "string"
            lines = "\n".join(each if is_text and isinstance(each, str) else json.dumps(each) for each in found)
            shown = self._given.get(base.name, lines)
            return replace(base, kind="lines", type=f"list of {kind}, one a line", value=shown, is_text=is_text)
        return self._simple(base, schema, value)

    def _simple(self, base: Field, schema: JsonObject, value: Any) -> Field:
        kind = schema.get("type")
        if kind == "string":
            form = str(schema.get("format", ""))
            is_bytes = schema.get("contentEncoding") == "base64" or form in _BYTES
            text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
            text = self._given.get(base.name, text)
            is_long = is_bytes or "\n" in text or len(text) > 80 or int(schema.get("maxLength", 0) or 0) > 200
            is_long = is_long or form == "binary"
            return replace(
                base, kind="text", type=form or ("base64" if is_bytes else "text"), value=text, is_long=is_long,
                input=_INPUTS.get(form, "text"), hint=_HINTS.get(form, ""),
                file="base64" if is_bytes else "text" if is_long else "",
            )  # fmt: skip
        shown = self._given.get(base.name, "" if value is None else json.dumps(value, ensure_ascii=False))
        if kind in ("integer", "number"):
            return replace(base, kind="number", type=_bounds(schema), value=shown)
        return replace(base, type=f"JSON: {kind or 'any'}", value=shown, file="text")

    def _resolved(self, part: JsonObject, depth: int = 0) -> tuple[JsonObject, list[JsonObject]]:
        """The schema behind references, and the alternatives without null."""
        reference = part.get("$ref")
        if isinstance(reference, str) and depth < 8:
            known = as_object(self._definitions.get(reference.removeprefix(_REFERENCE)))
            return self._resolved({**known, **{key: each for key, each in part.items() if key != "$ref"}}, depth + 1)
        branches = cast(list[Any], part.get("anyOf") or part.get("oneOf") or [])
        if not branches and isinstance(part.get("type"), list) and "enum" not in part:
            branches = [{**part, "type": each} for each in cast(list[Any], part["type"])]
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


def _fits(schema: JsonObject, value: Any) -> bool:
    """Whether a value is of the type of a schema."""
    kinds: dict[str, Any] = {"string": str, "integer": int, "number": int | float, "object": dict, "array": list}
    kind = kinds.get(str(schema.get("type")))
    return kind is None or (isinstance(value, kind) and not isinstance(value, bool))


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

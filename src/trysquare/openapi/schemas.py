"""Schemas of an OpenAPI document as JSON Schemas of arguments: closed, self-contained, and fit for strict calling.

Two forms of each: what validation holds, and what is listed. The listed one has only the words that the strict modes of
model APIs take; an object without named properties is listed as JSON text there, and taken in either form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from trysquare.core.json import JsonObject, as_list, as_object, definition_ref, objects_in, ref_of
from trysquare.core.text import truncate
from trysquare.openapi.document import Document, Unusable

_MAX_NODES, _MAX_DEPTH = 20_000, 60
_MAX_LISTED_DEPTH = 6
_MAX_CHOICES = 64
_MAX_DESCRIPTION = 400
_KEPT = (
    "type", "enum", "const", "format", "default", "pattern", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
    "minProperties", "maxProperties",
)  # fmt: skip
_LISTED = frozenset({"type", "enum", "description", "default", "properties", "required", "items", "anyOf",
                     "additionalProperties", "$ref", "format", "pattern", "minimum", "maximum", "exclusiveMinimum",
                     "exclusiveMaximum", "multipleOf", "minItems", "maxItems"})  # fmt: skip
"""Words that the strict modes take."""
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_BINARY = ("binary", "byte")
"""Formats of bytes, which are Base64 in an argument."""
FREE = "x-free"
"""Marks an object without named properties in the exact schema."""
_STRICTER: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
"""Of two limits the one that both keep."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


class SchemaReader:
    """Reads the schemas of one operation; what refers to itself becomes a definition."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._nodes = 0
        self._open: dict[str, str] = {}
        """References that are being read, and the names of their definitions."""
        self._recursive: set[str] = set()
        self._names: dict[str, str] = {}
        self.definitions: dict[str, JsonObject] = {}

    def read(self, schema: Any, *, depth: int = 0) -> JsonObject:
        """The closed JSON Schema of a schema of the document. Raises `Unusable`."""
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            # No model reads that far; the API checks the rest.
            return {}
        if schema is True or schema == {} or schema is None:
            return {}
        if not isinstance(schema, dict):
            raise Unusable("a schema in it is not an object")
        given = cast(JsonObject, schema)
        reference = ref_of(given)
        return self._referred(reference, given, depth) if reference is not None else self._inline(given, depth)

    def _referred(self, reference: str, given: JsonObject, depth: int) -> JsonObject:
        known = self._open.get(reference)
        if known is not None:
            self._recursive.add(reference)
            return definition_ref(known)
        name = self._name(reference)
        if name in self.definitions and reference in self._recursive:
            return definition_ref(name)
        self._open[reference] = name
        try:
            found = self.read(self._document.target(reference), depth=depth + 1)
        finally:
            del self._open[reference]
        if reference in self._recursive:
            self.definitions[name] = found
            found = definition_ref(name)
        text = given.get("description")
        return {**found, "description": truncate(text, _MAX_DESCRIPTION)} if isinstance(text, str) else found

    def _name(self, reference: str) -> str:
        wanted = _UNSAFE.sub("_", reference.rpartition("/")[2]) or "schema"
        name, number = wanted, 2
        while self._names.setdefault(name, reference) != reference:
            name, number = f"{wanted}_{number}", number + 1
        return name

    def _inline(self, given: JsonObject, depth: int) -> JsonObject:
        given = self._merged(given, depth)
        choices = [*as_list(given.get("oneOf")), *as_list(given.get("anyOf"))]
        if choices:
            return self._choice(given, choices, depth)
        made = self._words(given)
        kinds = as_list(made.get("type")) or [made.get("type")]
        if "object" in kinds or (made.get("type") is None and "properties" in given):
            self._object(given, made, depth)
        if "array" in kinds:
            made["items"] = self.read(given.get("items", {}), depth=depth + 1)
        return made

    def _words(self, given: JsonObject) -> JsonObject:
        made: JsonObject = {word: given[word] for word in _KEPT if word in given}
        text = given.get("description")
        if isinstance(text, str) and text.strip():
            made["description"] = truncate(" ".join(text.split()), _MAX_DESCRIPTION)
        if "type" not in made and isinstance(given.get("items"), dict):
            made["type"] = "array"
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            # OpenAPI 3.0 has a flag where JSON Schema has the limit itself.
            if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and bound in made:
                made[exclusive] = made.pop(bound)
        if "contentMediaType" in given and "contentEncoding" not in given and "json" not in given["contentMediaType"]:
            # OpenAPI 3.1 describes the bytes of a file so.
            made["format"] = "binary"
        if given.get("nullable") is True:
            _allow_null(made)
        return made

    def _object(self, given: JsonObject, made: JsonObject, depth: int) -> None:
        properties = {
            name: self.read(part, depth=depth + 1)
            for name, part in as_object(given.get("properties")).items()
            if as_object(part).get("readOnly") is not True
        }
        made.setdefault("type", "object")
        if properties:
            made["properties"] = properties
            made["required"] = [name for name in as_list(given.get("required")) if name in properties]
        others = given.get("additionalProperties")
        if others is False or (properties and (others is None or others is True)):
            made["additionalProperties"] = False
            return
        made["additionalProperties"] = self.read(others, depth=depth + 1) if isinstance(others, dict) else True
        if made["additionalProperties"] == {}:
            made["additionalProperties"] = True
        made[FREE] = True

    def _choice(self, given: JsonObject, choices: list[Any], depth: int) -> JsonObject:
        """`oneOf` is listed as `anyOf`; what stands beside the choices belongs to each of them."""
        beside = {key: part for key, part in given.items() if key not in ("oneOf", "anyOf", "discriminator", "title",
                                                                           "description", "nullable")}  # fmt: skip
        names = self._discriminated(given)
        options: list[JsonObject] = []
        for each in choices:
            whole = {"allOf": [beside, each]} if "properties" in beside or "required" in beside else each
            option = self.read(whole, depth=depth + 1)
            reference = ref_of(each)
            if names is not None and reference is not None:
                option = _tagged(option, names[0], names[1].get(reference, reference.rpartition("/")[2]))
            if option not in options:
                options.append(option)
        if given.get("nullable") is True and {"type": "null"} not in options:
            options.append({"type": "null"})
        made = options[0] if len(options) == 1 else _folded(options)
        text = given.get("description")
        return (
            {**made, "description": truncate(" ".join(text.split()), _MAX_DESCRIPTION)}
            if isinstance(text, str)
            else made
        )

    def _discriminated(self, given: JsonObject) -> tuple[str, dict[str, str]] | None:
        """The property that tells the choices apart, and its value for each reference."""
        discriminator = as_object(given.get("discriminator"))
        name = discriminator.get("propertyName")
        if not isinstance(name, str):
            return None
        mapping = as_object(discriminator.get("mapping"))
        return name, {str(reference): value for value, reference in mapping.items()}

    def _merged(self, given: JsonObject, depth: int) -> JsonObject:
        """The schema with what its `allOf` demands in it."""
        parts = as_list(given.get("allOf"))
        if not parts:
            return given
        if depth > _MAX_DEPTH:
            raise Unusable("its schema is nested too deeply")
        made: JsonObject = {key: part for key, part in given.items() if key != "allOf"}
        for each in parts:
            part = self._merged(self._document.resolved(each), depth + 1)
            _merge(made, part)
        return made


def _merge(made: JsonObject, part: JsonObject) -> None:
    """Add a part of an `allOf`; the more exact word of two stays."""
    for key, value in part.items():
        if key == "properties":
            known = as_object(made.get("properties"))
            made["properties"] = {
                **as_object(value),
                **{name: {**as_object(as_object(value).get(name)), **as_object(own)} for name, own in known.items()},
            }
        elif key == "required":
            made["required"] = list(dict.fromkeys([*as_list(made.get("required")), *as_list(value)]))
        elif key in ("oneOf", "anyOf") and as_list(made.get(key)):
            # Of more combinations than a model reads, the first list stays; the API checks the rest.
            if len(as_list(made[key])) * len(as_list(value)) <= _MAX_CHOICES:
                made[key] = [{"allOf": [mine, other]} for mine in as_list(made[key]) for other in as_list(value)]
        elif key == "enum" and as_list(made.get("enum")):
            made["enum"] = [each for each in as_list(made["enum"]) if each in as_list(value)] or made["enum"]
        elif key == "type" and "type" in made:
            made["type"] = _common_type(made["type"], value)
        elif key in _STRICTER and _is_number(made.get(key)) and _is_number(value):
            made[key] = _STRICTER[key](made[key], value)
        else:
            made.setdefault(key, value)


def _common_type(first: Any, second: Any) -> Any:
    """The types that both allow. Raises `Unusable` where there are none: no value would be valid."""
    mine, other = as_list(first) or [first], as_list(second) or [second]
    common = [kind for kind in mine if kind in other]
    if "integer" in (*mine, *other) and "number" in (*mine, *other) and "integer" not in common:
        common.append("integer")
    if not common:
        raise Unusable(f"its schema wants one value to be {_words(mine)} and {_words(other)} at once")
    return common[0] if len(common) == 1 else common


def _words(kinds: list[Any]) -> str:
    return " or ".join(str(kind) for kind in kinds)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _allow_null(schema: JsonObject) -> None:
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
    if isinstance(choices := schema.get("enum"), list) and None not in choices:
        schema["enum"] = [*cast(list[Any], choices), None]


def _tagged(option: JsonObject, name: str, value: str) -> JsonObject:
    """A choice whose discriminator has its own value only."""
    properties = as_object(option.get("properties"))
    known = as_object(properties.get(name))
    if not properties or "enum" in known or "const" in known:
        return option
    tagged = {**{key: part for key, part in known.items() if key != "default"}, "type": "string", "enum": [value]}
    required = list(dict.fromkeys([*as_list(option.get("required")), name]))
    return {**option, "properties": {**properties, name: tagged}, "required": required}


def _folded(options: list[JsonObject]) -> JsonObject:
    """Choices of plain types as one list of types, others as `anyOf`."""
    if all(option.keys() == {"type"} for option in options):
        kinds = [kind for option in options for kind in (as_list(option["type"]) or [option["type"]])]
        return {"type": list(dict.fromkeys(kinds))}
    return {"anyOf": options}


def exact_schema(schema: JsonObject) -> JsonObject:
    """What validation holds: the schema without our mark."""
    return cast(JsonObject, _without_mark(schema))


def _without_mark(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_mark(part) for key, part in cast(JsonObject, value).items() if key != FREE}
    return [_without_mark(each) for each in cast(list[Any], value)] if isinstance(value, list) else value


def listed_schema(schema: JsonObject, depth: int = 0) -> JsonObject:
    """What clients see of a schema; deeper than model APIs allow, JSON text."""
    if schema.get(FREE) or (depth > _MAX_LISTED_DEPTH and schema.keys() & {"properties", "items", "anyOf"}):
        return _as_text(schema)
    made = {key: part for key, part in schema.items() if key in _LISTED}
    if "const" in schema:
        made["enum"] = [schema["const"]]
    if made.get("format") not in _FORMATS:
        _say_format(made, schema)
    if "properties" in made:
        made["properties"] = {
            name: listed_schema(part, depth + 1) for name, part in as_object(made["properties"]).items()
        }
    if "items" in made:
        made["items"] = listed_schema(as_object(made["items"]), depth + 1) or {"type": "string"}
    if "anyOf" in made:
        made["anyOf"] = [
            listed_schema(as_object(part), depth + 1) or {"type": "string"} for part in as_list(made["anyOf"])
        ]
    if not made.get("required"):
        made.pop("required", None)
    if made.keys() <= {"description", "default"}:
        return _as_text(made)
    return _with_type_of_enum(made)


def _say_format(made: JsonObject, schema: JsonObject) -> None:
    made.pop("format", None)
    if schema.get("format") in _BINARY:
        text = str(made.get("description", "")).rstrip(". ")
        made["description"] = f"{text}. Base64" if text else "Base64"


def _with_type_of_enum(made: JsonObject) -> JsonObject:
    """Strict modes want a type beside an `enum`."""
    if "type" in made or "enum" not in made:
        return made
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    kinds = list(dict.fromkeys(names[type(each)] for each in as_list(made["enum"]) if type(each) in names))
    return {**made, "type": kinds[0] if len(kinds) == 1 else kinds} if kinds else made


def _as_text(schema: Mapping[str, Any]) -> JsonObject:
    """Anything, or an object of any names: as JSON text, since strict modes take no open object."""
    is_object = schema.get("type") == "object" or (
        isinstance(schema.get("type"), list) and "object" in cast(list[Any], schema["type"])
    )
    text = str(schema.get("description", "")).rstrip(". ")
    what = "A JSON object as text" if is_object else "Any JSON value, as text"
    return {"type": "string", "description": f"{text}. {what}" if text else what}


def with_definitions(schema: JsonObject, definitions: Mapping[str, JsonObject]) -> JsonObject:
    """A schema with the definitions that it needs, and no other."""
    needed: dict[str, JsonObject] = {}
    waiting: list[Any] = [schema]
    while waiting:
        for part in objects_in([waiting.pop()]):
            reference = ref_of(part)
            name = reference.rpartition("/")[2] if reference is not None else ""
            if name in definitions and name not in needed:
                needed[name] = definitions[name]
                waiting.append(definitions[name])
    return {**schema, "$defs": needed} if needed else schema

"""Forms: types as the flat schemas that clients can show to a user, and answers as values of these types."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError, create_model

from trysquare.core.arguments import model_schema
from trysquare.core.errors import DeclarationError
from trysquare.core.hints import portable_type
from trysquare.core.json import JsonObject, as_object, properties_of
from trysquare.core.schema.build import normalize_schema

T = TypeVar("T")

VALUE = "value"
"""The field of a form that asks for a single value."""
_KEYWORDS: dict[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"}),
    "number": frozenset({"minimum", "maximum"}),
    "integer": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
    "array": frozenset({"items", "minItems", "maxItems"}),
}
"""What the protocol lets a field of a form say, by its type; the answer is checked against the rest."""
_COMMON = frozenset({"type", "title", "description", "default"})
_FORMATS = frozenset({"email", "uri", "date", "date-time"})
_HINT = (
    "A form is flat: texts, numbers, booleans, dates, choices (Literal, Enum), and lists of choices. "
    "Ask for the rest in further questions, or take it as an argument."
)


class WrongAnswer(ValueError):
    """An answer does not fit its question; the text is for the user who gave it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Form(Generic[T]):
    """The schema of a question, and how its answer becomes a value."""

    schema: JsonObject
    adapter: TypeAdapter[Any]
    is_single: bool = False
    """Whether it asks for one value, which stands in the field `value`."""
    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Fields whose choices are not texts: the choice for each text."""
    nullable: frozenset[str] = frozenset()
    """Fields that are None where the user leaves them out."""

    def read(self, content: Mapping[str, Any]) -> T:
        """The answer as a value; raises `WrongAnswer` with what the user has to change."""
        given = dict(content)
        for name, choices in self.choices.items():
            if name in given:
                given[name] = _chosen(given[name], choices)
        for name in self.nullable - given.keys():
            given[name] = None
        try:
            value = self.adapter.validate_python(given, extra="forbid")
        except ValidationError as error:
            raise WrongAnswer(_text_for_user(error)) from None
        return getattr(value, VALUE) if self.is_single else value


def _chosen(given: Any, choices: Mapping[str, Any]) -> Any:
    if isinstance(given, list):
        return [choices.get(str(each), each) for each in cast(list[Any], given)]
    return choices.get(str(given), given)


def form_of(wanted: Any) -> Form[Any]:
    """The form for a type: a model, a dataclass, a TypedDict, one plain value, or choices as a list of texts.

    Raises `DeclarationError` for what is not flat.
    """
    if isinstance(wanted, (list, tuple)):
        if not wanted:
            raise _refused("one of no choices")
        wanted = Literal[tuple(cast(list[str], wanted))]
    wanted = portable_type(wanted)
    try:
        return _form_of(wanted)
    except TypeError:
        return _form_of.__wrapped__(wanted)


@functools.lru_cache(maxsize=256)
def _form_of(wanted: Any) -> Form[Any]:
    try:
        schema = _schema_of(wanted)
        is_single = "properties" not in schema and schema.get("type") != "object"
        model: Any = create_model("Answer", value=(wanted, ...)) if is_single else wanted
        whole = _schema_of(model)
        adapter: TypeAdapter[Any] = TypeAdapter(model)
    except (PydanticUserError, ValueError, TypeError) as error:
        raise _refused(_name(wanted), str(error).split("\n", 1)[0]) from None
    choices: dict[str, Mapping[str, Any]] = {}
    nullable: set[str] = set()
    fields: JsonObject = {}
    if "properties" not in whole:
        raise _refused(_name(wanted))
    for name, part in properties_of(whole).items():
        bare, is_nullable = _without_null(part)
        if is_nullable:
            nullable.add(name)
        fields[name], texts = _field(name, bare)
        if texts:
            choices[name] = texts
    required = [name for name in whole.get("required", ()) if name not in nullable]
    form: JsonObject = {"type": "object", "properties": fields}
    if required:
        form["required"] = required
    # A field with a default of its own keeps it.
    kept = frozenset(name for name in nullable if name in whole.get("required", ()))
    return Form(schema=form, adapter=adapter, is_single=is_single, choices=choices, nullable=kept)


def _schema_of(wanted: Any) -> JsonObject:
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        return model_schema(wanted)
    return normalize_schema(TypeAdapter(cast(Any, wanted)).json_schema())


def _without_null(part: JsonObject) -> tuple[JsonObject, bool]:
    options = [each for each in part.get("anyOf", ()) if each != {"type": "null"}]
    if len(options) != 1 or len(options) == len(part.get("anyOf", ())):
        return part, False
    rest = {key: value for key, value in part.items() if key != "anyOf"}
    return {**options[0], **rest}, True


def _field(name: str, part: JsonObject) -> tuple[JsonObject, Mapping[str, Any]]:
    """A field as the protocol has it, and its choices by their texts where they are not texts."""
    choices = [part["const"]] if "const" in part else part.get("enum")
    if choices is not None:
        texts = {_text(choice): choice for choice in choices}
        kept = {key: part[key] for key in ("title", "description") if key in part}
        default = {"default": _text(part["default"])} if part.get("default") is not None else {}
        is_plain = all(isinstance(choice, str) for choice in choices)
        return {"type": "string", "enum": list(texts), **kept, **default}, {} if is_plain else texts
    if part.get("type") == "array":
        items, texts = _field(name, as_object(part.get("items")))
        if "enum" not in items:
            raise _refused(f"the field `{name}`, a list of anything but choices,")
        made = {**_kept(part), "items": {"type": "string", "enum": items["enum"]}}
        if texts and "default" in made:
            made["default"] = [_text(each) for each in made["default"]]
        return made, texts
    if problem := _problem(part):
        raise _refused(f"the field `{name}`, {problem},")
    return _kept(part), {}


def _text(choice: Any) -> str:
    return choice if isinstance(choice, str) else "yes" if choice is True else "no" if choice is False else str(choice)


def _kept(part: JsonObject) -> JsonObject:
    keywords = _COMMON | _KEYWORDS[str(part["type"])]
    kept = {key: value for key, value in part.items() if key in keywords}
    return {key: value for key, value in kept.items() if key != "format" or value in _FORMATS}


def _problem(part: JsonObject) -> str | None:
    """What keeps a field out of a form; None if nothing does."""
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _KEYWORDS:
        return {"object": "an object", None: "of several types"}.get(cast(Any, kind), f"of the type {kind}")
    if kind == "array" and not _has_choices(as_object(part.get("items"))):
        return "a list of anything but choices"
    return None


def _has_choices(items: JsonObject) -> bool:
    titled = cast(list[JsonObject], items.get("anyOf") or items.get("oneOf") or [{}])
    return "enum" in items or "const" in items or all("const" in as_object(each) for each in titled)


def require_flat(schema: JsonObject) -> None:
    """Refuse a JSON Schema that no client can show as a form."""
    if schema.get("type", "object") != "object":
        raise _refused(f"a schema of the type {schema.get('type')}")
    for name, part in properties_of(schema).items():
        if problem := _problem(as_object(part)):
            raise _refused(f"the field `{name}`, {problem},")


def _text_for_user(error: ValidationError) -> str:
    parts = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors(include_url=False)]
    return "; ".join(f"{place}: {text}" if place and place != VALUE else text for place, text in parts)


def _name(wanted: Any) -> str:
    return f"`{getattr(wanted, '__name__', None) or wanted}`"


def _refused(what: str, reason: str = "") -> DeclarationError:
    because = f" ({reason.rstrip('.')})" if reason else ""
    return DeclarationError(f"A question cannot ask for {what.rstrip(',')}{because}. {_HINT}")

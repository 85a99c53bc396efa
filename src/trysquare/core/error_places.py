"""What is wrong with a call's arguments, place by place, in the caller's own terms.

Pydantic tells where an error is in terms of its validators: members of a union have names of their own, and a union
that nothing fits is told once for each member. Here each error gets the place in the arguments that it is about, and of
a union only the member that comes closest is told, so that no correction mixes the fields of two members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from trysquare.core.types import JsonObject

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Place: TypeAlias = tuple[str | int, ...]
"""Where in the arguments: `("items", 0, "name")`; empty for the arguments as a whole."""

_KEY = "[key]"
_MAX_DEPTH = 60
"""Steps into the arguments that are followed; what is wrong below is told of the place there."""
_EXTRA = frozenset({"extra_forbidden", "unexpected_keyword_argument", "unexpected_positional_argument"})
_MISSING = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong."""

    place: Place
    kind: str
    """Pydantic's word for it, or `extra`, `missing` or `key`."""
    message: str
    schema: JsonObject
    """What belongs at the place; for `extra` and `key` the schema of the object around it."""
    is_allowed: bool = False
    """An extra name in an object whose author takes extra names."""


def located(details: Iterable[ErrorDetails], arguments: JsonObject, schema: JsonObject) -> list[Problem]:
    """The problems that some errors stand for. Empty if all of them are extra names that are allowed."""
    errors = [_Error(loc=detail["loc"][:_MAX_DEPTH], detail=_bounded(detail)) for detail in details]
    found = _Locator(schema).walk(errors, arguments, schema, (), {})
    return [problem for problem in found if not problem.is_allowed]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Error:
    loc: tuple[str | int, ...]
    """What is left of pydantic's way to the error."""
    detail: ErrorDetails

    def inner(self) -> _Error:
        return replace(self, loc=self.loc[1:])


class _Locator:
    """Walks errors, values and schemas together."""

    def __init__(self, schema: JsonObject) -> None:
        self._definitions = cast(JsonObject, schema.get("$defs", {}))

    def walk(
        self, errors: list[_Error], value: Any, schema: JsonObject, place: Place, around: JsonObject
    ) -> list[Problem]:
        """The problems at and below a place."""
        options = options_of(schema, self._definitions)
        inner: dict[str | int, list[_Error]] = {}
        members: dict[str | int, list[_Error]] = {}
        found: list[Problem] = []
        for error in errors:
            if not error.loc:
                found.append(self._here(error.detail, value, schema, place))
            elif error.loc[0] == _KEY and not _holds(value, _KEY):
                found.append(_problem(error.detail, place, around, kind="key"))
            elif self._is_member(error, value, options):
                members.setdefault(error.loc[0], []).append(error.inner())
            else:
                inner.setdefault(error.loc[0], []).append(error.inner())
        for part, below in inner.items():
            found.extend(self._inside(part, below, value, options, place))
        return found + self._closest_member(members, value, schema, options, place, around)

    def _is_member(self, error: _Error, value: Any, options: list[JsonObject]) -> bool:
        """Whether the next step names a member of a union, or a validator, and no part of the value."""
        part = error.loc[0]
        if len(options) > 1:
            return not (_holds(value, part) and any(self._inner_schema(option, part) for option in options))
        return not _holds(value, part) and not (len(error.loc) == 1 and error.detail["type"] in _MISSING)

    def _inside(
        self, part: str | int, errors: list[_Error], value: Any, options: list[JsonObject], place: Place
    ) -> list[Problem]:
        around = next((option for option in options if self._inner_schema(option, part)), options[0])
        schema, here = self._inner_schema(around, part) or {}, (*place, part)
        found: list[Problem] = []
        deeper: list[_Error] = []
        for error in errors:
            if not error.loc and error.detail["type"] in _EXTRA:
                is_open = around.get("type") == "object" and around.get("additionalProperties") is not False
                found.append(replace(_problem(error.detail, here, around, kind="extra"), is_allowed=is_open))
            elif not error.loc and error.detail["type"] in _MISSING:
                found.append(_problem(error.detail, here, resolved(schema, self._definitions), kind="missing"))
            else:
                deeper.append(error)
        held = value[part] if _holds(value, part) else None
        return found + (self.walk(deeper, held, schema, here, around) if deeper else [])

    def _here(self, detail: ErrorDetails, value: Any, schema: JsonObject, place: Place) -> Problem:
        """An error about the value at this place; one about its discriminator is about that field."""
        own = resolved(schema, self._definitions)
        name = str(detail.get("ctx", {}).get("discriminator", "")).strip("'")
        choices = [each for option in options_of(own, self._definitions) for each in _choices(option, name)]
        if detail["type"] in ("union_tag_invalid", "union_tag_not_found") and choices and isinstance(value, dict):
            known: JsonObject = {"enum": choices, "type": "string"}
            kind = "literal_error" if name in value else "missing"
            return _problem(detail, (*place, name), known, kind=kind)
        return _problem(detail, place, own)

    def _closest_member(
        self,
        members: Mapping[str | int, list[_Error]],
        value: Any,
        schema: JsonObject,
        options: list[JsonObject],
        place: Place,
        around: JsonObject,
    ) -> list[Problem]:
        """The problems of the one member that comes closest; one problem about the union if none comes close."""
        found: list[list[Problem]] = []
        for number, (tag, errors) in enumerate(members.items()):
            # All members failed, so their errors come in the order in which the schema lists them.
            in_order = options[number] if len(members) == len(options) else None
            tagged = (option for option in options if any(tag in _choices(option, name) for name in _names(option)))
            option = in_order or next(tagged, None) or self._knowing(errors, options) or schema
            found.append(self.walk(errors, value, option, place, around))
        close = [problems for problems in found if _is_close(problems, value, place)]
        if close:
            return min(close, key=lambda problems: sum(not problem.is_allowed for problem in problems))
        flat = [problem for problems in found for problem in problems]
        if len(flat) < 2:
            return flat
        said = " or ".join(dict.fromkeys(_wanted(problem.message) for problem in flat))
        return [replace(flat[0], message=f"Input should be {said}", schema=resolved(schema, self._definitions))]

    def _knowing(self, errors: list[_Error], options: list[JsonObject]) -> JsonObject | None:
        steps = [error.loc[0] for error in errors if error.loc]
        return next((option for option in options for step in steps if self._inner_schema(option, step)), None)

    def _inner_schema(self, schema: JsonObject, part: str | int) -> JsonObject | None:
        return inner_schema(schema, part, self._definitions)


def resolved(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    """The schema that a reference stands for, or the schema itself."""
    for _ in range(len(definitions) + 1):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        schema = cast(JsonObject, definitions.get(reference.rsplit("/", 1)[-1], {}))
    return schema


def options_of(schema: JsonObject, definitions: JsonObject) -> list[JsonObject]:
    """The members of a union, without null; of every other schema itself alone."""
    own = resolved(schema, definitions)
    members = cast(list[JsonObject], own.get("anyOf") or own.get("oneOf") or [])
    known = [resolved(member, definitions) for member in members]
    return [member for member in known if member.get("type") != "null"] or [own]


def inner_schema(schema: JsonObject, part: str | int, definitions: JsonObject) -> JsonObject | None:
    """The schema of an item or of a named part, or None where the schema does not tell."""
    for option in options_of(schema, definitions):
        if isinstance(part, int):
            fixed = cast(list[Any], option.get("prefixItems", []))
            found = fixed[part] if 0 <= part < len(fixed) else option.get("items")
        else:
            found = option.get("properties", {}).get(part) or option.get("additionalProperties")
        if isinstance(found, dict):
            return cast(JsonObject, found)
    return None


def _bounded(detail: ErrorDetails) -> ErrorDetails:
    return detail if len(detail["loc"]) <= _MAX_DEPTH else {**detail, "type": "nested"}


def _problem(detail: ErrorDetails, place: Place, schema: JsonObject, *, kind: str | None = None) -> Problem:
    return Problem(place=place, kind=kind or detail["type"], message=detail["msg"], schema=schema)


def _is_close(problems: list[Problem], value: Any, place: Place) -> bool:
    """Whether the value is of a member's kind: what is wrong lies inside it, or is a rule about it."""
    if all(problem.is_allowed for problem in problems):
        return True
    is_container = isinstance(value, (dict, list))
    return any(problem.place != place or (is_container and not problem.kind.endswith("_type")) for problem in problems)


def _choices(schema: JsonObject, name: str) -> list[Any]:
    field = schema.get("properties", {}).get(name, {})
    return [field["const"]] if "const" in field else list(field.get("enum", []))


def _names(schema: JsonObject) -> list[str]:
    return list(schema.get("properties", {}))


def _wanted(message: str) -> str:
    return message.removeprefix("Input should be ").removeprefix("Value error, ").rstrip(".")


def _holds(container: Any, part: str | int) -> bool:
    if isinstance(container, dict):
        return part in container
    return isinstance(container, list) and isinstance(part, int) and 0 <= part < len(cast(list[Any], container))

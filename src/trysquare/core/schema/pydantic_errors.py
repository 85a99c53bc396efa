"""Pydantic's errors as problems: each with its path in the arguments, in the caller's own terms.

Pydantic locates an error in terms of its validators: members of a union have names of their own, and a union that
nothing fits is reported once for each member. Here each error gets the path that it is about, and of a union only the
member that comes closest is reported, so that no correction mixes the fields of two members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from trysquare.core.json import JsonObject, JsonPath, as_list, as_object, choices_of, holds, properties_of, resolve_ref
from trysquare.core.schema.validator import Check, Problem, assertion

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_KEY = "[key]"
_MAX_DEPTH = 60
"""Steps into the arguments that are followed; what is wrong below is reported there."""
_EXTRA = frozenset({"extra_forbidden", "unexpected_keyword_argument", "unexpected_positional_argument"})
_MISSING = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"}
)
_TYPE_ERRORS = frozenset({"literal_error", "enum", "int_from_float", "none_required", "sequence_str"})
_KEYWORDS = {
    "greater_than": "exclusiveMinimum",
    "greater_than_equal": "minimum",
    "less_than": "exclusiveMaximum",
    "less_than_equal": "maximum",
    "multiple_of": "multipleOf",
    "string_too_short": "minLength",
    "string_too_long": "maxLength",
    "too_short": "minItems",
    "too_long": "maxItems",
    "string_pattern_mismatch": "pattern",
}
_ALLOWED = "allowed"
"""The keyword of an extra name in an object whose author takes extra names."""


def pydantic_problems(check: Check, arguments: JsonObject, schema: JsonObject) -> list[Problem]:
    """What is wrong with the arguments. Empty if they are valid but for extra names that are allowed."""
    try:
        check(arguments, extra="forbid")
    except ValidationError as error:
        details = error.errors(include_url=False)
    else:
        return []
    errors = [_Error(loc=detail["loc"][:_MAX_DEPTH], detail=_bounded(detail)) for detail in details]
    return [each for each in _Locator(schema).walk(errors, arguments, schema, (), {}) if each.keyword != _ALLOWED]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Error:
    loc: tuple[str | int, ...]
    """What is left of pydantic's location."""
    detail: ErrorDetails

    def inner(self) -> _Error:
        return replace(self, loc=self.loc[1:])


class _Locator:
    """Walks errors, values and schemas together."""

    def __init__(self, schema: JsonObject) -> None:
        self._whole = schema

    def walk(
        self, errors: list[_Error], value: Any, schema: JsonObject, path: JsonPath, around: JsonObject
    ) -> list[Problem]:
        """The problems at and below a path."""
        options = self._options(schema)
        inner: dict[str | int, list[_Error]] = {}
        members: dict[str | int, list[_Error]] = {}
        found: list[Problem] = []
        for error in errors:
            if not error.loc:
                found.append(self._here(error.detail, value, schema, path))
            elif error.loc[0] == _KEY and not holds(value, _KEY):
                found.append(_problem(error.detail, path, around, "propertyNames"))
            elif self._is_member(error, value, options):
                members.setdefault(error.loc[0], []).append(error.inner())
            else:
                inner.setdefault(error.loc[0], []).append(error.inner())
        for part, below in inner.items():
            found.extend(self._inside(part, below, value, options, path))
        return found + self._closest_member(members, value, schema, options, path, around)

    def _is_member(self, error: _Error, value: Any, options: list[JsonObject]) -> bool:
        """Whether the next step names a member of a union, or a validator, and no part of the value."""
        part = error.loc[0]
        if len(options) > 1:
            return not (holds(value, part) and any(self._inner_schema(option, part) for option in options))
        return not holds(value, part) and not (len(error.loc) == 1 and error.detail["type"] in _MISSING)

    def _inside(
        self, part: str | int, errors: list[_Error], value: Any, options: list[JsonObject], path: JsonPath
    ) -> list[Problem]:
        around = next((option for option in options if self._inner_schema(option, part)), options[0])
        schema, here = self._inner_schema(around, part) or {}, (*path, part)
        found: list[Problem] = []
        deeper: list[_Error] = []
        for error in errors:
            if not error.loc and error.detail["type"] in _EXTRA:
                is_open = around.get("type") == "object" and around.get("additionalProperties") is not False
                found.append(_problem(error.detail, here, around, _ALLOWED if is_open else "additionalProperties"))
            elif not error.loc and error.detail["type"] in _MISSING:
                found.append(_problem(error.detail, here, around, "required"))
            else:
                deeper.append(error)
        inside = value[part] if holds(value, part) else None
        return found + (self.walk(deeper, inside, schema, here, around) if deeper else [])

    def _here(self, detail: ErrorDetails, value: Any, schema: JsonObject, path: JsonPath) -> Problem:
        """An error about the value at this path; one about its discriminator is about that field."""
        own = resolve_ref(schema, self._whole)
        name = str(detail.get("ctx", {}).get("discriminator", "")).strip("'")
        choices = [each for option in self._options(own) for each in choices_of(properties_of(option).get(name))]
        if detail["type"] in ("union_tag_invalid", "union_tag_not_found") and choices and isinstance(value, dict):
            known: JsonObject = {"enum": choices, "type": "string"}
            if name in value:
                return _problem(detail, (*path, name), known, "enum")
            return _problem(detail, (*path, name), {"properties": {name: known}}, "required")
        return self._about_value(_problem(detail, path, own, ""), detail["type"], value)

    def _about_value(self, problem: Problem, kind: str, value: Any) -> Problem:
        """The problem with the keyword of its error, where the schema has it."""
        schema, keyword = problem.schema, _KEYWORDS.get(kind, "")
        is_type = kind in _TYPE_ERRORS or kind.endswith(("_type", "_parsing")) or "anyOf" in schema
        if is_type and schema and not satisfies(value, schema, self._whole):
            keyword = "type"
        elif keyword not in schema:
            keyword = ""
        return replace(problem, keyword=keyword)

    def _closest_member(
        self,
        members: Mapping[str | int, list[_Error]],
        value: Any,
        schema: JsonObject,
        options: list[JsonObject],
        path: JsonPath,
        around: JsonObject,
    ) -> list[Problem]:
        """The problems of the one member that comes closest; one problem about the union if none comes close.

        A member whose literal the value has, such as its `kind`, is closer than all others.
        """
        found: list[list[Problem]] = []
        named: list[list[Problem]] = []
        for number, (tag, errors) in enumerate(members.items()):
            # All members failed, so their errors come in the order in which the schema lists them.
            in_order = options[number] if len(members) == len(options) else None
            tagged = (
                option for option in options if any(tag in choices_of(part) for part in properties_of(option).values())
            )
            option = in_order or next(tagged, None) or self._knowing(errors, options) or schema
            found.append(self.walk(errors, value, option, path, around))
            if any(
                holds(value, name) and value[name] in choices_of(part) for name, part in properties_of(option).items()
            ):
                named.append(found[-1])
        if members and not named and (wrong := _wrong_tag(value, options, path)) is not None:
            return [wrong]
        close = [problems for problems in named or found if _is_close(problems, value, path)]
        if close:
            return min(close, key=lambda problems: sum(problem.keyword != _ALLOWED for problem in problems))
        flat = [problem for problems in found for problem in problems]
        if len(flat) < 2:
            return flat
        expected = " or ".join(dict.fromkeys(_expectation(problem.message) for problem in flat))
        own = resolve_ref(schema, self._whole)
        union = Problem(path=flat[0].path, keyword="", schema=own, message=f"Input should be {expected}")
        return [self._about_value(union, "union_type", value)]

    def _knowing(self, errors: list[_Error], options: list[JsonObject]) -> JsonObject | None:
        steps = [error.loc[0] for error in errors if error.loc]
        return next((option for option in options for step in steps if self._inner_schema(option, step)), None)

    def _options(self, schema: JsonObject) -> list[JsonObject]:
        """The members of a union, without null; of every other schema itself alone."""
        own = resolve_ref(schema, self._whole)
        members = as_list(own.get("anyOf")) or as_list(own.get("oneOf"))
        known = [resolve_ref(as_object(member), self._whole) for member in members]
        return [member for member in known if member.get("type") != "null"] or [own]

    def _inner_schema(self, schema: JsonObject, part: str | int) -> JsonObject | None:
        """The schema of an item or of a named part, or None where the schema does not say."""
        for option in self._options(schema):
            if isinstance(part, int):
                fixed = as_list(option.get("prefixItems"))
                found = fixed[part] if 0 <= part < len(fixed) else option.get("items")
            else:
                found = as_object(option.get("properties")).get(part) or option.get("additionalProperties")
            if isinstance(found, dict):
                return cast(JsonObject, found)
        return None


def satisfies(value: Any, schema: Any, whole: JsonObject, depth: int = 0) -> bool:
    """Whether a value is what `type_text` says of a schema. What the text does not say is not looked at."""
    known = resolve_ref(as_object(schema), whole)
    if not known or depth > _MAX_DEPTH:
        return True
    for keyword in ("const", "enum"):
        if keyword in known:
            test = assertion(keyword, known[keyword], known)
            return test is None or test(value)
    if options := as_list(known.get("anyOf")) or as_list(known.get("oneOf")):
        return any(satisfies(value, option, whole, depth + 1) for option in options)
    is_kind = assertion("type", known.get("type"), known)
    if is_kind is not None and not is_kind(value):
        return False
    if not isinstance(value, list):
        return True
    items, fixed = cast(list[Any], value), as_list(known.get("prefixItems"))
    expected = [*fixed, *([known.get("items")] * (len(items) - len(fixed)))]
    return len(items) >= len(fixed) and all(
        satisfies(item, each, whole, depth + 1) for item, each in zip(items, expected, strict=True)
    )


def _wrong_tag(value: Any, options: list[JsonObject], path: JsonPath) -> Problem | None:
    """The problem of a field by which all members of a union are distinguished, where its value names none of them."""
    parts = [properties_of(option) for option in options]
    for name in parts[0] if len(parts) > 1 and isinstance(value, dict) else ():
        choices = [choices_of(each.get(name)) for each in parts]
        if holds(value, name) and all(choices):
            every = list(dict.fromkeys(choice for known in choices for choice in known))
            return Problem(path=(*path, name), keyword="enum", schema={"enum": every}, message="")
    return None


def _bounded(detail: ErrorDetails) -> ErrorDetails:
    return detail if len(detail["loc"]) <= _MAX_DEPTH else {**detail, "type": "nested"}


def _problem(detail: ErrorDetails, path: JsonPath, schema: JsonObject, keyword: str) -> Problem:
    return Problem(path=path, keyword=keyword, message=detail["msg"], schema=schema)


def _is_close(problems: list[Problem], value: Any, path: JsonPath) -> bool:
    """Whether the value is of a member's kind: the problem is inside it, or a rule about it."""
    if all(problem.keyword == _ALLOWED for problem in problems):
        return True
    is_container = isinstance(value, (dict, list))
    return any(problem.path != path or (is_container and problem.keyword != "type") for problem in problems)


def _expectation(message: str) -> str:
    return message.removeprefix("Input should be ").removeprefix("Value error, ").rstrip(".")

"""Argument errors that heal: what is wrong, what was expected, the nearest name, and the corrected call.

The corrected call is tried before it is offered: either it fits, or the instruction names what is left to fill in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trysquare.core.arguments import type_text
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.mending import Mending, Place
from trysquare.core.nearest import nearest
from trysquare.core.result import clean
from trysquare.core.shortening import fits, short, short_repr
from trysquare.core.types import JsonObject

WRAPPER_KEYS = ("args", "arguments", "parameters", "params", "input", "kwargs")
_MAX_PROBLEMS = 8
_MAX_NAMES = 12

Check: TypeAlias = Callable[[JsonObject], object]
"""Validates arguments, or raises pydantic's `ValidationError`."""


def unwrapped(raw: JsonObject, properties: Mapping[str, Any]) -> JsonObject:
    """The arguments themselves, where a model put them one level too deep: `{"args": {…}}`."""
    if len(raw) != 1:
        return raw
    [(key, inner)] = raw.items()
    if key not in WRAPPER_KEYS or key in properties or not isinstance(inner, dict):
        return raw
    return cast(JsonObject, inner)


def checked(check: Callable[[JsonObject], Any], *, tool: str, raw: JsonObject, schema: Callable[[], JsonObject]) -> Any:
    """What the check makes of the arguments, or the error that a model reads: one short message, and the cure."""
    try:
        return check(raw)
    except ValidationError as error:
        raise healed(error.errors(include_url=False), tool=tool, raw=raw, schema=schema(), check=check) from None


def healed(
    details: list[ErrorDetails], *, tool: str, raw: JsonObject, schema: JsonObject, check: Check
) -> InvalidArguments:
    """The error for these details, with the corrected call in `next` where there is one."""
    return _Healer(tool=tool, raw=raw, schema=schema, check=check).heal(details)


def errors_of(check: Check, arguments: JsonObject) -> list[ErrorDetails]:
    """What a check has against some arguments."""
    try:
        check(arguments)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


class _Healer:
    """Tells what is wrong with one call, and mends a copy of its arguments as it goes."""

    def __init__(self, *, tool: str, raw: JsonObject, schema: JsonObject, check: Check) -> None:
        self._tool = tool
        self._raw = raw
        self._check = check
        self._mending = Mending(raw, schema)
        self._unknown_names = 0
        self._told: set[Place] = set()

    def heal(self, details: list[ErrorDetails]) -> InvalidArguments:
        problems: list[str] = []
        unreadable = [name for name in self._raw if clean(name) != name]
        if unreadable:
            self._mending.drop(unreadable)
            details = errors_of(self._check, self._mending.arguments)
            problems.append("An argument's name holds a character that is no text.")
        # Unknown names first: a misspelt name explains why the right one is missing.
        ordered = sorted(details, key=lambda detail: detail["type"] != "extra_forbidden")
        problems.extend(problem for detail in ordered if (problem := self._problem(detail)))
        shown = problems[:_MAX_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"And {len(problems) - len(shown)} more.")
        return InvalidArguments(" ".join(shown), code=_code(details, unreadable), **self._cure())

    def _cure(self) -> JsonObject:
        """The instruction and the corrected call, which is tried first."""
        for detail in errors_of(self._check, self._mending.arguments):
            self._mending.blank(self._mending.place(detail))
        open_places = self._mending.open_places()
        if any(not place for place in open_places) or not self._fits(open_places):
            return {"instruction": "Correct the arguments and call again."}
        arguments, kept = _elided(self._mending.arguments)
        steps = [f"fill in {_listed(_text(place) for place in open_places)}"] if open_places else []
        steps += [f"put {_listed(kept)} back as you sent it"] if kept else []
        if not steps:
            instruction = "Send the corrected call in `next`."
        else:
            todo = " and ".join(steps)
            instruction = f"{todo[0].upper()}{todo[1:]}, then send the call in `next`."
        return {"instruction": instruction, "next": {"tool": self._tool, "arguments": arguments}}

    def _fits(self, open_places: list[Place]) -> bool:
        """Whether nothing is wrong any more outside the places that are left open."""
        left = [self._mending.place(detail) for detail in errors_of(self._check, self._mending.arguments)]
        return all(any(place[: len(blank)] == blank for blank in open_places) for place in left)

    def _problem(self, detail: ErrorDetails) -> str:
        place = self._mending.place(detail)
        if not place:
            return _sentence(detail["msg"])
        if detail["type"] == "extra_forbidden":
            # Two members of a union may refuse the same name; it is gone after the first.
            return self._unknown(place) if place[-1] == detail["loc"][-1] else ""
        if place in self._told:
            return ""
        self._told.add(place)
        return self._missing(place) if detail["type"] == "missing" else self._wrong(place, detail)

    def _unknown(self, place: Place) -> str:
        *holder, last = place
        inside, name = tuple(holder), short(_text(place))
        value = self._mending.take(place)
        self._unknown_names += 1
        known = list(self._mending.schema_at(inside).get("properties", {}))
        close = self._free_name(str(last), inside, known)
        if close is None:
            there = f"; the arguments are {_listed(known) or 'none'}" if not inside and self._unknown_names == 1 else ""
            return f"There is no argument `{name}`{there}."
        meant = (*inside, close)
        self._told.add(meant)
        self._mending.put(meant, value)
        return f"There is no argument `{name}`; `{_text(meant)}` is meant, it seems."

    def _free_name(self, name: str, inside: Place, known: list[str]) -> str | None:
        """The nearest known name that the call does not use, as long as there are few to look for."""
        if self._unknown_names > _MAX_PROBLEMS:
            return None
        used = self._mending.value_at(inside)
        return next(iter(nearest(name, (each for each in known if each not in used))), None)

    def _missing(self, place: Place) -> str:
        schema = self._mending.schema_at(place)
        self._mending.blank(place)
        about = f", {schema['description']}" if schema.get("description") else ""
        return f"`{_text(place)}` is missing ({short(type_text(schema), 200)}{short(about, 200)})."

    def _wrong(self, place: Place, detail: ErrorDetails) -> str:
        schema = self._mending.schema_at(place)
        given = self._mending.value_at(place)
        self._mending.put(place, _guess(schema, given))
        if schema and (detail["type"] in _TYPE_ERRORS or "anyOf" in schema):
            said = f" must be {short(type_text(schema), 200)}"
        else:
            said = _said(detail["msg"])
        return f"`{_text(place)}`{said}; got {short_repr(given)}."


def _guess(schema: JsonObject, given: Any) -> Any:
    """The value that was probably meant; or the one that was given, which the check then refuses."""
    # A constant is no choice: it may be the word that a person has to say before the tool may act.
    texts = {str(choice): choice for choice in schema.get("enum", ())} if "const" not in schema else {}
    if isinstance(given, str) and texts and (close := nearest(given, texts)):
        return texts[close[0]]
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool) and fits(given)
    if is_number and schema.get("type") == "string":
        return str(given)
    takes_one = schema.get("type") == "array" and isinstance(given, (str, int, float))
    return [given] if takes_one else given


_TYPE_ERRORS = frozenset(
    {"literal_error", "enum", "string_type", "int_type", "int_parsing", "int_from_float", "float_type", "float_parsing",
     "bool_type", "bool_parsing", "list_type", "dict_type", "model_type", "none_required"}
)  # fmt: skip


def _code(details: list[ErrorDetails], unreadable: list[str]) -> ErrorCode:
    kinds = {detail["type"] for detail in details}
    if unreadable or "extra_forbidden" in kinds:
        return ErrorCode.VALIDATION_UNKNOWN_PARAM
    if "missing" in kinds:
        return ErrorCode.VALIDATION_MISSING_PARAM
    return ErrorCode.VALIDATION_INVALID_PARAM


def _elided(arguments: JsonObject) -> tuple[JsonObject, list[str]]:
    """The arguments without their large values, which the caller has anyway, and the names of those."""
    large = [name for name, value in arguments.items() if not fits(value)]
    return {name: "<as you sent it>" if name in large else value for name, value in arguments.items()}, large


def _text(place: Place) -> str:
    head, *rest = place
    return short(str(head) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest))


def _said(message: str) -> str:
    if message.startswith("Input "):
        return " " + message.removeprefix("Input ").rstrip(".")
    return ": " + _sentence(message, "")


def _sentence(text: str, end: str = ".") -> str:
    return short(text.removeprefix("Value error, ").removeprefix("Assertion failed, ").rstrip("."), 400) + end


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _MAX_NAMES} more" if len(known) > _MAX_NAMES else ""
    return ", ".join(f"`{short(name)}`" for name in known[:_MAX_NAMES]) + more

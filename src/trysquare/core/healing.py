"""Argument errors that heal: what is wrong, what was expected, the nearest name, and the corrected call.

The corrected call is tried before it is offered: either it fits, or the instruction names what is left to fill in.
Neither the text nor the corrected call holds the value of a secret argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast

from pydantic import ValidationError

from trysquare.core.arguments import type_text
from trysquare.core.error_places import Place, Problem, located
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.mending import Mending
from trysquare.core.nearest import nearest
from trysquare.core.result import clean
from trysquare.core.schema_fit import as_schema_says, satisfies
from trysquare.core.secrets import MASK, SecretTexts, masked, secret_places
from trysquare.core.shortening import fits, short, short_repr
from trysquare.core.types import JsonObject

WRAPPER_KEYS = ("args", "arguments", "parameters", "params", "input", "kwargs")
_MAX_PROBLEMS = 8
_MAX_NAMES = 12

Check: TypeAlias = Callable[[JsonObject, Literal["forbid"] | None], Any]
"""Validates arguments, or raises pydantic's `ValidationError`; `forbid` refuses extra names at every depth."""


def unwrapped(raw: JsonObject, properties: Mapping[str, Any]) -> JsonObject:
    """The arguments themselves, where a model put them one level too deep: `{"args": {…}}`."""
    if len(raw) != 1:
        return raw
    [(key, inner)] = raw.items()
    if key not in WRAPPER_KEYS or key in properties or not isinstance(inner, dict):
        return raw
    return cast(JsonObject, inner)


def checked(check: Check, *, tool: str, raw: JsonObject, schema: Callable[[], JsonObject]) -> Any:
    """What the check makes of the arguments, or the error that a model reads: one short message, and the cure."""
    try:
        return check(raw, "forbid")
    except ValidationError as error:
        problems = located(error.errors(include_url=False), raw, schema())
    if problems:
        raise _Healer(tool=tool, raw=raw, schema=schema(), check=check).heal(problems)
    # Only names that are left are those which the author of an inner model lets through.
    return check(raw, None)


class _Healer:
    """Tells what is wrong with one call, and mends a copy of its arguments as it goes."""

    def __init__(self, *, tool: str, raw: JsonObject, schema: JsonObject, check: Check) -> None:
        self._tool = tool
        self._raw = raw
        self._schema = schema
        self._check = check
        self._mending = Mending(raw)
        self._shown = masked(raw, schema)
        self._secrets = SecretTexts(raw, schema)
        self._unknown_names = 0
        self._told: set[Place] = set()

    def heal(self, problems: list[Problem]) -> InvalidArguments:
        said: list[str] = []
        unreadable = [name for name in self._raw if clean(name) != name]
        if unreadable:
            self._mending.drop(unreadable)
            problems = self._problems()
            said.append("An argument's name holds a character that is no text.")
        # Unknown names first: a misspelt name explains why the right one is missing.
        ordered = sorted(problems, key=lambda problem: problem.kind != "extra")
        said.extend(text for problem in ordered if (text := self._said(problem)))
        shown = said[:_MAX_PROBLEMS]
        if len(said) > len(shown):
            shown.append(f"And {len(said) - len(shown)} more.")
        return InvalidArguments(" ".join(shown), code=_code(problems, unreadable), **self._cure())

    def _problems(self) -> list[Problem]:
        """What is wrong with the arguments as they now stand."""
        arguments = self._mending.arguments
        try:
            self._check(arguments, "forbid")
        except ValidationError as error:
            return located(error.errors(include_url=False), arguments, self._schema)
        return []

    def _cure(self) -> JsonObject:
        """The instruction and the corrected call, which is tried first."""
        for problem in self._problems():
            if problem.kind == "key":
                self._mending.blank_key(problem.place, _key_schema(problem))
            else:
                self._mending.blank(problem.place, problem.schema)
        open_places = self._mending.open_places()
        if any(not place for place in open_places) or not self._fits(open_places):
            return {"instruction": "Correct the arguments and call again."}
        self._write_as_schema_says()
        kept = self._keep_back(open_places)
        steps = [f"fill in {_listed(_text(place) for place in open_places)}"] if open_places else []
        steps += [f"put {_listed(kept)} back as you sent it"] if kept else []
        if not steps:
            instruction = "Send the corrected call in `next`."
        else:
            todo = " and ".join(steps)
            instruction = f"{todo[0].upper()}{todo[1:]}, then send the call in `next`."
        return {"instruction": instruction, "next": {"tool": self._tool, "arguments": self._mending.arguments}}

    def _fits(self, open_places: list[Place]) -> bool:
        """Whether nothing is wrong any more outside the places that are left open."""
        left = [problem.place for problem in self._problems()]
        return all(any(place[: len(blank)] == blank for blank in open_places) for place in left)

    def _write_as_schema_says(self) -> None:
        """Write values that the check takes in another form, such as "5" for 5, in the one that the schema names."""
        before, wrong = self._mending.arguments, self._problems()
        self._mending.arguments = as_schema_says(before, self._schema)
        if len(self._problems()) > len(wrong):
            self._mending.arguments = before

    def _keep_back(self, open_places: list[Place]) -> list[str]:
        """Take large and secret values out of the arguments: the caller has them anyway. Returns their names."""
        arguments = self._mending.arguments
        large: list[Place] = [(name,) for name, value in arguments.items() if not fits(value)]
        secret = [place for place in secret_places(arguments, self._schema) if place not in open_places]
        kept = [*large, *(place for place in secret if place[:1] not in large)]
        for place in kept:
            self._mending.put(place, "<as you sent it>")
        return [_text(place) for place in kept]

    def _said(self, problem: Problem) -> str:
        """Tell one problem, and mend it where it is plain how."""
        place = problem.place
        if not place:
            return _sentence(self._secrets.masked(problem.message))
        if problem.kind == "extra":
            return self._unknown(problem)
        if place in self._told:
            return ""
        self._told.add(place)
        if problem.kind == "key":
            return self._wrong_key(problem)
        return self._missing(problem) if problem.kind == "missing" else self._wrong(problem)

    def _unknown(self, problem: Problem) -> str:
        *holder, last = problem.place
        inside, name = tuple(holder), short(_text(problem.place))
        value = self._mending.take(problem.place)
        self._unknown_names += 1
        known = list(problem.schema.get("properties", {}))
        close = self._free_name(str(last), inside, known)
        if close is None:
            is_first = self._unknown_names == 1
            there = f"; the {'arguments' if not inside else 'names there'} are {_listed(known) or 'none'}"
            return f"There is no argument `{name}`{there if is_first else ''}."
        meant = (*inside, close)
        self._told.add(meant)
        self._mending.put(meant, value)
        return f"There is no argument `{name}`; `{_text(meant)}` is meant, it seems."

    def _free_name(self, name: str, inside: Place, known: list[str]) -> str | None:
        """The nearest known name that the call does not use, as long as there are few to look for."""
        if self._unknown_names > _MAX_PROBLEMS:
            return None
        used: Any = self._mending.value_at(inside) or ()
        return next(iter(nearest(name, (each for each in known if each not in used))), None)

    def _missing(self, problem: Problem) -> str:
        schema = problem.schema
        self._mending.blank(problem.place, schema)
        about = f", {schema['description']}" if schema.get("description") else ""
        return f"`{_text(problem.place)}` is missing ({short(type_text(schema), 200)}{short(about, 200)})."

    def _wrong_key(self, problem: Problem) -> str:
        *holder, last = problem.place
        inside, wanted = tuple(holder), _key_schema(problem)
        choices = [str(choice) for choice in wanted.get("enum", ())]
        used: Any = self._mending.value_at(inside) or ()
        close = nearest(str(last), (choice for choice in choices if choice not in used))
        if close:
            self._mending.rename(problem.place, close[0])
        name, where = short(str(last)), _text(inside) if inside else "the arguments"
        if choices:
            return f"`{where}` takes no key `{name}`; its keys are {short(type_text(wanted), 200)}."
        return f"The key `{name}` of `{where}`{_rule(self._secrets.masked(problem.message))}."

    def _wrong(self, problem: Problem) -> str:
        place, schema = problem.place, problem.schema
        given = self._mending.value_at(place)
        self._mending.put(place, _guess(schema, given))
        wanted = short(type_text(schema), 200)
        is_of_type = not schema or satisfies(given, schema, self._schema)
        if (_is_type_error(problem.kind) or "anyOf" in schema) and not is_of_type:
            said = f" must be {wanted}"
        else:
            said = _rule(self._secrets.masked(problem.message))
        return f"`{_text(place)}`{said}; got {self._got(place)}."

    def _got(self, place: Place) -> str:
        """What was given, as it may be shown."""
        inside: Any = self._shown
        for part in place:
            if inside == MASK or not isinstance(inside, (dict, list)):
                break
            inside = cast(Any, inside)[part]
        return MASK if inside == MASK else self._secrets.masked(short_repr(inside))


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


_TYPE_ERRORS = frozenset({"literal_error", "enum", "int_from_float", "none_required"})


def _is_type_error(kind: str) -> bool:
    return kind in _TYPE_ERRORS or kind.endswith(("_type", "_parsing"))


def _code(problems: list[Problem], unreadable: list[str]) -> ErrorCode:
    kinds = {problem.kind for problem in problems}
    if unreadable or "extra" in kinds:
        return ErrorCode.VALIDATION_UNKNOWN_PARAM
    if "missing" in kinds:
        return ErrorCode.VALIDATION_MISSING_PARAM
    return ErrorCode.VALIDATION_INVALID_PARAM


def _key_schema(problem: Problem) -> JsonObject:
    """What the keys of the object around a problem have to be, as far as its schema tells."""
    names: Any = problem.schema.get("propertyNames")
    return cast(JsonObject, names) if isinstance(names, dict) else {"type": "key"}


def _text(place: Place) -> str:
    head, *rest = place
    return short(str(head) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest))


def _rule(message: str) -> str:
    if message.startswith("Input "):
        return " " + message.removeprefix("Input ").rstrip(".")
    return ": " + _sentence(message, "")


def _sentence(text: str, end: str = ".") -> str:
    return short(text.removeprefix("Value error, ").removeprefix("Assertion failed, ").rstrip("."), 400) + end


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _MAX_NAMES} more" if len(known) > _MAX_NAMES else ""
    return ", ".join(f"`{short(name)}`" for name in known[:_MAX_NAMES]) + more

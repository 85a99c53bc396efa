"""Repair of arguments by their problems: coerce, rename, leave out, fill in.

`repair_arguments` sends what is only written differently, with a note for each change. `suggest` goes further, by
guesses and blanks: its result is offered to the caller and never sent.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, cast

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject, JsonPath, as_object
from trysquare.core.schema.coercion import coercions, folded, from_json
from trysquare.core.schema.describe import path_text
from trysquare.core.schema.draft import ArgumentsDraft
from trysquare.core.schema.errors import WRAPPER_KEYS, argument_error
from trysquare.core.schema.validator import Call, InputValidator, Problem
from trysquare.core.text import closest_names, edit_distance, truncate, truncated_repr

_WRAPPERS = frozenset({*WRAPPER_KEYS, "inputs", "tool_inputs", "value"})
_MAX_ROUNDS, _MAX_NOTES = 40, 12


class Repaired(NamedTuple):
    """Arguments that fit their schema, as far as it can be checked."""

    arguments: JsonObject
    """The very object that was given, where nothing had to be repaired."""
    notes: tuple[str, ...] = ()
    """What was repaired, and names that look misspelt, for the caller."""


def repair_arguments(validator: InputValidator, given: Any, call: Call) -> Repaired:
    """Validate arguments against a foreign schema and repair what loses nothing; raises `InvalidArguments`."""
    if type(given) is dict and validator.compiled.fits(given):
        fitting = cast(JsonObject, given)
        return Repaired(fitting, _doubtful_names(fitting, validator))
    notes: list[str] = []
    arguments = _unwrapped(validator, _parsed(given, notes), notes)
    if not isinstance(arguments, dict):
        raise InvalidArguments(
            f"The arguments must be a JSON object; got {truncated_repr(arguments)}.",
            code=ErrorCode.VALIDATION_INVALID_REQUEST,
            instruction='Send the arguments as an object, such as {"name": "value"}.',
        )
    draft = ArgumentsDraft(cast(JsonObject, arguments), validator.whole, validator.compiled.problems)
    for _ in range(_MAX_ROUNDS):
        changes = _rename_slips(draft, draft.problems())
        changes += draft.try_values(draft.problems(), coercions)
        if not changes:
            break
        notes += changes
    if problems := draft.problems():
        raise argument_error(draft, problems, call)
    return Repaired(draft.arguments, (*notes, *_doubtful_names(draft.arguments, validator)))


def _rename_slips(draft: ArgumentsDraft, problems: list[Problem]) -> list[str]:
    """Rename each unknown argument that can only be a slip of one known name. Returns notes."""
    notes: list[str] = []
    for problem in problems:
        if problem.keyword in ("additionalProperties", "required"):
            *inside, name = problem.path
            for given, meant in _clear_slips(draft, problem, tuple(inside)).items():
                if name in (given, meant):
                    draft.put((*inside, meant), draft.take((*inside, given)))
                    notes.append(f"`{path_text((*inside, given))}` was renamed to `{path_text((*inside, meant))}`.")
    return notes


def _clear_slips(draft: ArgumentsDraft, problem: Problem, inside: JsonPath) -> dict[str, str]:
    """Each unknown name that can mean only one free name, which no other one can mean."""
    holder = as_object(draft.value_at(inside))
    known = as_object(problem.schema.get("properties"))
    free = [name for name in known if name not in holder]
    meant = {name: [one for one in free if _is_slip(name, one)] for name in holder if name not in known}
    claims = Counter(one for names in meant.values() for one in names)
    return {name: names[0] for name, names in meant.items() if len(names) == 1 and claims[names[0]] == 1}


def _is_slip(given: str, meant: str) -> bool:
    """Whether one name is the other, written differently or with one letter wrong."""
    one, other = folded(given), folded(meant)
    return one == other or (min(len(one), len(other)) >= 4 and edit_distance(one[:60], other[:60], 1) == 1)


def _doubtful_names(arguments: JsonObject, validator: InputValidator) -> tuple[str, ...]:
    """Notes on names that the schema lets pass and that look misspelt. Nothing is changed."""
    if validator.is_open or arguments.keys() <= validator.names:
        return ()
    unknown = [name for name in arguments if name not in validator.names][:_MAX_NOTES]
    close = ((name, closest_names(name, validator.names - arguments.keys())) for name in unknown)
    return tuple(
        f"Unknown argument `{truncate(name)}` was sent unchanged. Did you mean `{truncate(meant[0])}`?"
        for name, meant in close
        if meant
    )


def _parsed(given: Any, notes: list[str]) -> Any:
    """The arguments as an object, where they were sent as JSON text or not at all."""
    if given is None:
        return {}
    if isinstance(given, str) and isinstance(value := from_json(given), dict):
        notes.append("The arguments came as text and were parsed as JSON.")
        return cast(JsonObject, value)
    return given


def _unwrapped(validator: InputValidator, given: Any, notes: list[str]) -> Any:
    """The arguments themselves, where they were sent one level too deep and the tool has no such name."""
    outer = as_object(given)
    if len(outer) != 1:
        return given
    [(key, value)] = outer.items()
    inner = as_object(from_json(value) if isinstance(value, str) else value)
    is_wrapper = key in _WRAPPERS and key not in validator.names
    if not is_wrapper or not (inner.keys() & validator.names) or validator.compiled.fits(outer):
        return given
    notes.append(f"The arguments were nested in `{key}` and were unwrapped.")
    return inner

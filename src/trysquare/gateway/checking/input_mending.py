"""InputMending: the inputs of one call, mended on a copy where nothing can be lost by it. Each mending is told."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

from trysquare.catalog.schema_parts import as_object
from trysquare.catalog.spelling import slips
from trysquare.core.healing import WRAPPER_KEYS
from trysquare.core.mending import Mending, Place
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.checker import Checker
from trysquare.gateway.checking.checking import Problem
from trysquare.gateway.checking.coercion import coercions, folded, parsed_json
from trysquare.gateway.checking.problem_text import place_text

_MOST_MENDED = 40
_WRAPPERS = frozenset({*WRAPPER_KEYS, "inputs", "tool_inputs", "value"})


class InputMending:
    """A copy of the inputs in the making, beside what their schema has against it."""

    def __init__(self, checker: Checker, inputs: Any) -> None:
        self.checker = checker
        self.notes: list[str] = []
        self.given = self._unwrapped(self._read(inputs))
        self._copy = Mending(as_object(self.given))

    @property
    def inputs(self) -> JsonObject:
        """The inputs as they now stand."""
        return self._copy.arguments

    def problems(self) -> list[Problem]:
        """What is wrong with the inputs as they now stand."""
        return self.checker.compiled.problems(self.inputs)

    def mend(self) -> list[Problem]:
        """Mend one thing after another, since text that was read as JSON can hold more; returns what is left."""
        for _ in range(_MOST_MENDED):
            problems = self.problems()
            if not any(self._mend_one(problem) for problem in problems):
                return problems
        return self.problems()

    def value_at(self, place: Place) -> Any:
        """What stands at a place."""
        return self._copy.value_at(place)

    def put(self, place: Place, value: Any) -> None:
        """Set a place to a value."""
        self._copy.put(place, value)

    def take(self, place: Place) -> Any:
        """Remove a place and return what stood there."""
        return self._copy.take(place)

    def holds(self, place: Place) -> bool:
        """Whether a place stands: something above it may have been mended away."""
        holder = self.value_at(place[:-1])
        return place[-1] in holder if isinstance(holder, dict) else isinstance(holder, list)

    def improve(self, place: Place, value: Any) -> bool:
        """Put a value where nothing is wrong at its place then; else leave all as it was."""
        old, before = self.value_at(place), len(self.problems())
        self.put(place, value)
        now = self.problems()
        at_place = any(problem.place == place for problem in now)
        # Text that was read as JSON may show more problems inside than the one that it was; they come next.
        if not at_place and (len(now) < before or isinstance(value, (dict, list))):
            return True
        self.put(place, old)
        return False

    def _read(self, inputs: Any) -> Any:
        """The inputs as an object, where they were sent as JSON text or not at all."""
        if inputs is None:
            return {}
        if isinstance(inputs, str) and isinstance(value := parsed_json(inputs), dict):
            self.notes.append("The inputs came as text and were read as JSON.")
            return cast(JsonObject, value)
        return inputs

    def _unwrapped(self, inputs: Any) -> Any:
        """The inputs themselves, where they were sent one level too deep and the tool knows no such name."""
        given = as_object(inputs)
        if len(given) != 1:
            return inputs
        [(key, value)] = given.items()
        inner = as_object(parsed_json(value) if isinstance(value, str) else value)
        is_wrapper = key in _WRAPPERS and key not in self.checker.names
        if not is_wrapper or not (inner.keys() & self.checker.names) or self.checker.compiled.fits(given):
            return inputs
        self.notes.append(f"The inputs lay inside of `{key}` and were taken out of it.")
        return inner

    def _mend_one(self, problem: Problem) -> bool:
        if problem.keyword in ("additionalProperties", "required"):
            return self._mend_name(problem)
        if not problem.place or not self.holds(problem.place):
            return False
        value = self.value_at(problem.place)
        if value is None:
            return self._leave_out(problem.place)
        for coerced in coercions(value, problem.schema, self.checker.whole):
            if self.improve(problem.place, coerced.value):
                self.notes.append(f"`{place_text(problem.place)}`: {coerced.told}.")
                return True
        return False

    def _leave_out(self, place: Place) -> bool:
        """Take out a null that is not allowed, unless the name is then missing."""
        if not isinstance(place[-1], str):
            return False
        self.take(place)
        if any(problem.place == place for problem in self.problems()):
            self.put(place, None)
            return False
        self.notes.append(f"`{place_text(place)}` was null, which is not allowed, and was left out.")
        return True

    def _mend_name(self, problem: Problem) -> bool:
        """Rename an unknown input to the one known name that it is a slip of."""
        *inside, name = problem.place
        for given, meant in self._clear_slips(problem, tuple(inside)).items():
            if name in (given, meant):
                self.put((*inside, meant), self.take((*inside, given)))
                self.notes.append(f"`{place_text((*inside, given))}` was taken for `{place_text((*inside, meant))}`.")
                return True
        return False

    def _clear_slips(self, problem: Problem, inside: Place) -> dict[str, str]:
        """Each unknown name that can mean only one free name, which no other one can mean."""
        holder = as_object(self.value_at(inside))
        known = as_object(problem.schema.get("properties"))
        free = [name for name in known if name not in holder]
        meant = {name: [one for one in free if is_slip(name, one)] for name in holder if name not in known}
        claims = Counter(one for names in meant.values() for one in names)
        return {name: names[0] for name, names in meant.items() if len(names) == 1 and claims[names[0]] == 1}


def is_slip(given: str, meant: str) -> bool:
    """Whether one name is the other, written differently or with one letter wrong."""
    one, other = folded(given), folded(meant)
    if one == other:
        return True
    return min(len(one), len(other)) >= 4 and slips(one[:60], other[:60], 1) == 1

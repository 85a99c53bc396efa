"""Corrected inputs: what a caller may send instead, with a blank for everything that only they can know."""

from __future__ import annotations

from collections.abc import Callable

from trysquare.catalog.schema_parts import as_object
from trysquare.core.mending import Place
from trysquare.core.nearest import nearest
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.checking import Problem
from trysquare.gateway.checking.coercion import guesses
from trysquare.gateway.checking.input_mending import InputMending
from trysquare.gateway.checking.local_refs import resolved
from trysquare.gateway.checking.signatures import schema_text


class Correction:
    """Carries inputs on to where they would fit, by guesses and blanks. They are offered and never sent."""

    def __init__(self, mending: InputMending) -> None:
        self._mending = mending
        self.open_places: list[Place] = []

    def inputs(self, problems: list[Problem]) -> JsonObject | None:
        """Inputs that fit outside of the open places; None where there are none to offer."""
        # Unknown names first: a misspelt name explains why the right one is missing.
        for problem in sorted(problems, key=lambda problem: problem.keyword != "additionalProperties"):
            self._apply(self._guess, problem)
        for problem in self._mending.problems():
            self._apply(self._blank, problem)
        left = self._mending.problems()
        return self._mending.inputs if all(self._is_open(problem.place) for problem in left) else None

    def _apply(self, change: Callable[[Problem], None], problem: Problem) -> None:
        if problem.keyword == "required":
            self._fill(problem)
        elif problem.place and self._mending.holds(problem.place):
            change(problem)

    def _guess(self, problem: Problem) -> None:
        if problem.keyword == "additionalProperties":
            self._rename(problem)
            return
        value, whole = self._mending.value_at(problem.place), self._mending.checker.whole
        for guess in guesses(value, problem.schema, whole):
            if self._mending.improve(problem.place, guess):
                return

    def _rename(self, problem: Problem) -> None:
        """Take an unknown name out; its value goes to the nearest known name that is free."""
        *inside, name = problem.place
        value = self._mending.take(problem.place)
        holder = as_object(self._mending.value_at(tuple(inside)))
        free = [one for one in as_object(problem.schema.get("properties")) if one not in holder]
        if close := nearest(str(name), free):
            self._mending.put((*inside, close[0]), value)

    def _fill(self, problem: Problem) -> None:
        """Put a missing input in: its default, or a blank."""
        if self._mending.holds(problem.place):
            return
        named = as_object(as_object(problem.schema.get("properties")).get(str(problem.place[-1])))
        schema = resolved(named, self._mending.checker.whole)
        if "default" in schema:
            self._mending.put(problem.place, schema["default"])
        else:
            self._leave_open(problem.place, schema)

    def _blank(self, problem: Problem) -> None:
        self._leave_open(problem.place, problem.schema)

    def _leave_open(self, place: Place, schema: JsonObject) -> None:
        if self._is_open(place):
            return
        self.open_places = [*(known for known in self.open_places if known[: len(place)] != place), place]
        self._mending.put(place, f"<{schema_text(schema, self._mending.checker.whole)}>")

    def _is_open(self, place: Place) -> bool:
        return any(place[: len(blank)] == blank for blank in self.open_places)

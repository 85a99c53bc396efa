"""Checking: whether a value fits a schema that was made into tests, and everything that is wrong where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from trysquare.core.mending import Place
from trysquare.core.types import JsonObject

_MOST_STEPS, _MOST_PROBLEMS = 20_000, 50


class Unchecked(Exception):
    """A schema, or a value under it, would take more work than a check is worth."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What one keyword has against one place."""

    place: Place
    keyword: str
    schema: JsonObject
    """The schema that refuses: of the place itself, or, for a missing or unknown name, of its holder."""


class Work:
    """How much a check may still do: references and choices can multiply without end."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST_STEPS

    def step(self) -> None:
        """One step more; raises `Unchecked` where there were too many."""
        self.left -= 1
        if self.left < 0:
            raise Unchecked


class Node:
    """A schema as tests. Filled in after it is made, since a schema can hold itself."""

    __slots__ = ("rules", "schema")

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        self.rules: tuple[Rule, ...] = ()

    def fits(self, value: Any, work: Work) -> bool:
        """Whether every rule is met."""
        for rule in self.rules:  # noqa: SIM110 - a loop takes half the time of all() with a generator
            if not rule.fits(value, work):
                return False
        return True


Part: TypeAlias = tuple[str | int | None, Node, Any]
"""A step inside, or None for the same place; what must fit there; and the value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One keyword of a schema: a test, and for the telling what it looked at."""

    keyword: str
    fits: Callable[[Any, Work], bool]
    parts: Callable[[Any, Work], Iterable[Part]] | None = None
    options: tuple[Node, ...] = ()
    names: Callable[[Any], Iterable[str]] | None = None


class CompiledSchema:
    """A schema, ready to be asked."""

    def __init__(self, root: Node) -> None:
        self._root = root

    def fits(self, value: Any) -> bool:
        """Whether a value fits, as far as can be told."""
        try:
            return self._root.fits(value, Work())
        except (Unchecked, RecursionError):
            return True

    def problems(self, value: Any) -> list[Problem]:
        """Everything that is wrong with a value."""
        try:
            found = list(islice(_problems(self._root, value, (), Work()), _MOST_PROBLEMS))
        except (Unchecked, RecursionError):
            return []
        return list({(problem.place, problem.keyword): problem for problem in found}.values())


def _problems(node: Node, value: Any, place: Place, work: Work) -> Iterator[Problem]:
    for rule in node.rules:
        if rule.fits(value, work):
            continue
        if rule.parts is not None:
            for step, inner, part in rule.parts(value, work):
                yield from _problems(inner, part, place if step is None else (*place, step), work)
        elif rule.names is not None:
            for name in rule.names(value):
                yield Problem(place=(*place, name), keyword=rule.keyword, schema=node.schema)
        else:
            nearest = _nearest_option(rule, value, place, work)
            yield from nearest or [Problem(place=place, keyword=rule.keyword, schema=node.schema)]


def _nearest_option(rule: Rule, value: Any, place: Place, work: Work) -> list[Problem]:
    """What the option that was probably meant has against a value; nothing where none is of the right kind."""
    told = [list(islice(_problems(option, value, place, work), _MOST_PROBLEMS)) for option in rule.options]
    near = [problems for problems in told if problems and not any(one.place == place for one in problems)]
    return min(near, key=_strangeness) if near else []


def _strangeness(problems: list[Problem]) -> tuple[int, int]:
    """A constant that differs says that another option was meant."""
    return sum(problem.keyword in ("const", "enum") for problem in problems), len(problems)

"""Problems in words: what is wrong with one input, and what belongs there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trysquare.catalog.schema_parts import as_object
from trysquare.core.mending import Place
from trysquare.core.nearest import nearest
from trysquare.core.shortening import short, short_repr
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text
from trysquare.gateway.checking.checking import Problem
from trysquare.gateway.checking.local_refs import resolved
from trysquare.gateway.checking.signatures import one_line, schema_text

_MOST_NAMES = 12
_LIMITS = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} names",
    "maxProperties": "must have at most {} names",
    "pattern": "must match {}",
}
_TYPED = frozenset({"type", "enum", "const", "anyOf", "oneOf"})


def problem_text(problem: Problem, value: Any, whole: JsonObject) -> str:
    """One sentence about a problem, which a model can act on."""
    if problem.keyword == "required":
        return _missing(problem, whole)
    if problem.keyword == "additionalProperties":
        return _unknown(problem)
    where = f"`{place_text(problem.place)}`" if problem.place else "The inputs"
    return f"{where} {_rule(problem, whole)}; got {short_repr(value)}."


def place_text(place: Place) -> str:
    """A place as people write it: `files[0].path`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return short(cleaned_text(text.removeprefix(".")))


def named(names: Iterable[str]) -> str:
    """Some names, listed; those past a dozen are counted."""
    known = list(names)
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return ", ".join(f"`{short(name)}`" for name in known[:_MOST_NAMES]) + more


def _missing(problem: Problem, whole: JsonObject) -> str:
    schema = resolved(as_object(as_object(problem.schema.get("properties")).get(str(problem.place[-1]))), whole)
    told = one_line(str(schema.get("description", "")))
    about = f", {told}" if told else ""
    return f"`{place_text(problem.place)}` is missing ({schema_text(schema, whole)}{about})."


def _unknown(problem: Problem) -> str:
    known = list(as_object(problem.schema.get("properties")))
    close = nearest(str(problem.place[-1]), known)
    there = f"perhaps `{short(close[0])}`" if close else f"the inputs are {named(known) or 'none'}"
    return f"There is no input `{place_text(problem.place)}`; {there}."


def _rule(problem: Problem, whole: JsonObject) -> str:
    keyword, schema = problem.keyword, problem.schema
    if keyword in _TYPED:
        return f"must be {schema_text(schema, whole)}"
    if keyword in _LIMITS:
        return _LIMITS[keyword].format(short(cleaned_text(str(schema.get(keyword)))))
    if keyword == "uniqueItems":
        return "must not hold the same item twice"
    if keyword == "dependentRequired":
        return "is missing beside what was given"
    return f"does not meet `{keyword}` of the tool's schema"

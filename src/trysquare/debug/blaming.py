"""Blaming: which value of a failing line the failure is about, where something speaks for it; else what is known."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.origins import Origin, Spot, name_called, only_callee, origins_of, returned_by, told_return
from trysquare.debug.sources import Sources
from trysquare.debug.suspicion import (
    Scene,
    Suspect,
    calls_in,
    expressions,
    is_assertion,
    missing_name,
    named_values,
    sides,
    suspects,
)

_COMPARING = frozenset(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "contains", "bool", "len"))
"""Methods by which a value itself says whether an assertion holds."""
_FACTS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A value of the failing line, with its way back as far as it was recorded."""

    suspect: Suspect
    origins: tuple[Origin, ...] = ()
    is_stated: bool = False
    """Whether the test itself says it: a literal, or something that the test was given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The value that is spoken of, or None; and all that is known of the line."""

    blamed: Known | None = None
    facts: tuple[Known, ...] = ()


def verdict(spot: Spot, error_type: str, message: str, sources: Sources) -> Verdict:
    """What the failing line tells. A value is blamed where the exception's words, or the assertion, leave no other."""
    frame = spot.frame
    statement = sources.statement(str(frame["file"]), int(frame["line"]))
    if isinstance(statement, ast.Raise):
        return Verdict()
    if (name := missing_name(error_type, message)) is not None:
        return Verdict(blamed=Known(suspect=Suspect(expression=name, value="not defined here")))
    values = {**_attributes(spot.record), **cast(dict[str, str], frame.get("locals") or {})}
    scene = Scene(statement=statement, values=values, types=cast(dict[str, str], frame.get("types") or {}))
    if is_assertion(statement):
        return _of_assertion(spot, scene, sources)
    found = [_known(suspect, spot, sources) for suspect in suspects(scene, error_type, message)]
    if not found and (callee := _none_from_call(spot, statement, message, sources)) is not None:
        found = [_from_call(callee, sources)]
    if len({each.suspect.value for each in found}) == 1:
        return Verdict(blamed=found[0], facts=tuple(found))
    others = [_known(suspect, spot, sources) for suspect in named_values(scene)]
    return Verdict(facts=tuple((found or others)[:_FACTS]))


def _of_assertion(spot: Spot, scene: Scene, sources: Sources) -> Verdict:
    """Each side that is not written out; where all but one are the test's own words, that one is what is tested."""
    found: dict[Suspect, Known] = {}
    for side in sides(scene.statement):
        for known in _of_side(side, spot, scene, sources):
            found.setdefault(known.suspect, known)
    facts = tuple(found.values())
    tested = [each for each in facts if not each.is_stated]
    compared = any(_short_name(each) in _COMPARING for each in _made_at(spot, sources))
    is_clear = len(tested) == 1 and bool(tested[0].origins) and not compared
    return Verdict(blamed=tested[0] if is_clear else None, facts=facts[:_FACTS])


def _of_side(side: ast.expr, spot: Spot, scene: Scene, sources: Sources) -> list[Known]:
    """What one side of an assertion rests on: the calls that gave it, or the values that it names."""
    line = int(spot.frame["line"])
    # An attribute may be a property, which is called without saying so.
    names = [*calls_in(side), *(part.attr for part in ast.walk(side) if isinstance(part, ast.Attribute))]
    called = [each for each in _made_at(spot, sources) if _short_name(each) in names]
    if not called and calls_in(side) and (one := only_callee(line, scene.statement, spot.record)) is not None:
        called = [one]
    if called:
        return [_from_call(each, sources) for each in _outermost(side, called, scene.statement)]
    named = list(dict.fromkeys(expressions(side)))
    known = [Suspect(expression=name, value=scene.values[name]) for name in named if name in scene.values]
    whole = [each for each in known if each.expression == ast.unparse(side)] or known
    return [_known(each, spot, sources) for each in whole if not each.value.startswith(("<function", "<class", "<mod"))]


def _outermost(side: ast.expr, called: list[JsonObject], statement: ast.AST | None) -> list[JsonObject]:
    """The call whose result is the side itself, where it is one and its name is called once; else all of them."""
    outer = side.func if isinstance(side, ast.Call) else side
    name = outer.attr if isinstance(outer, ast.Attribute) else ast.unparse(outer)
    gave = [each for each in called if _short_name(each) == name]
    is_once = statement is not None and [name_called(part) for part in ast.walk(statement)].count(name) == 1
    return gave[-1:] if gave and is_once else called


def _known(suspect: Suspect, spot: Spot, sources: Sources) -> Known:
    origins = tuple(origins_of(suspect.expression, suspect.value, spot, sources))
    return Known(suspect=suspect, origins=origins, is_stated=_is_stated(suspect, origins, spot, sources))


def _is_stated(suspect: Suspect, origins: Sequence[Origin], spot: Spot, sources: Sources) -> bool:
    """Whether a value is the test's own word: passed to the test, or written out in it."""
    if not spot.is_test:
        return False
    if not origins:
        return suspect.expression in cast(dict[str, str], spot.record.get("arguments") or {})
    return all(each.is_test and each.record is None and _is_written_out(each, sources) for each in origins)


def _is_written_out(origin: Origin, sources: Sources) -> bool:
    """Whether a line gives a name a value without calling anything."""
    statement = sources.statement(origin.file, origin.line)
    if isinstance(statement, ast.For | ast.AsyncFor):
        given: ast.expr | None = statement.iter
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        given = statement.value
    else:
        return False
    return given is not None and not any(isinstance(part, ast.Call | ast.Await) for part in ast.walk(given))


def _from_call(callee: JsonObject, sources: Sources) -> Known:
    """A call on the failing line gave the value: the way back goes through it."""
    call, _, value = told_return(callee).partition(" yielded " if "yields" in callee else " returned ")
    if "yields" in callee:
        suspect = Suspect(expression=f"what {call} yielded", value=value)
    else:
        suspect = Suspect(expression=f"what {call} returned", value=str(callee.get("returned")))
    return Known(suspect=suspect, origins=tuple(returned_by(callee, sources)))


def _none_from_call(spot: Spot, statement: ast.AST | None, message: str, sources: Sources) -> JsonObject | None:
    """The call that gave the None which the exception speaks of, where the line made one such call."""
    if "NoneType" not in message:
        return None
    names = calls_in(statement)
    made = [each for each in _made_at(spot, sources) if "yields" not in each and _short_name(each) in names]
    gave = [each for each in made if each.get("returned") == "None"]
    return gave[0] if len(gave) == 1 else None


def _made_at(spot: Spot, sources: Sources) -> list[JsonObject]:
    """The calls that the failing line made and that came back."""
    return [each for each in _made_in(spot, sources) if each.get("at") == int(spot.frame["line"])]


def _made_in(spot: Spot, sources: Sources) -> list[JsonObject]:
    """The calls that the failing statement made when it ran last: in a loop it may have run before, and held."""
    statement = sources.statement(str(spot.frame["file"]), int(spot.frame["line"]))
    line = int(spot.frame["line"])
    first, last = (line, line) if statement is None else (statement.lineno, statement.end_lineno or line)
    steps = cast(list[list[Any]], spot.record.get("steps") or [])
    since = int(spot.record.get("count") or 0)
    is_inside = False
    for step in reversed(steps):
        # After the statement only the ends of blocks around it have run.
        if is_inside and not first <= int(step[0]) <= last:
            break
        is_inside = is_inside or first <= int(step[0]) <= last
        since -= 1
    made = [each for each in _callees(spot) if int(each.get("at_count") or 0) > since]
    return [each for each in made if first <= int(each.get("at") or 0) <= last]


def _short_name(callee: JsonObject) -> str:
    return str(callee["function"]).rpartition(".")[2]


def _callees(spot: Spot) -> list[JsonObject]:
    return cast(list[JsonObject], spot.record.get("callees") or [])


def calls_from(spot: Spot, sources: Sources) -> list[JsonObject]:
    """The calls that the failing statement made, with those in the body of a `with` that failed at its end."""
    return [each for each in _made_in(spot, sources) if _short_name(each) != "__init__"]


def _attributes(record: JsonObject) -> dict[str, str]:
    """The last known values of attributes such as `self.total`."""
    values: dict[str, str] = {}
    changes = [cast(dict[str, str], record.get("arguments") or {})]
    changes += [step[1] for step in cast(list[list[Any]], record.get("steps") or []) if len(step) > 1]
    for change in changes:
        values.update({name: text for name, text in change.items() if "." in name})
    return values

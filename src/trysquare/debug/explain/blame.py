"""Blame: the value of a failing line that the failure is about, if there is evidence; else the known values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from trysquare.core.json import JsonObject
from trysquare.debug.explain.provenance import (
    Origin,
    SourceLocation,
    ValueTrace,
    callees_of,
    only_callee,
    return_text,
    short_name,
    steps_of,
)
from trysquare.debug.explain.suspects import (
    FailingLine,
    Suspect,
    calls_in,
    compared_in,
    is_assertion,
    missing_name,
    name_called,
    suspects,
    values_of,
)
from trysquare.debug.sources import Sources

_COMPARING = frozenset(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "contains", "bool", "len"))
"""Methods by which a value itself decides whether an assertion is true."""
_MAX_FACTS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A value of the failing line, with its origins as far as they were recorded."""

    suspect: Suspect
    origins: tuple[Origin, ...] = ()
    is_stated: bool = False
    """Whether the test itself states it: a literal, or something that the test was given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The value to blame, or None; and the known values of the line."""

    blamed: Known | None = None
    facts: tuple[Known, ...] = ()


def verdict(at: SourceLocation, error_type: str, message: str, sources: Sources) -> Verdict:
    """Blame a value of the failing line if the exception's message, or the assertion, leaves no other."""
    statement = sources.statement(at.file, at.line)
    if isinstance(statement, ast.Raise):
        return Verdict()
    if (name := missing_name(error_type, message)) is not None:
        return Verdict(blamed=Known(suspect=Suspect(expression=name, value="not defined here")))
    values = {**_attributes(at.record), **cast(dict[str, str], at.frame.get("locals") or {})}
    line = FailingLine(statement=statement, values=values, types=cast(dict[str, str], at.frame.get("types") or {}))
    if is_assertion(statement):
        return _of_assertion(at, line, sources)
    found = [_known(suspect, at, sources) for suspect in suspects(line, error_type, message)]
    if not found and (callee := _none_from_call(at, statement, message, sources)) is not None:
        found = [_from_call(callee, sources)]
    if len({each.suspect.value for each in found}) == 1:
        return Verdict(blamed=found[0], facts=tuple(found))
    others = [_known(suspect, at, sources) for suspect in values_of(statement, line)]
    return Verdict(facts=tuple((found or others)[:_MAX_FACTS]))


def _of_assertion(at: SourceLocation, line: FailingLine, sources: Sources) -> Verdict:
    """The values of each operand; if the test states all but one, that one is tested."""
    found: dict[Suspect, Known] = {}
    for operand in compared_in(line.statement):
        for known in _of_operand(operand, at, line, sources):
            found.setdefault(known.suspect, known)
    facts = tuple(found.values())
    tested = [each for each in facts if not each.is_stated]
    compared = any(short_name(each) in _COMPARING for each in _calls_at(at, sources))
    is_clear = len(tested) == 1 and bool(tested[0].origins) and not compared
    return Verdict(blamed=tested[0] if is_clear else None, facts=facts[:_MAX_FACTS])


def _of_operand(operand: ast.expr, at: SourceLocation, line: FailingLine, sources: Sources) -> list[Known]:
    """The calls that returned an operand, or the values that it names."""
    # An attribute may be a property, which is called without call syntax.
    names = [*calls_in(operand), *(part.attr for part in ast.walk(operand) if isinstance(part, ast.Attribute))]
    called = [each for each in _calls_at(at, sources) if short_name(each) in names]
    if not called and calls_in(operand) and (one := only_callee(at.line, line.statement, at.record)) is not None:
        called = [one]
    if called:
        return [_from_call(each, sources) for each in _outermost(operand, called, line.statement)]
    known = values_of(operand, line)
    whole = [each for each in known if each.expression == ast.unparse(operand)] or known
    return [_known(each, at, sources) for each in whole]


def _outermost(operand: ast.expr, called: list[JsonObject], statement: ast.AST | None) -> list[JsonObject]:
    """The call whose result is the operand itself, if its name is called once; else all of them."""
    outer = operand.func if isinstance(operand, ast.Call) else operand
    name = outer.attr if isinstance(outer, ast.Attribute) else ast.unparse(outer)
    named = [each for each in called if short_name(each) == name]
    is_once = statement is not None and [name_called(part) for part in ast.walk(statement)].count(name) == 1
    return named[-1:] if named and is_once else called


def _known(suspect: Suspect, at: SourceLocation, sources: Sources) -> Known:
    origins = tuple(ValueTrace(sources).of(suspect.expression, suspect.value, at))
    return Known(suspect=suspect, origins=origins, is_stated=_is_stated(suspect, origins, at, sources))


def _is_stated(suspect: Suspect, origins: Sequence[Origin], at: SourceLocation, sources: Sources) -> bool:
    """Whether the test itself states a value: it was passed to the test, or is a literal in it."""
    if not at.is_test:
        return False
    if not origins:
        return suspect.expression in cast(dict[str, str], at.record.get("arguments") or {})
    return all(each.is_test and each.record is None and _is_literal(each, sources) for each in origins)


def _is_literal(origin: Origin, sources: Sources) -> bool:
    """Whether a line gives a name a value without calling anything."""
    statement = sources.statement(origin.file, origin.line)
    given: ast.expr | None = None
    if isinstance(statement, ast.For | ast.AsyncFor):
        given = statement.iter
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        given = statement.value
    return given is not None and not any(isinstance(part, ast.Call | ast.Await) for part in ast.walk(given))


def _from_call(callee: JsonObject, sources: Sources) -> Known:
    verb = "yielded" if "yields" in callee else "returned"
    call, _, value = return_text(callee).partition(f" {verb} ")
    value = value if verb == "yielded" else str(callee.get("returned"))
    suspect = Suspect(expression=f"what {call} {verb}", value=value)
    return Known(suspect=suspect, origins=tuple(ValueTrace(sources).of_return(callee)))


def _none_from_call(at: SourceLocation, statement: ast.AST | None, message: str, sources: Sources) -> JsonObject | None:
    """The only call of the line that returned the None of the exception's message."""
    if "NoneType" not in message:
        return None
    names = calls_in(statement)
    made = [each for each in _calls_at(at, sources) if "yields" not in each and short_name(each) in names]
    found = [each for each in made if each.get("returned") == "None"]
    return found[0] if len(found) == 1 else None


def calls_from(at: SourceLocation, sources: Sources) -> list[JsonObject]:
    """The calls of the failing statement, with those in the body of a `with` that failed at its end."""
    return [each for each in _calls_in_statement(at, sources) if short_name(each) != "__init__"]


def _calls_at(at: SourceLocation, sources: Sources) -> list[JsonObject]:
    """The calls of the failing line that returned."""
    return [each for each in _calls_in_statement(at, sources) if each.get("at") == at.line]


def _calls_in_statement(at: SourceLocation, sources: Sources) -> list[JsonObject]:
    """The calls that the failing statement made when it ran last: in a loop it may have run before and passed."""
    statement = sources.statement(at.file, at.line)
    first, last = (at.line, at.line) if statement is None else (statement.lineno, statement.end_lineno or at.line)
    since = int(at.record.get("count") or 0)
    is_inside = False
    for step in reversed(steps_of(at.record)):
        # After the statement only the ends of blocks around it have run.
        if is_inside and not first <= int(step[0]) <= last:
            break
        is_inside = is_inside or first <= int(step[0]) <= last
        since -= 1
    made = [each for each in callees_of(at.record) if int(each.get("at_count") or 0) > since]
    return [each for each in made if first <= int(each.get("at") or 0) <= last]


def _attributes(record: JsonObject) -> dict[str, str]:
    """The last known values of attributes such as `self.total`."""
    changes = [cast(dict[str, str], record.get("arguments") or {})]
    changes += [step[1] for step in steps_of(record) if len(step) > 1]
    return {name: text for change in changes for name, text in change.items() if "." in name}

"""Origins: where a value came from, walked back through what was recorded: writes, calls, arguments."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.sources import Sources
from trysquare.debug.suspicion import Scene, calls_in, expressions, suspects

_DEEPEST = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """One step back: at this line, the value was written, returned or passed."""

    file: str
    line: int
    code: str
    what: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """A frame in a chain of callers, with the line at which it stands and its record."""

    frame: JsonObject
    callers: Sequence[JsonObject]
    """The own frames above, the nearest last."""

    @property
    def record(self) -> JsonObject:
        return cast(JsonObject, self.frame.get("record") or {})


def origins_of(expression: str, value: str, spot: Spot, sources: Sources, depth: int = _DEEPEST) -> list[Origin]:
    """The way back of a value, the nearest step first. Empty where nothing of it was recorded."""
    if depth == 0:
        return []
    written = _last_write(expression, spot.record)
    if written is not None:
        return _from_write(expression, value, written, spot, sources, depth)
    if expression.split(".")[0].split("[")[0] in _arguments(spot.record):
        return _from_caller(expression, value, spot, sources, depth)
    return []


def _last_write(expression: str, record: JsonObject) -> int | None:
    """The line that last changed a name; a subscript changes with what it is taken from."""
    names = (expression, expression.split("[")[0])
    for step in reversed(cast(list[list[Any]], record.get("steps") or [])):
        if len(step) > 1 and any(name in step[1] for name in names):
            return int(step[0])
    return None


def _from_write(expression: str, value: str, line: int, spot: Spot, sources: Sources, depth: int) -> list[Origin]:
    file = str(spot.record["file"])
    here = Origin(file=file, line=line, code=sources.line(file, line), what=f"{expression} = {value}")
    statement = sources.statement(file, line)
    callee = _callee_that_gave(value, line, calls_in(statement), spot.record)
    if callee is not None:
        return [here, *_from_return(callee, value, sources, depth - 1)]
    deeper = _same_value_on_line(expression, value, statement, spot, sources, depth - 1, line)
    return [here, *deeper]


def _same_value_on_line(
    expression: str, value: str, statement: ast.AST | None, spot: Spot, sources: Sources, depth: int, line: int
) -> list[Origin]:
    """`a = b`: the value came from `b`, if that held the same."""
    known = _values_before(spot.record, line)
    for name in expressions(statement):
        if name != expression and known.get(name) == value and value not in ("0", "1", "True", "False", "''"):
            return origins_of(name, value, spot, sources, depth)
    return []


def returned_by(callee: JsonObject, sources: Sources) -> list[Origin]:
    """The way back of what a call returned."""
    return _from_return(callee, str(callee.get("returned")), sources, _DEEPEST)


def _from_return(callee: JsonObject, value: str, sources: Sources, depth: int) -> list[Origin]:
    file, line = str(callee["file"]), int(callee["last_line"])
    function = str(callee["function"]).rpartition(".")[2]
    statement = sources.statement(file, line)
    given = ", ".join(f"{name}={text}" for name, text in _arguments(callee).items() if name not in ("self", "cls"))
    fell = "" if isinstance(statement, ast.Return) else " by reaching its end without a return"
    here = Origin(
        file=file, line=line, code=sources.line(file, line), what=f"{function}({given}) returned {value}{fell}"
    )
    if depth <= 0 or not isinstance(statement, ast.Return):
        return [here]
    spot = Spot(frame={"record": callee}, callers=())
    values = _values_before(callee, line)
    scene = Scene(statement=statement, values=values, types={})
    for suspect in suspects(scene, "", ""):
        if suspect.value == value or len(values) == 1:
            return [here, *origins_of(suspect.expression, suspect.value, spot, sources, depth - 1)]
    inner = _callee_that_gave(value, line, calls_in(statement), callee)
    if inner is not None:
        return [here, *_from_return(inner, value, sources, depth - 1)]
    blamed = next(iter(suspects(scene, "", "")), None)
    return [here] if blamed is None else [here, *origins_of(blamed.expression, blamed.value, spot, sources, depth - 1)]


def _from_caller(expression: str, value: str, spot: Spot, sources: Sources, depth: int) -> list[Origin]:
    if not spot.callers:
        return []
    *above, caller = spot.callers
    file, line = str(caller["file"]), int(caller["line"])
    here = Origin(file=file, line=line, code=sources.line(file, line), what=f"passed {expression} = {value}")
    record = cast(JsonObject, caller.get("record") or {})
    values = _values_before(record, line) | cast(dict[str, str], caller.get("locals") or {})
    outer = Spot(frame=caller, callers=above)
    for name in expressions(sources.statement(file, line)):
        if values.get(name) == value:
            return [here, *origins_of(name, value, outer, sources, depth - 1)]
    callee = _callee_that_gave(value, line, calls_in(sources.statement(file, line)), record)
    return [here] if callee is None else [here, *_from_return(callee, value, sources, depth - 1)]


def _callee_that_gave(value: str, line: int, names: Sequence[str], record: JsonObject) -> JsonObject | None:
    """The last call from a line that returned this value."""
    for callee in reversed(cast(list[JsonObject], record.get("callees") or [])):
        function = str(callee["function"]).rpartition(".")[2]
        if callee.get("at") == line and function in names and callee.get("returned") == value:
            return callee
    return None


def _arguments(record: JsonObject) -> dict[str, str]:
    given = cast(dict[str, str], record.get("arguments") or {})
    return {name: text for name, text in given.items() if "." not in name}


def _values_before(record: JsonObject, line: int) -> dict[str, str]:
    """What each name held when a line last began."""
    values = dict(cast(dict[str, str], record.get("arguments") or {}))
    steps = cast(list[list[Any]], record.get("steps") or [])
    last = max((index for index, step in enumerate(steps) if step[0] == line), default=len(steps))
    for step in steps[:last]:
        if len(step) > 1:
            values.update(step[1])
    return values

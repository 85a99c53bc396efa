"""Origins: where a value came from, walked back through what was recorded: writes, calls, arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.sources import Sources
from trysquare.debug.suspicion import calls_in, expressions

_DEEPEST = 6
_EMPTY = ("None", "[]", "{}", "''", "0", "0.0", "set()", "()", "nan")
_COMMON = ("0", "1", "True", "False", "''")
"""Values that two names hold by chance, so that one says nothing about the other."""
_MUTABLE = (ast.List, ast.Dict, ast.Set)


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """One step back: at this line, the value was written, returned or passed."""

    file: str
    line: int
    code: str
    what: str
    name: str = ""
    """The name that held the value there."""
    record: JsonObject | None = None
    """The frame that returned it, where it was a call's."""
    ran: frozenset[int] = frozenset()
    """The lines that ran in its function."""
    is_test: bool = False
    """Whether the line is the test's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """A frame with its record, and the user's frames above it, the nearest last."""

    frame: JsonObject
    callers: Sequence[JsonObject]

    @property
    def record(self) -> JsonObject:
        return cast(JsonObject, self.frame.get("record") or {})

    @property
    def is_test(self) -> bool:
        return bool(self.frame.get("test"))


class WayBack:
    """The search for one value's origin."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def of(self, expression: str, value: str, spot: Spot, depth: int = _DEEPEST) -> list[Origin]:
        """The steps back, the nearest first. Empty where nothing of it was recorded."""
        if depth <= 0 or not spot.record:
            return []
        line = _last_write(expression, spot.record)
        if line is not None:
            return self._from_write(expression, value, line, spot, depth)
        if _root(expression) in _arguments(spot.record):
            return self._from_attribute(expression, value, spot, depth) or self._from_caller(
                expression, value, spot, depth
            )
        return []

    def of_return(self, callee: JsonObject, depth: int = _DEEPEST) -> list[Origin]:
        """The steps back of what a call returned."""
        value = str(callee.get("returned"))
        file, line = str(callee["file"]), self._return_line(callee)
        statement = self._sources.statement(file, line)
        here = self._origin(file, line, told_return(callee, statement), record=callee, ran=_ran(callee))
        if "yields" in callee:
            return [here]
        spot = Spot(frame={"record": callee}, callers=())
        shared = self._shared_default(callee)
        if shared is not None:
            return [here, shared]
        if depth <= 0 or not isinstance(statement, ast.Return) or isinstance(statement.value, (*_MUTABLE, ast.Tuple)):
            return [here]
        inner = _callee_that_gave(value, line, statement, callee)
        if inner is not None:
            return [here, *self.of_return(inner, depth - 1)]
        return [here, *self._from_names(statement, value, spot, line, depth - 1)]

    def _return_line(self, callee: JsonObject) -> int:
        """The `return` that ran last; what ran after it, such as the end of a `with`, gave no value."""
        file = str(callee["file"])
        if callee.get("yields"):
            return int(callee["yield_line"])
        for step in reversed(cast(list[list[Any]], callee.get("steps") or [])):
            if step[0] and isinstance(self._sources.statement(file, int(step[0])), ast.Return):
                return int(step[0])
        return int(callee["last_line"])

    def _from_write(self, expression: str, value: str, line: int, spot: Spot, depth: int) -> list[Origin]:
        file = str(spot.record["file"])
        statement = self._sources.statement(file, line)
        here = self._origin(file, line, f"{expression} = {value}", name=expression, spot=spot)
        callee = _callee_that_gave(value, line, statement, spot.record)
        if callee is None and isinstance(statement, ast.For | ast.AsyncFor):
            callee = _last_callee(line, statement, spot.record)
        if callee is not None:
            return [here, *self.of_return(callee, depth - 1)]
        if not _assigns(statement, expression):
            return [here, *self._from_making(expression, line, spot, depth - 1)]
        return [here, *self._from_names(statement, value, spot, line, depth - 1, but=expression)]

    def _from_making(self, expression: str, line: int, spot: Spot, depth: int) -> list[Origin]:
        """The value was changed where it lies; where it was made may be what is wrong with it."""
        file = str(spot.record["file"])
        for made in reversed(_lines_that_wrote(expression, spot.record)):
            statement = self._sources.statement(file, made)
            if made != line and _assigns(statement, expression):
                callee = _last_callee(made, statement, spot.record)
                return [] if callee is None else self.of_return(callee, depth)
        return []

    def _from_names(
        self, statement: ast.AST | None, value: str, spot: Spot, line: int, depth: int, but: str = ""
    ) -> list[Origin]:
        """`a = b`: the value came from `b`, if that held the same, or was as empty."""
        known = _values_before(spot.record, line)
        named = [name for name in expressions(statement) if name != but and name in known]
        same = [name for name in named if known[name] == value and value not in _COMMON]
        empty = [name for name in named if value in _EMPTY and known[name] in _EMPTY]
        for name in [*same, *empty]:
            return self.of(name, known[name], spot, depth)
        return []

    def _from_attribute(self, expression: str, value: str, spot: Spot, depth: int) -> list[Origin]:
        """An attribute was written by a method that ran before: look among the calls of the frames above."""
        if not expression.startswith(("self.", "cls.")):
            return []
        for caller in reversed(spot.callers):
            record = cast(JsonObject, caller.get("record") or {})
            for callee in reversed(cast(list[JsonObject], record.get("callees") or [])):
                line = _last_write(expression, callee)
                if line is not None and _last_text(expression, callee) == value:
                    what = f"{expression} = {value}"
                    return [self._origin(str(callee["file"]), line, what, record=callee, ran=_ran(callee))]
        return []

    def _from_caller(self, expression: str, value: str, spot: Spot, depth: int) -> list[Origin]:
        if not spot.callers:
            return []
        *above, caller = spot.callers
        file, line = str(caller["file"]), int(caller["line"])
        outer = Spot(frame=caller, callers=above)
        here = self._origin(file, line, f"called with {expression} = {value}", name=expression, spot=outer)
        statement = self._sources.statement(file, line)
        known = {**_values_before(outer.record, line), **cast(dict[str, str], caller.get("locals") or {})}
        for name in expressions(statement):
            if known.get(name) == value:
                return [here, *self.of(name, value, outer, depth - 1)]
        callee = _callee_that_gave(value, line, statement, outer.record)
        return [here] if callee is None else [here, *self.of_return(callee, depth - 1)]

    def _shared_default(self, callee: JsonObject) -> Origin | None:
        """A default value that an earlier call has changed: all calls share it."""
        file = str(callee["file"])
        function = self._sources.function(file, int(callee["first_line"]))
        call = self._call_of(callee)
        if function is None or call is None:
            return None
        positional = [*function.args.posonlyargs, *function.args.args]
        pairs = [
            *zip(reversed(positional), reversed(function.args.defaults), strict=False),
            *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=False),
        ]
        for argument, default in pairs:
            text = _arguments(callee).get(argument.arg)
            is_left_out = _is_left_out(argument.arg, positional, call)
            if is_left_out and isinstance(default, _MUTABLE) and text is not None and text != ast.unparse(default):
                what = f"the default value of {argument.arg} is shared by all calls; it held {text} already"
                return self._origin(file, function.lineno, what, name=argument.arg)
        return None

    def _call_of(self, callee: JsonObject) -> ast.Call | None:
        """The call in the caller's statement that a callee answered, where it is the only one by its name."""
        statement = self._sources.statement(str(callee.get("at_file") or ""), int(callee.get("at") or 0))
        name = str(callee["function"]).rpartition(".")[2]
        calls = [part for part in ast.walk(statement) if isinstance(part, ast.Call)] if statement else []
        named = [part for part in calls if name_called(part) == name]
        return named[0] if len(named) == 1 else None

    def _origin(
        self, file: str, line: int, what: str, *, name: str = "", record: JsonObject | None = None,
        ran: frozenset[int] = frozenset(), spot: Spot | None = None,
    ) -> Origin:  # fmt: skip
        return Origin(
            file=file,
            line=line,
            code=self._sources.line(file, line),
            what=what,
            name=name,
            record=record,
            ran=_ran(spot.record) if spot is not None else ran,
            is_test=spot is not None and spot.is_test,
        )


def origins_of(expression: str, value: str, spot: Spot, sources: Sources) -> list[Origin]:
    """The way back of a value, the nearest step first."""
    return WayBack(sources).of(expression, value, spot)


def returned_by(callee: JsonObject, sources: Sources) -> list[Origin]:
    """The way back of what a call returned."""
    return WayBack(sources).of_return(callee)


def deciding(origin: Origin, sources: Sources) -> Iterator[Origin]:
    """The loops and conditions that decided whether an origin's line ran, and those that ran and look at its name."""
    heads = sources.heads_around(origin.file, origin.line)
    function = sources.function_around(origin.file, origin.line)
    others = (
        []
        if function is None or not origin.name
        else [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.If | ast.While) and node.lineno in origin.ran and origin.name in expressions(node)
        ]
    )
    for head in dict.fromkeys([*heads, *others]):
        code = sources.line(origin.file, head.lineno)
        what = "decided whether it ran" if head in heads else f"asked for {origin.name}"
        yield Origin(file=origin.file, line=head.lineno, code=code, what=what, is_test=origin.is_test)


def told_return(callee: JsonObject, statement: ast.AST | None = None) -> str:
    """A call with what it was given, and what came back: of a generator, what it yielded."""
    function = str(callee["function"]).rpartition(".")[2]
    given = ", ".join(f"{name}={text}" for name, text in _arguments(callee).items() if name not in ("self", "cls"))
    if "yields" in callee:
        times = int(callee["yields"])
        last = (
            "nothing"
            if not times
            else f"{callee['yielded']} once"
            if times == 1
            else f"{times} values, the last {callee['yielded']}"
        )
        return f"{function}({given}) yielded {last}"
    is_end = statement is not None and not isinstance(statement, ast.Return) and callee.get("returned") == "None"
    fell = ", for it has no return there" if is_end and function != "<lambda>" else ""
    return f"{function}({given}) returned {callee.get('returned')}{fell}"


def name_called(call: ast.AST) -> str:
    """The last part of the name that a call is made by; nothing for what is not a call."""
    if not isinstance(call, ast.Call):
        return ""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _is_left_out(name: str, positional: Sequence[ast.arg], call: ast.Call) -> bool:
    """Whether a call leaves a parameter to its default value, as far as its words tell."""
    names = [each.arg for each in positional]
    is_open = any(isinstance(each, ast.Starred) for each in call.args) or any(not each.arg for each in call.keywords)
    if is_open or name in {each.arg for each in call.keywords}:
        return False
    is_method = names[:1] in (["self"], ["cls"])
    return name not in names or names.index(name) - is_method >= len(call.args)


def _ran(record: JsonObject) -> frozenset[int]:
    return frozenset(int(step[0]) for step in cast(list[list[Any]], record.get("steps") or []))


def _root(expression: str) -> str:
    return expression.split(".")[0].split("[")[0]


def _names_for(expression: str) -> tuple[str, ...]:
    """What to look for among changes: a subscript changes with what it is taken from."""
    return (expression, expression.split("[")[0])


def _lines_that_wrote(expression: str, record: JsonObject) -> list[int]:
    names = _names_for(expression)
    steps = cast(list[list[Any]], record.get("steps") or [])
    # A step of line 0 stands for lines that were not recorded; one of them wrote, and nobody knows which.
    return [int(step[0]) for step in steps if step[0] and len(step) > 1 and any(name in step[1] for name in names)]


def _last_write(expression: str, record: JsonObject) -> int | None:
    lines = _lines_that_wrote(expression, record)
    return lines[-1] if lines else None


def _last_text(expression: str, record: JsonObject) -> str | None:
    for step in reversed(cast(list[list[Any]], record.get("steps") or [])):
        if len(step) > 1 and expression in step[1]:
            return str(step[1][expression])
    return None


def _assigns(statement: ast.AST | None, expression: str) -> bool:
    """Whether a statement gives the name a new value, and does not only change the one it has."""
    if isinstance(statement, ast.For | ast.AsyncFor):
        return _root(expression) in {part.id for part in ast.walk(statement.target) if isinstance(part, ast.Name)}
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(expression in {ast.unparse(part) for part in ast.walk(target)} for target in targets)


def _calls_from(line: int, record: JsonObject) -> list[JsonObject]:
    return [each for each in cast(list[JsonObject], record.get("callees") or []) if each.get("at") == line]


def _last_callee(line: int, statement: ast.AST | None, record: JsonObject) -> JsonObject | None:
    names = calls_in(statement)
    named = [each for each in _calls_from(line, record) if str(each["function"]).rpartition(".")[2] in names]
    return named[-1] if named else None


def _callee_that_gave(value: str, line: int, statement: ast.AST | None, record: JsonObject) -> JsonObject | None:
    """The last call from a line that returned this value: one by a name of the line, or the only one that it made."""
    callee = _last_callee(line, statement, record) or only_callee(line, statement, record)
    return callee if callee is not None and "yields" not in callee and callee.get("returned") == value else None


def only_callee(line: int, statement: ast.AST | None, record: JsonObject) -> JsonObject | None:
    """What a line's only call ran, where that goes by another name: a decorated function, or one that was passed."""
    made = _calls_from(line, record)
    return made[0] if len(made) == 1 and len(calls_in(statement)) == 1 else None


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

"""Provenance: where a value of a failing line came from, traced back through the recorded run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.json import JsonObject
from trysquare.debug.explain.suspects import calls_in, expressions, name_called
from trysquare.debug.sources import Sources

_MAX_DEPTH = 6
_EMPTY = ("None", "[]", "{}", "''", "0", "0.0", "set()", "()", "nan")
_COMMON = ("0", "1", "True", "False", "''")
"""Values that two names have by chance, so that one says nothing about the other."""
_MUTABLE = (ast.List, ast.Dict, ast.Set)


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """One step back: at this line, the value was written, returned or passed."""

    file: str
    line: int
    code: str
    what: str
    name: str = ""
    """The name that had the value there."""
    record: JsonObject | None = None
    """The frame that returned it, if a call did."""
    ran: frozenset[int] = frozenset()
    """The lines that ran in its function."""
    is_test: bool = False
    """Whether the line is the test's own."""

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLocation:
    """A frame with its record, and the user's frames above it, the nearest last."""

    frame: JsonObject
    callers: Sequence[JsonObject]

    @property
    def record(self) -> JsonObject:
        return cast(JsonObject, self.frame.get("record") or {})

    @property
    def file(self) -> str:
        return str(self.frame["file"])

    @property
    def line(self) -> int:
        return int(self.frame["line"])

    @property
    def is_test(self) -> bool:
        return bool(self.frame.get("test"))


class ValueTrace:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def of(self, expression: str, value: str, at: SourceLocation, depth: int = _MAX_DEPTH) -> list[Origin]:
        """The origins of a value, the nearest first; empty if nothing of it was recorded."""
        if depth <= 0 or not at.record:
            return []
        line = _last_write(expression, at.record)
        if line is not None:
            return self._from_write(expression, value, line, at, depth)
        if _root(expression) in _arguments(at.record):
            return self._from_attribute(expression, value, at) or self._from_caller(expression, value, at, depth)
        return []

    def of_return(self, callee: JsonObject, depth: int = _MAX_DEPTH) -> list[Origin]:
        value = str(callee.get("returned"))
        file, line = str(callee["file"]), self._return_line(callee)
        statement = self._sources.statement(file, line)
        here = self._origin(file, line, return_text(callee, statement), record=callee)
        if "yields" in callee:
            return [here]
        if (shared := self._shared_default(callee)) is not None:
            return [here, shared]
        if depth <= 0 or not isinstance(statement, ast.Return) or isinstance(statement.value, (*_MUTABLE, ast.Tuple)):
            return [here]
        inner = _callee_that_gave(value, line, statement, callee)
        if inner is not None:
            return [here, *self.of_return(inner, depth - 1)]
        at = SourceLocation(frame={"record": callee}, callers=())
        return [here, *self._from_names(statement, value, at, line, depth - 1)]

    def _return_line(self, callee: JsonObject) -> int:
        """The `return` that ran last; what ran after it, such as the end of a `with`, gave no value."""
        if callee.get("yields"):
            return int(callee["yield_line"])
        for step in reversed(steps_of(callee)):
            if step[0] and isinstance(self._sources.statement(str(callee["file"]), int(step[0])), ast.Return):
                return int(step[0])
        return int(callee["last_line"])

    def _from_write(self, expression: str, value: str, line: int, at: SourceLocation, depth: int) -> list[Origin]:
        file = str(at.record["file"])
        statement = self._sources.statement(file, line)
        here = self._origin(file, line, f"{expression} = {value}", name=expression, at=at)
        callee = _callee_that_gave(value, line, statement, at.record)
        if callee is None and isinstance(statement, ast.For | ast.AsyncFor):
            callee = _last_callee(line, statement, at.record)
        if callee is not None:
            return [here, *self.of_return(callee, depth - 1)]
        if not _assigns(statement, expression):
            return [here, *self._from_creation(expression, line, at, depth - 1)]
        return [here, *self._from_names(statement, value, at, line, depth - 1, but=expression)]

    def _from_creation(self, expression: str, line: int, at: SourceLocation, depth: int) -> list[Origin]:
        """The value was changed in place; where it was created may be what is wrong with it."""
        file = str(at.record["file"])
        for made in reversed(_lines_that_wrote(expression, at.record)):
            statement = self._sources.statement(file, made)
            if made != line and _assigns(statement, expression):
                callee = _last_callee(made, statement, at.record)
                return [] if callee is None else self.of_return(callee, depth)
        return []

    def _from_names(
        self, statement: ast.AST | None, value: str, at: SourceLocation, line: int, depth: int, but: str = ""
    ) -> list[Origin]:
        """`a = b`: the value came from `b`, if that was the same, or was as empty."""
        known = _values_before(at.record, line)
        named = [name for name in expressions(statement) if name != but and name in known]
        same = [name for name in named if known[name] == value and value not in _COMMON]
        empty = [name for name in named if value in _EMPTY and known[name] in _EMPTY]
        name = next(iter([*same, *empty]), None)
        return [] if name is None else self.of(name, known[name], at, depth)

    def _from_attribute(self, expression: str, value: str, at: SourceLocation) -> list[Origin]:
        """An attribute was written by a method that ran before, among the calls of the frames above."""
        if not expression.startswith(("self.", "cls.")):
            return []
        for caller in reversed(at.callers):
            for callee in reversed(callees_of(cast(JsonObject, caller.get("record") or {}))):
                line = _last_write(expression, callee)
                if line is not None and _last_text(expression, callee) == value:
                    return [self._origin(str(callee["file"]), line, f"{expression} = {value}", record=callee)]
        return []

    def _from_caller(self, expression: str, value: str, at: SourceLocation, depth: int) -> list[Origin]:
        if not at.callers:
            return []
        *above, caller = at.callers
        outer = SourceLocation(frame=caller, callers=above)
        what = f"called with {expression} = {value}"
        here = self._origin(outer.file, outer.line, what, name=expression, at=outer)
        statement = self._sources.statement(outer.file, outer.line)
        known = {**_values_before(outer.record, outer.line), **cast(dict[str, str], caller.get("locals") or {})}
        for name in expressions(statement):
            if known.get(name) == value:
                return [here, *self.of(name, value, outer, depth - 1)]
        callee = _callee_that_gave(value, outer.line, statement, outer.record)
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
            is_omitted = _is_omitted(argument.arg, positional, call)
            if is_omitted and isinstance(default, _MUTABLE) and text is not None and text != ast.unparse(default):
                what = f"the default value of {argument.arg} is shared by all calls; it was {text} already"
                return self._origin(file, function.lineno, what, name=argument.arg)
        return None

    def _call_of(self, callee: JsonObject) -> ast.Call | None:
        """The call in the caller's statement, if it is the only one by the callee's name."""
        statement = self._sources.statement(str(callee.get("at_file") or ""), int(callee.get("at") or 0))
        calls = [part for part in ast.walk(statement) if isinstance(part, ast.Call)] if statement else []
        named = [part for part in calls if name_called(part) == short_name(callee)]
        return named[0] if len(named) == 1 else None

    def _origin(
        self, file: str, line: int, what: str, *, name: str = "", record: JsonObject | None = None,
        at: SourceLocation | None = None,
    ) -> Origin:  # fmt: skip
        is_test = at is not None and at.is_test
        steps = steps_of(at.record if at is not None else record or {})
        ran, code = frozenset(int(step[0]) for step in steps), self._sources.line(file, line)
        return Origin(file=file, line=line, code=code, what=what, name=name, record=record, ran=ran, is_test=is_test)


def deciding(origin: Origin, sources: Sources) -> Iterator[Origin]:
    """The loops and conditions that decided whether an origin's line ran, and those that ran and read its name."""
    blocks = sources.blocks_around(origin.file, origin.line)
    function = sources.function_around(origin.file, origin.line) if origin.name else None
    others = [
        node
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.If | ast.While) and node.lineno in origin.ran and origin.name in expressions(node)
    ]
    for block in dict.fromkeys([*blocks, *others]):
        code = sources.line(origin.file, block.lineno)
        what = "decided whether it ran" if block in blocks else f"read {origin.name}"
        yield Origin(file=origin.file, line=block.lineno, code=code, what=what, is_test=origin.is_test)


def return_text(callee: JsonObject, statement: ast.AST | None = None) -> str:
    """A call with its arguments and what it returned; of a generator, what it yielded."""
    function = short_name(callee)
    given = ", ".join(f"{name}={text}" for name, text in _arguments(callee).items() if name not in ("self", "cls"))
    if "yields" in callee:
        times, last = int(callee["yields"]), callee["yielded"]
        yielded = {0: "nothing", 1: f"{last} once"}.get(times, f"{times} values, the last {last}")
        return f"{function}({given}) yielded {yielded}"
    is_end = statement is not None and not isinstance(statement, ast.Return) and callee.get("returned") == "None"
    note = ", since it has no return there" if is_end and function != "<lambda>" else ""
    return f"{function}({given}) returned {callee.get('returned')}{note}"


def short_name(callee: JsonObject) -> str:
    """A function's name without those of the classes around it."""
    return str(callee["function"]).rpartition(".")[2]


def steps_of(record: JsonObject) -> list[list[Any]]:
    """The recorded lines of a frame, each with what it changed."""
    return cast(list[list[Any]], record.get("steps") or [])


def callees_of(record: JsonObject) -> list[JsonObject]:
    return cast(list[JsonObject], record.get("callees") or [])


def only_callee(line: int, statement: ast.AST | None, record: JsonObject) -> JsonObject | None:
    """What a line's only call ran, if that has another name: a decorated function, or one that was passed."""
    made = [each for each in callees_of(record) if each.get("at") == line]
    return made[0] if len(made) == 1 and len(calls_in(statement)) == 1 else None


def _last_callee(line: int, statement: ast.AST | None, record: JsonObject) -> JsonObject | None:
    names = calls_in(statement)
    named = [each for each in callees_of(record) if each.get("at") == line and short_name(each) in names]
    return named[-1] if named else None


def _callee_that_gave(value: str, line: int, statement: ast.AST | None, record: JsonObject) -> JsonObject | None:
    """The last call from a line that returned this value: one by a name of the line, or the only one that it made."""
    callee = _last_callee(line, statement, record) or only_callee(line, statement, record)
    return callee if callee is not None and "yields" not in callee and callee.get("returned") == value else None


def _is_omitted(name: str, positional: Sequence[ast.arg], call: ast.Call) -> bool:
    """Whether a call leaves a parameter to its default value, as far as its syntax shows."""
    names = [each.arg for each in positional]
    is_open = any(isinstance(each, ast.Starred) for each in call.args) or any(not each.arg for each in call.keywords)
    if is_open or name in {each.arg for each in call.keywords}:
        return False
    is_method = names[:1] in (["self"], ["cls"])
    return name not in names or names.index(name) - is_method >= len(call.args)


def _root(expression: str) -> str:
    return expression.split(".")[0].split("[")[0]


def _lines_that_wrote(expression: str, record: JsonObject) -> list[int]:
    # A subscript changes with the value that it is taken from.
    names = (expression, expression.split("[")[0])
    # A step of line 0 stands for lines that were not recorded; which of them wrote is unknown.
    changed = [step for step in steps_of(record) if step[0] and len(step) > 1]
    return [int(step[0]) for step in changed if any(name in step[1] for name in names)]


def _last_write(expression: str, record: JsonObject) -> int | None:
    lines = _lines_that_wrote(expression, record)
    return lines[-1] if lines else None


def _last_text(expression: str, record: JsonObject) -> str | None:
    for step in reversed(steps_of(record)):
        if len(step) > 1 and expression in step[1]:
            return str(step[1][expression])
    return None


def _assigns(statement: ast.AST | None, expression: str) -> bool:
    """Whether a statement gives the name a new value, instead of changing the one it has."""
    if isinstance(statement, ast.For | ast.AsyncFor):
        return _root(expression) in {part.id for part in ast.walk(statement.target) if isinstance(part, ast.Name)}
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(expression in {ast.unparse(part) for part in ast.walk(target)} for target in targets)


def _arguments(record: JsonObject) -> dict[str, str]:
    given = cast(dict[str, str], record.get("arguments") or {})
    return {name: text for name, text in given.items() if "." not in name}


def _values_before(record: JsonObject, line: int) -> dict[str, str]:
    """The values of each name when a line last began."""
    values = dict(cast(dict[str, str], record.get("arguments") or {}))
    steps = steps_of(record)
    last = max((index for index, step in enumerate(steps) if step[0] == line), default=len(steps))
    for step in steps[:last]:
        if len(step) > 1:
            values.update(step[1])
    return values

"""Ranking of suspects: the statements that a failing test ran, by all the evidence that there is for each."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from typing import Any

from trysquare.debug.recorder.slices import Dependence, Slice
from trysquare.debug.recorder.syntax import Module, Program, Statement, bodies

_UNCOUNTED = 0.4
"""Suspicion of what a failing test reads, if it is not known which others do."""
_NO_CODE = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ClassDef)

LATER, OTHER, BROKEN, EARLIER, NONE = "later", "other", "broken", "earlier", "none"
"""What a change makes of a failure: the test fails later, with another value, otherwise, earlier, or as before."""
_EFFECTS = {LATER: 1.5, OTHER: 1.0, BROKEN: 0.3, EARLIER: -1.0, NONE: -0.3, "": 0.0}


class Run:
    """One test of the spectrum."""

    def __init__(self, name: str, *, failed: bool, lines: dict[str, list[int]], seconds: float = 0.0) -> None:
        self.name = name
        self.failed = failed
        self.lines = {(file, line) for file, found in lines.items() for line in found}
        self.seconds = seconds
        self.statements: set[Statement] = set()


class Suspect:
    """A statement that may be wrong, with the evidence."""

    def __init__(self, file: str, statement: Statement) -> None:
        self.file = file
        self.statement = statement
        self.line = statement.line
        self.failing, self.passing = 0, 0
        """The numbers of failing and passing tests that run it."""
        self.ochiai = 0.0
        self.when = 0
        """When it ran last in the failing test."""
        self.is_on_stack, self.is_counted = False, True
        """Whether it is in the traceback, and whether it is known which tests run it."""
        self.dependence: Dependence | None = None
        self.fixed_by: Any = None
        """The first change that makes the failing test pass and breaks no other."""
        self.trials: list[dict[str, Any]] = []
        """What came of changing it."""

    @property
    def proof(self) -> dict[str, Any] | None:
        """The best change with which the failing test passes."""
        fixing = [each for each in self.trials if each["fixed"]]
        return max(
            fixing,
            key=lambda each: (each["breaks"] == 0, not each["removes"], each["also_fixed"], -each["breaks"]),
            default=None,
        )

    @property
    def is_proved(self) -> bool:
        """Whether a change of it makes all failing tests that reach it pass, and no other fail."""
        proof = self.proof
        return proof is not None and not proof["breaks"] and not proof["removes"] and proof["also_fixed_share"] == 1

    @property
    def influence(self) -> float:
        """How its changes changed the failure: for it if value or place did, against it if an earlier check broke."""
        reported = [each["effect"] for each in self.trials if each["ran"] and not each["fixed"]]
        return sum(_EFFECTS[each] for each in reported) / len(reported) if reported else 0.0

    @property
    def does_nothing(self) -> bool:
        """Whether it is a `pass` beside other statements: something may be missing there."""
        statement = self.statement
        if not isinstance(statement.node, ast.Pass):
            return False
        outer = statement.blocks[-1].node if statement.blocks else statement.scope.node
        return any(statement.node in body and len(body) > 1 for body in bodies(outer))

    @property
    def base(self) -> float:
        """Suspicion before anything was tried."""
        score = self.ochiai
        if self.dependence is not None:
            score += 0.12 + 0.12 / (1 + self.dependence.distance)
        elif self.does_nothing:
            score += 0.5
        if self.is_on_stack:
            score += 0.1
        return score

    @property
    def score(self) -> float:
        proof = self.proof
        score = self.base
        if proof is not None:
            worth = 1.0 if proof["breaks"] == 0 else 0.3 / (1 + proof["breaks"])
            # To leave something out makes many a check pass.
            score += worth * (0.7 if proof["removes"] else 1.0)
            score += 0.5 * proof["also_fixed_share"]
        return score + 0.15 * self.influence


class Ranking:
    """All suspects of a failing test."""

    def __init__(self, program: Program, detail: dict[str, Any], runs: list[Run], *, is_test: Any) -> None:
        self._program = program
        self._is_test = is_test
        self._static: dict[Statement, frozenset[Statement]] = {}
        self._files: dict[Statement, str] = {}
        self._names: dict[str, list[tuple[Module, Statement]]] | None = None
        self._modules = [
            each for each in map(program.module, detail["lines"]) if each is not None and not is_test(each.file)
        ]
        self.slice = Slice(program, detail)
        for run in runs:
            run.statements = self._statements(run.lines)
        self._runs = runs
        self._when = {(file, line): when for file, lines in detail["lines"].items() for line, when in lines}

    def suspects(self, target: Run, seeds: list[tuple[str, int, int]], *, misses_error: bool) -> list[Suspect]:
        """The statements that the failing test ran, the most suspect first."""
        dependences = self.slice.back_from(seeds, misses_error=misses_error)
        stack = {(file, line) for file, line, _ in seeds}
        failing = [each for each in self._runs if each.failed]
        passing = [each for each in self._runs if not each.failed]
        found: list[Suspect] = []
        for statement in target.statements:
            file = self._files[statement]
            suspect = Suspect(file, statement)
            suspect.failing = sum(statement in each.statements for each in failing)
            suspect.passing = sum(statement in each.statements for each in passing)
            suspect.ochiai = suspect.failing / math.sqrt(len(failing) * (suspect.failing + suspect.passing))
            suspect.dependence = dependences.get(statement)
            lines = range(statement.first, statement.last + 1)
            suspect.when = max((self._when.get((file, line), 0) for line in lines), default=0)
            suspect.is_on_stack = any((file, line) in stack for line in lines)
            found.append(suspect)
        found += self._read_by_test(target, dependences)
        return sorted(found, key=order_before)

    def _read_by_test(self, target: Run, dependences: dict[Statement, Dependence]) -> Iterable[Suspect]:
        """Statements of modules and classes that made what the test itself reads; no line that it ran shows them."""
        for statement, dependence in dependences.items():
            file = self.slice.file_of(statement)
            is_made = statement.scope.inner_function() is None and _is_code(statement) and not self._is_test(file)
            if is_made and file and statement not in target.statements:
                suspect = Suspect(file, statement)
                suspect.is_counted = False
                suspect.ochiai = _UNCOUNTED
                suspect.dependence = dependence
                yield suspect

    def _statements(self, lines: Iterable[tuple[str, int]]) -> set[Statement]:
        """The statements of lines, with those of modules and classes that made what they read."""
        found: set[Statement] = set()
        for file, line in lines:
            if self._is_test(file):
                continue
            statement = self._program.statement(file, line)
            if statement is None:
                continue
            self._files[statement] = file
            for each in self._with_static(statement, file):
                found.add(each)
        return found

    def _with_static(self, statement: Statement, file: str) -> frozenset[Statement]:
        known = self._static.get(statement)
        if known is not None:
            return known
        found = {statement} if _is_code(statement) else set[Statement]()
        waiting = [(statement, file)]
        seen = {statement}
        while waiting:
            reading, where = waiting.pop()
            for module, made in self._made(reading, where):
                if made not in seen:
                    seen.add(made)
                    self._files[made] = module.file
                    if _is_code(made):
                        found.add(made)
                    waiting.append((made, module.file))
        function = statement.scope.inner_function()
        module = self._program.module(file)
        if function is not None and module is not None:
            head = module.by_line.get(getattr(function.node, "lineno", 0))
            if head is not None and head.node is function.node and any(True for _ in head.parts()):
                self._files[head] = file
                found.add(head)
        self._static[statement] = frozenset(found)
        return self._static[statement]

    def _made(self, statement: Statement, file: str) -> Iterable[tuple[Module, Statement]]:
        """The statements of modules and classes that bind a name which a statement reads."""
        if self._names is None:
            self._names = {}
            for module in self._modules:
                for scope in module.scopes:
                    if scope.inner_function() is None:
                        for each in scope.statements:
                            for name in each.binds:
                                self._names.setdefault(name, []).append((module, each))
        here = self._program.module(file)
        for name in statement.reads | statement.attributes:
            for module, made in self._names.get(name, ()):
                is_near = module is here or (here is not None and name in here.imported)
                is_attribute = name in statement.attributes and made.scope.parent is not None
                if (name in statement.reads and is_near and made.scope.parent is None) or is_attribute:
                    yield module, made


def order_before(suspect: Suspect) -> tuple[Any, ...]:
    """The order in which suspects are tried."""
    return (-suspect.base, -suspect.when, suspect.file, suspect.line)


def order(suspect: Suspect) -> tuple[Any, ...]:
    return (-suspect.score, -suspect.when, suspect.file, suspect.line)


def is_test_code(statement: Statement) -> bool:
    """Whether a statement is a test's own: in a function or class that is named so, or outside of any."""
    names = statement.scope.name.split(".")
    return names == [""] or any(name.lower().startswith("test") for name in names)


def _is_code(statement: Statement) -> bool:
    node = statement.node
    if statement.scope.name and is_test_code(statement):
        return False
    if isinstance(node, _NO_CODE) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return False
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return any(True for _ in statement.parts())
    return not isinstance(node, ast.Try)

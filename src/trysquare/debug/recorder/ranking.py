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
_BRANCH = 0.95
"""Share of the suspicion of the way that a condition went which is the condition's own."""
_CALL = 0.7
"""Share of the suspicion of a function that is that of a statement which calls it."""
_CONDITIONS = (ast.If, ast.While, ast.For, ast.AsyncFor)
_NO_CODE = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ClassDef)

INTO, PAST, ELSE = "go into its block", "go past its block", "go into its `else`"
"""The ways of a condition."""
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


class Branch:
    """A way that a condition can go, and the tests that go it."""

    def __init__(self, what: str, failing: int, passing: int, ochiai: float) -> None:
        self.what = what
        self.failing = failing
        self.passing = passing
        self.ochiai = ochiai

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "failing": self.failing, "passing": self.passing, "ochiai": round(self.ochiai, 3)}


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
        self.is_run_at_import = False
        """Whether it ran while the program was loaded, and not in the test."""
        self.callee = 0.0
        """The highest spectrum suspicion of a statement in a function that it calls."""
        self.branch: Branch | None = None
        """Of a condition: the way of it that failing tests go more than passing ones."""
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
    def nearest_line(self) -> int:
        """The line of the statement on which changes changed the failure; its first if none did."""
        worth = {each["line"]: _EFFECTS[each["effect"]] for each in self.trials if each["ran"] and not each["fixed"]}
        best = max(worth, key=lambda line: (worth[line], -line), default=self.line)
        is_better = worth.get(best, 0.0) >= _EFFECTS[OTHER] and worth.get(self.line, 0.0) < worth[best]
        return best if is_better else self.line

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
        if self.branch is not None:
            score = max(score, _BRANCH * self.branch.ochiai)
        score = max(score, _CALL * self.callee)
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

    def __init__(
        self, program: Program, detail: dict[str, Any], runs: list[Run], *, is_test: Any,
        imported: dict[str, list[int]] | None = None,
    ) -> None:  # fmt: skip
        self._program = program
        self._is_test = is_test
        self._static: dict[Statement, frozenset[Statement]] = {}
        self._files: dict[Statement, str] = {}
        self._names: dict[str, list[tuple[Module, Statement]]] | None = None
        self._modules = [
            each
            for each in map(program.module, {**detail["lines"], **(imported or {})})
            if each is not None and not is_test(each.file)
        ]
        self.slice = Slice(program, detail, imported or {})
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
            suspect.is_run_at_import = statement in self.slice.imported
            suspect.branch = self._branch(statement, failing, passing)
            found.append(suspect)
        self._note_callees(found)
        found += self._read_by_test(target, dependences)
        return sorted(found, key=order_before)

    def _note_callees(self, suspects: list[Suspect]) -> None:
        """Note of each statement how suspect the functions are that it called."""
        highest: dict[tuple[str, int], float] = {}
        for each in suspects:
            function = each.statement.scope.inner_function()
            if function is not None and not each.statement.is_definition:
                place = each.file, function.first_line
                highest[place] = max(highest.get(place, 0.0), each.ochiai)
        for each in suspects:
            called = self.slice.called_by(each.statement, each.file)
            each.callee = max((highest.get(place, 0.0) for place in called), default=0.0)

    def _branch(self, statement: Statement, failing: list[Run], passing: list[Run]) -> Branch | None:
        """The way of a condition that failing tests go more than passing ones do."""
        if not isinstance(statement.node, _CONDITIONS):
            return None
        inside = [each for each in statement.scope.statements if statement in each.blocks]
        entry = next((each for each in inside if each.node is statement.node.body[0]), None)
        other = next((each for each in inside if statement.node.orelse and each.node is statement.node.orelse[0]), None)
        if entry is None or not _is_code(entry):
            return None
        ways: list[Branch] = []
        for what in (INTO, PAST, ELSE):
            bad, good = (
                sum(_goes(what, statement, entry, other, each.statements) for each in runs)
                for runs in (failing, passing)
            )
            if bad:
                ways.append(Branch(what, bad, good, bad / math.sqrt(len(failing) * (bad + good))))
        return max(ways, key=lambda each: each.ochiai, default=None)

    def _read_by_test(self, target: Run, dependences: dict[Statement, Dependence]) -> Iterable[Suspect]:
        """Statements of modules and classes that made what the test itself reads; no line that it ran shows them."""
        for statement, dependence in dependences.items():
            file = self.slice.file_of(statement)
            is_static = statement.scope.inner_function() is None or statement in self.slice.imported
            is_made = is_static and _is_code(statement) and not self._is_test(file)
            if is_made and file and statement not in target.statements:
                suspect = Suspect(file, statement)
                suspect.is_counted = False
                suspect.is_run_at_import = statement in self.slice.imported
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
            self._names = self._bound_names()
        here = self._program.module(file)
        for name in statement.reads | statement.attributes:
            for module, made in self._names.get(name, ()):
                is_near = module is here or (here is not None and name in here.imported)
                is_attribute = name in statement.attributes and made.scope.parent is not None
                is_global = made.scope.parent is None or made in self.slice.imported
                if (name in statement.reads and is_near and is_global) or is_attribute:
                    yield module, made

    def _bound_names(self) -> dict[str, list[tuple[Module, Statement]]]:
        """By name: the statements of modules and classes that bind it, and those that changed it at the import."""
        found: dict[str, list[tuple[Module, Statement]]] = {}
        for module in self._modules:
            for each in (each for scope in module.scopes for each in scope.statements):
                if each.scope.inner_function() is None or each in self.slice.imported:
                    for name in each.binds:
                        found.setdefault(name, []).append((module, each))
        return found


def _goes(
    way: str, condition: Statement, entry: Statement, other: Statement | None, statements: set[Statement]
) -> bool:
    """Whether a test that runs some statements goes one way of a condition."""
    if way == INTO:
        return entry in statements
    if way == PAST:
        return condition in statements and entry not in statements
    return other is not None and other in statements


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
        return not node.name.startswith("test") and any(True for _ in statement.parts())
    return not isinstance(node, ast.Try)

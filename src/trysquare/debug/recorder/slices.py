"""Backward slice of a failing run: the executed statements that the failing one depends on, by distance.

Values are followed by name through the lines that ran: assignments, arguments, results, attributes, names of the
module and of functions around; and conditions that decided whether a statement ran.
"""

from __future__ import annotations

import ast
import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from trysquare.debug.recorder.syntax import Module, Program, Scope, Statement

_FAR = 40


class Dependence:
    """How a statement came into the slice."""

    def __init__(self, distance: int, why: str, source: Statement | None) -> None:
        self.distance = distance
        self.why = why
        self.source = source
        """The statement that depends on it."""


class Slice:
    def __init__(self, program: Program, detail: dict[str, Any], imported: dict[str, list[int]]) -> None:
        self._program = program
        self.imported: set[Statement] = set()
        """Statements of functions that ran while the program was loaded, and not in the test."""
        self._executed: set[Statement] = set()
        self._files: dict[Statement, str] = {}
        self._callees: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self._callers: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self._attribute_writers: dict[str, set[Statement]] = {}
        for file, lines in detail["lines"].items():
            for line, _ in lines:
                statement = program.statement(file, line)
                if statement is not None:
                    self._executed.add(statement)
                    self._files[statement] = file
        self._modules = [each for each in map(program.module, {**detail["lines"], **imported}) if each is not None]
        self._note_imported(imported)
        for from_file, from_line, to_file, to_line in detail["edges"]:
            self._callees.setdefault((from_file, from_line), set()).add((to_file, to_line))
            self._callers.setdefault((to_file, to_line), set()).add((from_file, from_line))
        for statement in self._executed:
            for name in statement.binds_attributes:
                self._attribute_writers.setdefault(name, set()).add(statement)

    def _note_imported(self, imported: dict[str, list[int]]) -> None:
        for file, lines in imported.items():
            for line in lines:
                statement = self._program.statement(file, line)
                if statement is None or statement.scope.inner_function() is None or statement in self._executed:
                    continue
                self.imported.add(statement)
                self._files[statement] = file

    def file_of(self, statement: Statement) -> str:
        return self._files.get(statement, "")

    def back_from(
        self, seeds: Iterable[tuple[str, int, int]], *, misses_error: bool = False
    ) -> dict[Statement, Dependence]:
        """All statements that those at the given files and lines depend on; each seed has a distance of its own.

        Where an error was expected and did not come, those that could have raised one are part of it.
        """
        found: dict[Statement, Dependence] = {}
        waiting: list[tuple[int, int, Statement, str, Statement | None]] = []
        for file, line, distance in seeds:
            statement = self._program.statement(file, line)
            if statement is not None:
                self._files.setdefault(statement, file)
                waiting.append((distance, 0, statement, "it failed there", None))
                # What a `with` checks at its end is what ran in it.
                inside = [each for each in self._executed if statement in each.blocks]
                waiting.extend((distance + 1, 0, each, "ran in it", None) for each in inside)
        if misses_error:
            waiting.extend((1, 0, each, "could have raised an error", None) for each in self._unraised())
        waiting = [(each[0], number, each[2], each[3], None) for number, each in enumerate(waiting)]
        heapq.heapify(waiting)
        count = len(waiting)
        while waiting:
            distance, _, statement, why, source = heapq.heappop(waiting)
            if statement in found or distance > _FAR:
                continue
            found[statement] = Dependence(distance, why, source)
            for step, other, reason in self._of(statement):
                if other not in found:
                    count += 1
                    heapq.heappush(waiting, (distance + step, count, other, reason, statement))
        return found

    def _unraised(self) -> Iterator[Statement]:
        """Conditions that ran and whose `raise` did not."""
        for statement in self._executed:
            if isinstance(statement.node, ast.If):
                raises = [each for each in statement.scope.statements if statement in each.blocks]
                if any(isinstance(each.node, ast.Raise) and each not in self._executed for each in raises):
                    yield statement

    def _of(self, statement: Statement) -> Iterator[tuple[int, Statement, str]]:
        file = self._files.get(statement, "")
        module = self._program.module(file)
        if module is None:
            return
        yield from self._by_calls(statement, file)
        for name in statement.reads:
            yield from self._by_name(name, statement, module)
        for name in statement.attributes:
            for writer in self._attribute_writers.get(name, ()):
                yield 1, writer, f"sets .{name}"
            yield from self._of_classes(name)
        for step, block in enumerate(reversed(statement.blocks), start=1):
            if block in self._executed or block in self.imported:
                yield step, block, "decided whether the next ran"
        function = statement.scope.inner_function()
        if function is not None:
            yield from self._guards(statement, function)
            for site in self._sites(file, function):
                yield 2, site, f"calls {function.name}"

    def _by_calls(self, statement: Statement, file: str) -> Iterator[tuple[int, Statement, str]]:
        for line in range(statement.first, statement.last + 1):
            for to_file, to_line in self._callees.get((file, line), ()):
                module = self._program.module(to_file)
                scope = None if module is None else module.scope_at(to_line)
                for each in () if scope is None else scope.statements:
                    if each in self._executed and _gives_value(each):
                        yield 1, each, f"{_gives(each)} {scope.name if scope is not None else ''}"

    def _by_name(self, name: str, statement: Statement, module: Module) -> Iterator[tuple[int, Statement, str]]:
        scope = statement.scope
        while True:
            writers = [each for each in scope.statements if name in each.binds]
            if scope.parent is None:
                for each in writers:
                    yield 1, self._at(each, module.file), f"sets {name}"
                yield from self._at_import(name, module)
                return
            is_known = False
            for each in writers:
                if each in self._executed:
                    is_known = True
                    yield 1, each, f"sets {name}"
            if name in scope.parameters:
                is_known = True
                for site in self._sites(module.file, scope):
                    yield 1, site, f"passes {name}"
            if is_known:
                return
            scope = scope.parent

    def _at_import(self, name: str, module: Module) -> Iterator[tuple[int, Statement, str]]:
        """Statements of functions that changed a module's name while it was loaded, and those that an import is of."""
        for each in self.imported:
            if name in each.binds and self._files[each] == module.file and not _is_local(name, each.scope):
                yield 2, each, f"changes {name} while it is loaded"
        if name in module.imported:
            yield from self._of_modules(name)

    def called_by(self, statement: Statement, file: str) -> set[tuple[str, int]]:
        """The functions that a statement called, each by its file and first line."""
        lines = range(statement.first, statement.last + 1)
        return {place for line in lines for place in self._callees.get((file, line), ())}

    def _of_modules(self, name: str) -> Iterator[tuple[int, Statement, str]]:
        for module in self._modules:
            for each in module.scopes[0].statements:
                if name in each.binds:
                    yield 1, self._at(each, module.file), f"sets {name}"

    def _of_classes(self, name: str) -> Iterator[tuple[int, Statement, str]]:
        for module in self._modules:
            for scope in module.scopes:
                if scope.parent is not None and scope.is_function:
                    continue
                for each in scope.statements:
                    if name in each.binds:
                        yield 1, self._at(each, module.file), f"sets {name}"

    def _sites(self, file: str, function: Scope) -> Iterator[Statement]:
        for from_file, from_line in self._callers.get((file, function.first_line), ()):
            site = self._program.statement(from_file, from_line)
            if site is not None:
                yield self._at(site, from_file)

    def _guards(self, statement: Statement, function: Scope) -> Iterator[tuple[int, Statement, str]]:
        """Conditions before a statement that could have left the function or the round of a loop."""
        for each in function.statements:
            if each.line >= statement.line:
                return
            for block in reversed(each.blocks):
                if each.is_leaving and isinstance(block.node, ast.If) and block in self._executed:
                    yield 2, block, "decided whether the next ran"
                    break

    def _at(self, statement: Statement, file: str) -> Statement:
        self._files.setdefault(statement, file)
        return statement


def _is_local(name: str, scope: Scope) -> bool:
    """Whether a name of a function is its own, and not its module's."""
    return name in scope.parameters or any(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
        for each in scope.statements
        for part in each.parts()
    )


def _gives(statement: Statement) -> str:
    """What a statement that gives its function's caller something does; it may not have come to it."""
    return "ends by an exception" if isinstance(statement.node, ast.Raise) else "gives a result of"


def _gives_value(statement: Statement) -> bool:
    """Whether a statement gives its function's caller a value, or an exception."""
    if isinstance(statement.node, (ast.Return, ast.Raise)):
        return True
    return any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in statement.parts())

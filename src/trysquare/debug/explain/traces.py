"""Recorded runs as text: one call step by step, the writes of a value, and the divergence of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.json import JsonObject
from trysquare.core.text import truncate
from trysquare.debug.sources import Sources, relative

LONGEST = 3000
_WIDEST = 200
_ROUNDS = 2
"""Rounds of a loop to show at its begin and at its end."""
_LONGEST_LOOP = 25
_MAX_WRITES = 8
_MAX_VALUES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    call: JsonObject
    root: str

    @property
    def steps(self) -> list[list[Any]]:
        """Its lines, each with what it changed and the calls it made."""
        return cast(list[list[Any]], self.call["steps"])

    def to_text(self, sources: Sources) -> str:
        """The call as lines: loops folded, the middle left out if it is too long."""
        given = ", ".join(f"{name}={text}" for name, text in cast(dict[str, str], self.call["arguments"]).items())
        caller = relative(str(self.call["caller"]), self.root)
        title = f"{self.call['function']}({given})  [call {self.call['number']}, from {caller}]"
        lines = fold([self._line(index, sources) for index in range(len(self.steps))])
        end = {
            "returned": f"returned {self.call['returned']} at line {self.call['last_line']}",
            "raised": f"raised out of line {self.call['last_line']}",
        }.get(self.call["ended"], "did not end while it was recorded")
        return fit_lines([*(truncate(line, _WIDEST) for line in [title, *lines]), end], LONGEST)

    def state_at(self, index: int, sources: Sources) -> JsonObject:
        """The values just before a step ran, counted from 1; a negative number counts from the end."""
        number = index if index > 0 else len(self.steps) + index + 1
        number = min(max(number, 1), len(self.steps))
        values = dict(cast(dict[str, str], self.call["arguments"]))
        for step in self.steps[: number - 1]:
            values.update(step[1])
        line = int(self.steps[number - 1][0])
        file = str(self.call["file"])
        return {
            "step": number,
            "of": len(self.steps),
            "location": f"{relative(file, self.root)}:{line}",
            "code": sources.line(file, line),
            "values": values,
            "changes": self.steps[number - 1][1],
        }

    def _line(self, index: int, sources: Sources) -> tuple[int, str]:
        line, changes, calls = self.steps[index]
        notes = [f"{name} = {text}" for name, text in cast(dict[str, str], changes).items()]
        for name, given, *returned in cast(list[list[str]], calls):
            end = "did not return" if not returned else "raised" if returned[0] == "raised" else f"-> {returned[0]}"
            notes.append(f"{name}({given}) {end}")
        code = sources.line(str(self.call["file"]), int(line))
        return int(line), f"#{index + 1} {line}: {code}" + (f"   # {'; '.join(notes)}" if notes else "")


def fold(lines: Sequence[tuple[int, str]]) -> list[str]:
    """Fold loops: of a block of lines that repeats, show the first and last rounds and count those between."""
    folded: list[str] = []
    index = 0
    while index < len(lines):
        length, rounds = _loop_at(lines, index)
        if rounds <= 2 * _ROUNDS:
            folded.append(lines[index][1])
            index += 1
            continue
        shown = _ROUNDS * length
        numbers = sorted({line for line, _ in lines[index : index + length]})
        span = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        folded.extend(text for _, text in lines[index : index + shown])
        folded.append(f"… {rounds - 2 * _ROUNDS} more rounds of lines {span}")
        index += rounds * length
        folded.extend(text for _, text in lines[index - shown : index])
    return folded


def _loop_at(lines: Sequence[tuple[int, str]], index: int) -> tuple[int, int]:
    """Length and repetitions of the shortest block that repeats from here on."""
    head = lines[index][0]
    for length in range(1, _LONGEST_LOOP):
        if index + length >= len(lines) or lines[index + length][0] != head:
            continue
        block = [line for line, _ in lines[index : index + length]]
        rounds, at = 1, index + length
        while [line for line, _ in lines[at : at + length]] == block:
            rounds, at = rounds + 1, at + length
        if rounds > 2 * _ROUNDS:
            return length, rounds
    return 1, 1


def fit_lines(lines: Sequence[str], longest: int) -> str:
    """Join lines within a number of bytes; the middle is left out if they are too long."""
    if sum(len(line.encode()) + 1 for line in lines) <= longest:
        return "\n".join(lines)
    head: list[str] = []
    tail: list[str] = []
    left = longest - 40
    while len(head) + len(tail) < len(lines):
        is_head = len(head) <= len(tail)
        line = lines[len(head)] if is_head else lines[-1 - len(tail)]
        left -= len(line.encode()) + 1
        if left < 0:
            break
        (head if is_head else tail).append(line)
    return "\n".join([*head, f"… {len(lines) - len(head) - len(tail)} lines left out", *reversed(tail)])


def writes_text(found: JsonObject, value: str, root: str, sources: Sources) -> str:
    """The last writes of a value, the latest first, and their number at each line."""
    writes = cast(list[JsonObject], found.get("writes") or [])
    if not writes:
        return f"No line of the workspace wrote `{value}`."
    last = [_write_text(each, root, sources) for each in reversed(writes[-_MAX_WRITES:])]
    count = int(found["count"])
    lines = [f"{value} was written {count} times; the last:" if count > 1 else f"{value} was written once:", *last]
    if count > len(last):
        most = sorted(cast(dict[str, int], found["places"]).items(), key=lambda pair: -pair[1])[:6]
        lines.append("In all: " + ", ".join(f"{relative(location, root)} {times}x" for location, times in most))
    return fit_lines([truncate(line, _WIDEST) for line in lines], LONGEST)


def _write_text(write: JsonObject, root: str, sources: Sources) -> str:
    file, line = str(write["file"]), int(write["line"])
    owner = f" of object {write['object']}" if write.get("object") else ""
    how = "passed by" if write["how"] == "passed" else "called from"
    caller = f", {how} {relative(str(write['caller']), root)}" if write["caller"] or write["how"] == "passed" else ""
    where = f"{relative(file, root)}:{line} in {write['function']}: `{sources.line(file, line)}`"
    return f"  #{write['number']} {where}  {write['target']} = {write['value']}{owner}{caller}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """One step of a run: the function, its line or how the call ended, and what changed."""

    file: str
    function: str
    first_line: int
    at: int | str
    changes: dict[str, str]

    @property
    def key(self) -> tuple[str, str, int | str]:
        return self.file, self.function, self.at

    @property
    def line(self) -> int:
        return self.at if isinstance(self.at, int) else self.first_line

    def to_text(self, root: str, sources: Sources) -> str:
        location = f"{relative(self.file, root)}:{self.line}"
        if isinstance(self.at, str):
            return f"{location} {self.function} {self.at}"
        return f"{location} `{sources.line(self.file, self.line)}` in {self.function}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """The values that differ at the same step of two runs, and the step from which they run different lines."""

    same: int
    """Steps that both made."""
    values: tuple[tuple[Moment, str, str | None, str | None], ...] = ()
    """The moment, the name, its value in the first run and in the second."""
    before: Moment | None = None
    """The last step that both made before they diverged."""
    one: Moment | None = None
    other: Moment | None = None


def compare(one: JsonObject, other: JsonObject) -> Divergence:
    """The first differences of two runs, in the functions that both ran."""
    shared = {_key(each) for each in _functions(one)} & {_key(each) for each in _functions(other)}
    left, right = _moments(one, shared), _moments(other, shared)
    values: list[tuple[Moment, str, str | None, str | None]] = []
    same = 0
    for mine, its in zip(left, right, strict=False):
        if mine.key != its.key:
            break
        same += 1
        if len(values) < _MAX_VALUES:
            names = dict.fromkeys([*mine.changes, *its.changes])
            pairs = [(name, mine.changes.get(name), its.changes.get(name)) for name in names]
            values.extend((mine, name, first, second) for name, first, second in pairs if first != second)
    mine, its = next(iter(left[same:]), None), next(iter(right[same:]), None)
    before = left[same - 1] if same and (mine or its) else None
    return Divergence(same=same, values=tuple(values), before=before, one=mine, other=its)


def divergence_text(found: Divergence, root: str, sources: Sources) -> str:
    lines: list[str] = []
    has_parted = found.one is not None or found.other is not None
    if not found.same and not has_parted:
        return "The two runs share no function of the workspace."
    for moment, name, mine, its in found.values[:_MAX_VALUES]:
        head = "then" if lines else "First different value"
        what = name or "the returned value"
        lines.append(f"{head}: {moment.to_text(root, sources)}  {what} = {mine} here, {its} there")
    if has_parted:
        if found.before is not None:
            lines.append(f"First different line: after {found.before.to_text(root, sources)}")
        for where, moment in (("here", found.one), ("there", found.other)):
            lines.append(f"  {where}: {'nothing more ran' if moment is None else moment.to_text(root, sources)}")
    if not lines:
        lines.append("Both runs did the same in the functions that they share.")
    return "\n".join([*lines, f"{found.same} steps in shared functions were the same."])


def _functions(run: JsonObject) -> list[JsonObject]:
    return cast(list[JsonObject], run.get("functions") or [])


def _key(function: JsonObject) -> tuple[str, str]:
    return str(function["file"]), str(function["function"])


def _moments(run: JsonObject, shared: set[tuple[str, str]]) -> Sequence[Moment]:
    functions = _functions(run)
    found: list[Moment] = []
    for number, at, changes in cast(list[list[Any]], run.get("steps") or []):
        function = functions[int(number)]
        file, name = _key(function)
        if (file, name) in shared:
            first = int(function["first_line"])
            found.append(Moment(file=file, function=name, first_line=first, at=at, changes=changes))
    return found

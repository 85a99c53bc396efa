"""Traces: a recorded call as lines to read, its state at any of its steps, and the writes of a value."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from trysquare.core.types import JsonObject
from trysquare.debug.sources import Sources

LONGEST = 3000
_WIDEST = 200
_ROUNDS = 2
"""Rounds of a loop that are shown at its begin and at its end."""
RecordedStep: TypeAlias = list[Any]
"""Its line, what it changed, and the calls it made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """One recorded call of a function."""

    call: JsonObject
    root: str

    @property
    def steps(self) -> list[RecordedStep]:
        return cast(list[RecordedStep], self.call["steps"])

    @property
    def title(self) -> str:
        given = ", ".join(f"{name}={text}" for name, text in cast(dict[str, str], self.call["arguments"]).items())
        caller = shorter(str(self.call["caller"]), self.root)
        return f"{self.call['function']}({given})  [call {self.call['number']}, from {caller}]"

    @property
    def end(self) -> str:
        if self.call["ended"] == "returned":
            return f"returned {self.call['returned']} at line {self.call['last_line']}"
        if self.call["ended"] == "raised":
            return f"raised out of line {self.call['last_line']}"
        return "did not end while it was recorded"

    def to_text(self, sources: Sources, *, longest: int = LONGEST) -> str:
        """The call as lines: loops folded, the middle left out where it is too long."""
        lines = [_cut(line) for line in fold([self._line(index, sources) for index in range(len(self.steps))])]
        return within([_cut(self.title), *lines, self.end], longest)

    def state_at(self, index: int, sources: Sources) -> JsonObject:
        """What was known just before a step ran, counted from 1; a negative number counts from the end."""
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
            "location": f"{shorter(file, self.root)}:{line}",
            "code": sources.line(file, line),
            "values": values,
            "changes": self.steps[number - 1][1],
        }

    def _line(self, index: int, sources: Sources) -> tuple[int, str]:
        line, changes, calls = self.steps[index]
        told = [f"{name} = {text}" for name, text in cast(dict[str, str], changes).items()]
        told += [_call(each) for each in cast(list[list[str]], calls)]
        code = sources.line(str(self.call["file"]), int(line))
        return int(line), f"#{index + 1} {line}: {code}" + (f"   # {'; '.join(told)}" if told else "")


def _call(call: list[str]) -> str:
    name, given, *returned = call
    how = "did not come back" if not returned else "raised" if returned[0] == "raised" else f"-> {returned[0]}"
    return f"{name}({given}) {how}"


def fold(lines: Sequence[tuple[int, str]]) -> list[str]:
    """Loops folded: where a block of lines repeats, its first and its last rounds stay, those between are counted."""
    folded: list[str] = []
    index = 0
    while index < len(lines):
        length, rounds = _loop_at(lines, index)
        if rounds <= 2 * _ROUNDS:
            folded.append(lines[index][1])
            index += 1
            continue
        kept = _ROUNDS * length
        folded.extend(text for _, text in lines[index : index + kept])
        folded.append(f"… {rounds - 2 * _ROUNDS} more rounds of lines {_span(lines[index : index + length])}")
        index += rounds * length
        folded.extend(text for _, text in lines[index - kept : index])
    return folded


def _loop_at(lines: Sequence[tuple[int, str]], index: int) -> tuple[int, int]:
    """The shortest block that repeats from here on, and how often it does."""
    head = lines[index][0]
    for length in range(1, 25):
        if index + length >= len(lines) or lines[index + length][0] != head:
            continue
        block = [line for line, _ in lines[index : index + length]]
        rounds = 1
        at = index + length
        while [line for line, _ in lines[at : at + length]] == block:
            rounds += 1
            at += length
        if rounds > 2 * _ROUNDS:
            return length, rounds
    return 1, 1


def _span(block: Sequence[tuple[int, str]]) -> str:
    lines = sorted({line for line, _ in block})
    return str(lines[0]) if len(lines) == 1 else f"{lines[0]} to {lines[-1]}"


def writes_text(found: JsonObject, value: str, root: str, sources: Sources, *, shown: int = 8) -> str:
    """The last writes of a value, the latest first, and how many there were at each line."""
    writes = cast(list[JsonObject], found.get("writes") or [])
    if not writes:
        return f"No line of the workspace wrote `{value}`."
    last = [_write(each, root, sources) for each in reversed(writes[-shown:])]
    count = int(found["count"])
    lines = [f"{value} was written {count} times; the last:" if count > 1 else f"{value} was written once:", *last]
    places = cast(dict[str, int], found["places"])
    if count > len(last):
        most = sorted(places.items(), key=lambda pair: -pair[1])[:6]
        lines.append("In all: " + ", ".join(f"{shorter(place, root)} {times}x" for place, times in most))
    return within([_cut(line) for line in lines], LONGEST)


def _write(write: JsonObject, root: str, sources: Sources) -> str:
    file, line = str(write["file"]), int(write["line"])
    place = f"{shorter(file, root)}:{line}"
    owner = f" of object {write['object']}" if write.get("object") else ""
    came = f", called from {shorter(str(write['caller']), root)}" if write["caller"] else ""
    if write["how"] == "passed":
        came = f", passed by {shorter(str(write['caller']), root)}"
    told = f"{write['target']} = {write['value']}{owner}"
    return f"  #{write['number']} {place} in {write['function']}: `{sources.line(file, line)}`  {told}{came}"


def shorter(place: str, root: str) -> str:
    """A place relative to the workspace, where it lies in it."""
    return place.removeprefix(root.rstrip(os.sep) + os.sep) if root else place


def within(lines: Sequence[str], longest: int) -> str:
    """Lines within a length, the middle left out where they are too long: begin and end say most."""
    if sum(len(line.encode()) + 1 for line in lines) <= longest:
        return "\n".join(lines)
    head: list[str] = []
    tail: list[str] = []
    left = longest - 40
    front, back = 0, len(lines) - 1
    while front <= back:
        line = lines[front] if len(head) <= len(tail) else lines[back]
        left -= len(line.encode()) + 1
        if left < 0:
            break
        if len(head) <= len(tail):
            head.append(line)
            front += 1
        else:
            tail.append(line)
            back -= 1
    return "\n".join([*head, f"… {back - front + 1} lines left out", *reversed(tail)])


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"

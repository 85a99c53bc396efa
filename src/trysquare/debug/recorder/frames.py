"""FrameRecord: what happened in one frame while it lived: its arguments, the lines it ran, what each changed."""

from __future__ import annotations

from collections import deque
from types import CodeType, FrameType
from typing import Any

from trysquare.debug.recorder.shown import own_attributes, show
from trysquare.debug.recorder.watcher import GENERATOR, name_of

FIRST_LINES = 40
LAST_LINES = 120
CALLEES = 8
NOT_RECORDED = 0
"""The line of a step that stands for lines that were not recorded."""
_ATTRIBUTES = 24
_SHORT = 20
_NAMES = 60


class Step:
    """One line that ran, and what had changed when the next one began."""

    __slots__ = ("changes", "line")

    def __init__(self, line: int) -> None:
        self.line = line
        self.changes: dict[str, str] = {}

    def to_json(self) -> list[Any]:
        return [self.line, self.changes] if self.changes else [self.line]


class FrameRecord:
    """The life of one frame, bounded: its first and its last lines are kept, those between are counted."""

    __slots__ = (
        "arguments", "callees", "captured", "code", "count", "dropped", "ended", "first", "is_for_display", "last",
        "line", "returned", "seen", "told", "yield_line", "yielded", "yields",
    )  # fmt: skip

    def __init__(self, frame: FrameType, *, is_for_display: bool = False, is_begun: bool = False) -> None:
        self.code: CodeType = frame.f_code
        self.line = frame.f_lineno
        self.first: list[Step] = []
        self.last: deque[Step] = deque(maxlen=LAST_LINES)
        self.dropped = 0
        self.count = 0
        """Lines that ran, kept or not."""
        self.callees: deque[dict[str, Any]] = deque(maxlen=CALLEES)
        self.ended = ""
        self.returned: str | None = None
        self.is_for_display = is_for_display
        """Whether the call only makes a text of a value for a message."""
        self.yields = 0
        self.yield_line = 0
        self.yielded: str | None = None
        """What a generator gave last; what it returns at its end is not what its caller gets."""
        self.told: dict[str, Any] | None = None
        """What its caller was told of it."""
        self.seen: dict[str, tuple[Any, str]] = {}
        known = self.changes_of(frame)
        names = () if is_begun else _parameters(self.code)
        self.arguments = {name: text for name, text in known.items() if name.partition(".")[0] in names}
        self.captured = {name: text for name, text in known.items() if name not in self.arguments}
        """What the frame knew at first and was not passed: names of the functions around it."""

    def step(self, frame: FrameType) -> None:
        """A line is about to run: what the line before changed is known now."""
        self.settle(frame)
        self.line = frame.f_lineno
        self.count += 1
        new = Step(self.line)
        if len(self.first) < FIRST_LINES:
            self.first.append(new)
            return
        if len(self.last) == LAST_LINES:
            self.dropped += 1
        self.last.append(new)

    def skip_lines(self) -> None:
        """Lines ran that were not recorded: what changed meanwhile was changed by none that is known."""
        self.last.append(Step(NOT_RECORDED))

    def settle(self, frame: FrameType) -> None:
        """Note what the last line has changed."""
        latest = self.last[-1] if self.last else self.first[-1] if self.first else None
        if latest is not None:
            latest.changes.update(self.changes_of(frame))

    def add_callee(self, record: FrameRecord) -> None:
        """Remember a call that came back: what it got, what it gave, and by which lines."""
        if record.told is None or not record.yields:
            told = record.told = record.to_json(short=True)
            told["at"] = self.line
            told["at_file"] = self.code.co_filename
            told["at_count"] = self.count
            self.callees.append(told)
        elif record.ended:
            record.told.update(record.to_json(short=True))
        else:
            record.told.update(yields=record.yields, yielded=record.yielded, yield_line=record.yield_line)

    def to_json(self, *, short: bool = False) -> dict[str, Any]:
        steps = [*self.first, *self.last]
        told: dict[str, Any] = {
            "file": self.code.co_filename,
            "function": name_of(self.code),
            "first_line": self.code.co_firstlineno,
            "arguments": self.arguments,
            "captured": self.captured,
            "steps": [step.to_json() for step in (steps[-_SHORT:] if short else steps)],
            "before": max(0, len(steps) + self.dropped - _SHORT) if short else 0,
            "split": len(self.first) if self.dropped else None,
            "dropped": 0 if short and len(self.last) >= _SHORT else self.dropped,
            "count": self.count,
            "ended": self.ended,
            "returned": self.returned,
            "last_line": self.line,
        }
        if self.code.co_flags & GENERATOR:
            told.update(yields=self.yields, yielded=self.yielded, yield_line=self.yield_line, returned=None)
        if not short or len(self.callees):
            told["callees"] = [_without_callees(callee) if short else callee for callee in self.callees]
        return told

    def changes_of(self, frame: FrameType) -> dict[str, str]:
        """What is new or different in the frame since it was last looked at."""
        changes: dict[str, str] = {}
        names = frame.f_locals
        for index, (name, value) in enumerate(names.items()):
            if index == _NAMES:
                break
            # Names with an @ are pytest's own, made when it rewrites an `assert`; those of a module explain nothing.
            if name.startswith(("@", "__")):
                continue
            self._note(name, value, changes)
            if name in ("self", "cls", "this"):
                self._note_attributes(name, value, changes)
        return changes

    def _note(self, name: str, value: Any, changes: dict[str, str]) -> None:
        known = self.seen.get(name)
        if known is not None and known[0] is value and isinstance(value, _UNCHANGING):
            return
        text = show(value, name=name)
        if known is None or known[1] != text:
            changes[name] = text
        self.seen[name] = (value if isinstance(value, _UNCHANGING) else None, text)

    def _note_attributes(self, name: str, value: Any, changes: dict[str, str]) -> None:
        for index, (attribute, part) in enumerate(own_attributes(value).items()):
            if index == _ATTRIBUTES:
                break
            self._note(f"{name}.{attribute}", part, changes)


_UNCHANGING = (int, float, str, bytes, bool, type(None), complex)
"""Values that are the same for as long as they are the same object, so that they need no second look."""


def _parameters(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[:count]


def _without_callees(callee: dict[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in callee.items() if key != "callees"}

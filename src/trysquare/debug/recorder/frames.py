"""Records of frames: arguments, lines and changes, for a failure or for a whole run in order."""

from __future__ import annotations

import threading
from collections import deque
from itertools import islice
from operator import is_
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from trysquare.debug.recorder.hooks import GENERATOR, CodeKey, Watcher, is_resumed, key_of, name_of
from trysquare.debug.recorder.report import RaisedLog
from trysquare.debug.recorder.values import kind_of, show, stored_attributes

if TYPE_CHECKING:
    from typing import TypeAlias  # newer than the oldest interpreter that is recorded

Step: TypeAlias = "tuple[int, dict[str, str]]"
"""A line that ran, and what had changed when the next one began."""
LINES = 1_000_000
"""Lines after which no more are recorded: a long loop must not become an endless wait."""
_FIRST_LINES = 40
_LAST_LINES = 120
_MAX_CALLEES = 8
_NOT_RECORDED = 0
"""Line of a step that stands for lines that were not recorded."""
_MAX_ATTRIBUTES = 24
_MAX_NAMES = 60
_MAX_SUMMARY = 20
"""Steps in the summary of a call."""
_MAX_RAISED = 500
_MAX_FLOW = 30_000
_SCALARS = frozenset((int, float, str, bytes, bool, type(None), complex))
_UNCHANGING = _SCALARS | {FunctionType, ModuleType, type}
"""Types whose values are rendered by what cannot change: the same object needs no second look."""
_MAX_COMPARED = 40
"""Parts of a container that are compared with what they were, in place of rendering it anew."""
_MAX_ROUNDS = 400
_MAX_CALLS = 2000
"""Runs of one line, and calls of one function, that are recorded in a test: a loop is seen in its first rounds."""
_DEEPEST = 2
"""Calls below a function in which a test fails that a report contains: the values of deeper ones are not recorded."""
_MAX_ABOVE = 60
_TEXTS = ("__repr__", "__str__", "__format__", "__rich_repr__", "_repr_pretty_")
_TEXT_MAKERS = ("_pytest.assertion", "_pytest._io", "_pytest._code", "unittest.util")
"""Modules that make the text of a failure; what they call is not part of what the program did."""
_REPORTERS = ("_pytest", "pytest", "unittest", "hypothesis", "logging")
"""Modules that make a text of a value for a message; what else they call is the program's own."""


class FrameRecord:
    """Bounded record of one frame: its first and its last lines are stored, those between are counted."""

    __slots__ = (
        "arguments", "callees", "captured", "code", "count", "depth", "dropped", "ended", "first", "is_behind",
        "is_for_display", "last", "line", "returned", "seen", "summary", "yield_line", "yielded", "yields",
    )  # fmt: skip

    def __init__(
        self, frame: FrameType, *, is_for_display: bool = False, is_begun: bool = False, depth: int = 0
    ) -> None:
        self.code: CodeType = frame.f_code
        self.depth = depth
        """Calls between it and the nearest function in which the test fails."""
        self.line = frame.f_lineno
        self.first: list[Step] = []
        self.last: deque[Step] = deque(maxlen=_LAST_LINES)
        self.dropped = 0
        self.count = 0
        """Lines that ran, stored or not."""
        self.callees: deque[dict[str, Any]] = deque(maxlen=_MAX_CALLEES)
        self.ended = ""
        self.returned: str | None = None
        self.is_behind = False
        """Whether lines ran since the last step that were not recorded."""
        self.is_for_display = is_for_display
        """Whether the call only renders a value for a message."""
        self.yields = 0
        self.yield_line = 0
        self.yielded: str | None = None
        """The last value of a generator; what it returns at its end is not what its caller gets."""
        self.summary: dict[str, Any] | None = None
        """What its caller's record contains of it."""
        self.seen: dict[str, tuple[Any, str]] = {}
        """By name: the value, or what its parts were, and its text."""
        known = self.changes_of(frame)
        names = () if is_begun else _parameters(self.code)
        self.arguments = {name: text for name, text in known.items() if name.partition(".")[0] in names}
        self.captured = {name: text for name, text in known.items() if name not in self.arguments}
        """Values at the start that were not passed: names of the functions around it."""

    def step(self, frame: FrameType) -> None:
        """Record the line that is about to run, and what the one before has changed."""
        self.settle(frame)
        self.line = frame.f_lineno
        self.count += 1
        new: Step = (self.line, {})
        if len(self.first) < _FIRST_LINES:
            self.first.append(new)
        else:
            self.dropped += len(self.last) == _LAST_LINES
            self.last.append(new)

    def _skip(self) -> None:
        """Add a step for lines that ran unrecorded: which of them made the next changes is unknown."""
        self.is_behind = False
        steps = self.last or self.first
        if steps and steps[-1][0] == _NOT_RECORDED:
            return
        (self.first if len(self.first) < _FIRST_LINES else self.last).append((_NOT_RECORDED, {}))

    def settle(self, frame: FrameType) -> None:
        if self.is_behind:
            self._skip()
        latest = self.last[-1] if self.last else self.first[-1] if self.first else None
        if latest is not None:
            latest[1].update(self.changes_of(frame))

    def add_callee(self, record: FrameRecord) -> None:
        """Add the summary of a call that returned or yielded."""
        if record.summary is None or not record.yields:
            summary = record.summary = record.to_json(short=True)
            summary.update(at=self.line, at_file=self.code.co_filename, at_count=self.count)
            self.callees.append(summary)
        elif record.ended:
            record.summary.update(record.to_json(short=True))
        else:
            record.summary.update(yields=record.yields, yielded=record.yielded, yield_line=record.yield_line)

    def to_json(self, *, short: bool = False) -> dict[str, Any]:
        steps = [*self.first, *self.last]
        summary: dict[str, Any] = {
            "file": self.code.co_filename, "function": name_of(self.code), "first_line": self.code.co_firstlineno,
            "arguments": self.arguments, "captured": self.captured,
            "steps": [step if step[1] else step[:1] for step in (steps[-_MAX_SUMMARY:] if short else steps)],
            "before": max(0, len(steps) + self.dropped - _MAX_SUMMARY) if short else 0,
            "split": len(self.first) if self.dropped else None,
            "dropped": 0 if short and len(self.last) >= _MAX_SUMMARY else self.dropped,
            "count": self.count, "ended": self.ended, "returned": self.returned, "last_line": self.line,
        }  # fmt: skip
        if self.code.co_flags & GENERATOR:
            summary.update(yields=self.yields, yielded=self.yielded, yield_line=self.yield_line, returned=None)
        if not short or len(self.callees):
            dropped = "callees" if short else ""
            summary["callees"] = [
                {key: part for key, part in callee.items() if key != dropped} for callee in self.callees
            ]
        return summary

    def changes_of(self, frame: FrameType) -> dict[str, str]:
        """The values that are new or different since the last call."""
        changes: dict[str, str] = {}
        for name, value in islice(frame.f_locals.items(), _MAX_NAMES):
            # Names with an @ are pytest's own, made when it rewrites an `assert`; those of a module explain nothing.
            if name[0] in "@_" and name.startswith(("@", "__")):
                continue
            known = self.seen.get(name)
            if known is None or known[0] is not value or type(value) not in _UNCHANGING:
                self._note(name, value, changes)
            if name in ("self", "cls", "this"):
                for attribute, part in islice(stored_attributes(value).items(), _MAX_ATTRIBUTES):
                    self._note(f"{name}.{attribute}", part, changes)
        return changes

    def _note(self, name: str, value: Any, changes: dict[str, str]) -> None:
        known = self.seen.get(name)
        kind = kind_of(value)
        if kind in _UNCHANGING:
            kept: Any = value
            if known is not None and known[0] is value:
                return
        else:
            kept = _parts_of(value, kind)
            if kept is not None and known is not None and _are_same(known[0], kept):
                return
        text = show(value, name=name)
        if known is None or known[1] != text:
            changes[name] = text
        self.seen[name] = (kept, text)


class _Parts:
    """A container as it was: its type, its identity and its parts, all of which cannot change."""

    __slots__ = ("kind", "owner", "parts")

    def __init__(self, kind: Any, owner: int, parts: tuple[Any, ...]) -> None:
        self.kind = kind
        self.owner = owner
        self.parts = parts


def _parts_of(value: Any, kind: Any) -> _Parts | None:
    """The parts of a small built-in container of scalars and of such containers; None for anything else."""
    if kind is dict:
        if len(value) > _MAX_COMPARED:
            return None
        parts = (*value, *value.values())
    elif kind is list or kind is tuple:
        if len(value) > _MAX_COMPARED:
            return None
        parts = tuple(value)
    else:
        return None
    if not _SCALARS.issuperset(map(type, parts)):
        inner: list[Any] = []
        for each in parts:
            found = each if type(each) in _SCALARS else _parts_of_flat(each)
            if found is None and each is not None:
                return None
            inner.append(found)
        parts = tuple(inner)
    return _Parts(kind, id(value), parts)


def _parts_of_flat(value: Any) -> _Parts | None:
    kind = kind_of(value)
    if (kind is list or kind is tuple) and len(value) <= _MAX_COMPARED and _SCALARS.issuperset(map(type, value)):
        return _Parts(kind, id(value), tuple(value))
    return None


def _are_same(old: Any, new: _Parts) -> bool:
    """Whether a container has the same parts as before; its text is the same then."""
    if type(old) is not _Parts or old.kind is not new.kind or len(old.parts) != len(new.parts):
        return False
    if all(map(is_, old.parts, new.parts)):
        return True
    for one, other in zip(old.parts, new.parts):  # noqa: B905 - the interpreter may be older than `strict`
        if one is not other and (type(other) is not _Parts or not _are_same(one, other)):
            return False
    return True


def _parameters(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[:count]


class FailureRecorder(Watcher):
    """Records the frames that are running, and those that an exception left."""

    def __init__(self, roots: list[str], *, skip: str, options: dict[str, Any]) -> None:
        super().__init__(roots, skip=skip, lines=options.get("lines", LINES))
        self._frames: dict[int, FrameRecord] = {}
        self._raised: dict[int, FrameRecord] = {}
        self._lock = threading.Lock()
        self._log = RaisedLog()
        self._rounds: dict[CodeType, dict[int, int]] = {}
        """How often the lines of a function were recorded in this test."""
        self._calls_of: dict[CodeType, int] = {}
        self._cut: set[str] = set()
        """The functions of which not all was recorded."""
        self._failing: set[CodeKey] = set()
        self._is_failing: dict[CodeType, bool] = {}

    def focus(self, codes: set[CodeKey]) -> None:
        self._failing = codes
        self._is_failing.clear()

    def wants_call(self, frame: FrameType) -> bool:
        code = frame.f_code
        if self._calls_of.get(code, 0) >= _MAX_CALLS:
            return False
        if not self._failing or self._is_failing_function(code):
            return True
        known = self._frames.get(id(frame))
        if known is not None and known.code is code:
            return True
        return not is_resumed(frame) and self._depth(frame) <= _DEEPEST

    def _is_failing_function(self, code: CodeType) -> bool:
        known = self._is_failing.get(code)
        if known is None:
            known = self._is_failing[code] = key_of(code) in self._failing
        return known

    def _depth(self, frame: FrameType) -> int:
        """How many calls a frame is below one in which the test fails."""
        if not self._failing or self._is_failing_function(frame.f_code):
            return 0
        depth = 1
        above = frame.f_back
        for _ in range(_MAX_ABOVE):
            if above is None or depth > _DEEPEST:
                break
            record = self._frames.get(id(above))
            if record is not None and record.code is above.f_code:
                return record.depth + depth
            depth += self.wants(above.f_code)
            above = above.f_back
        return _DEEPEST + 1

    def called(self, frame: FrameType) -> None:
        code = frame.f_code
        known = self._frames.get(id(frame))
        if known is not None and known.code is code and is_resumed(frame):
            return
        self._calls_of[code] = calls = self._calls_of.get(code, 0) + 1
        if calls >= _MAX_CALLS:
            self._cut.add(name_of(code))
        self._frames[id(frame)] = FrameRecord(
            frame, is_for_display=self._is_for_display(frame), depth=self._depth(frame)
        )

    def stepped(self, frame: FrameType) -> None:
        code = frame.f_code
        record = self._frames.get(id(frame))
        if record is None or record.code is not code:
            if self._failing and not self._is_failing_function(code):
                return
            record = self._frames[id(frame)] = FrameRecord(frame, is_begun=True)
        rounds = self._rounds.setdefault(code, {})
        number = rounds.get(frame.f_lineno, 0)
        if number >= _MAX_ROUNDS:
            if number == _MAX_ROUNDS:
                rounds[frame.f_lineno] = number + 1
                self._cut.add(name_of(code))
            record.is_behind = True
            return
        rounds[frame.f_lineno] = number + 1
        self.lines += 1
        record.step(frame)

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        record = self._frames.pop(id(frame), None)
        if record is None or record.code is not frame.f_code:
            if raised:
                self._log.passed_on(frame)
            return
        record.settle(frame)
        record.line = frame.f_lineno
        if raised:
            record.ended = "raised"
            with self._lock:
                self._raised.pop(id(frame), None)
                self._raised[id(frame)] = record
                while len(self._raised) > _MAX_RAISED:
                    self._raised.pop(next(iter(self._raised)))
            self._log.passed_on(frame)
            return
        record.ended = "returned"
        record.returned = show(value)
        self._add_to_caller(frame, record)

    def yielded(self, frame: FrameType, value: Any) -> None:
        record = self._frames.get(id(frame))
        if record is None or record.code is not frame.f_code:
            return
        record.settle(frame)
        record.line = frame.f_lineno
        record.yield_line = frame.f_lineno
        record.yields += 1
        record.yielded = show(value)
        self._add_to_caller(frame, record)

    def begin_test(self) -> None:
        self._log.clear()
        self._rounds.clear()
        self._calls_of.clear()

    def to_json(self) -> dict[str, Any]:
        return {"cut": sorted(self._cut)}

    def raised(self, frame: FrameType, error: BaseException, trace: TracebackType | None) -> Any:
        record = self._frames.get(id(frame))
        return None if record is not None and record.is_for_display else self._log.note(frame, error, trace)

    def handled(self, frame: FrameType, raised: Any) -> None:
        if raised is not None:
            self._log.caught(frame, raised)

    def also_raised(self, known: list[BaseException]) -> list[dict[str, Any]]:
        return self._log.others(known)

    def record_of(self, frame: FrameType) -> dict[str, Any] | None:
        record = self._of(frame)
        if record is None:
            return self._unrecorded(frame)
        record.is_behind |= self.is_full
        record.settle(frame)
        return record.to_json()

    def _unrecorded(self, frame: FrameType) -> dict[str, Any] | None:
        """Of a frame that was not recorded: the values that it has now."""
        if not self.is_own(frame.f_code):
            return None
        record = FrameRecord(frame, is_begun=True)
        record.first.append((_NOT_RECORDED, record.captured))
        record.captured = {}
        return record.to_json()

    def _of(self, frame: FrameType) -> FrameRecord | None:
        """The record of a frame that is running, or that an exception left and keeps alive."""
        for records in (self._frames, self._raised):
            record = records.get(id(frame))
            if record is not None and record.code is frame.f_code:
                return record
        return None

    def _add_to_caller(self, frame: FrameType, record: FrameRecord) -> None:
        caller = None if record.is_for_display else self._caller(frame)
        if caller is not None:
            caller.add_callee(record)

    def _is_for_display(self, frame: FrameType) -> bool:
        """Whether a call renders a value for a message: made by a reporter, or inside of such a call."""
        is_text = frame.f_code.co_name in _TEXTS
        above = frame.f_back
        for _ in range(60):
            if above is None:
                return False
            record = self._frames.get(id(above))
            if record is not None and record.code is above.f_code:
                return record.is_for_display
            module = str(above.f_globals.get("__name__") or "")
            if module.startswith(_TEXT_MAKERS) or (is_text and module.partition(".")[0] in _REPORTERS):
                return True
            above = above.f_back
        return False

    def _caller(self, frame: FrameType) -> FrameRecord | None:
        """The nearest recorded frame above: a library's may be between two functions of the user."""
        above = frame.f_back
        for _ in range(20):
            if above is None:
                return None
            if (record := self._frames.get(id(above))) is not None and record.code is above.f_code:
                return record
            above = above.f_back
        return None


class FlowRecorder(Watcher):
    """Records a list of steps: the function, the line or how the call ended, and what changed."""

    def __init__(self, roots: list[str], *, skip: str, options: dict[str, Any]) -> None:
        super().__init__(roots, skip=skip, lines=_MAX_FLOW)
        self._main = threading.main_thread().ident
        self._frames: dict[int, tuple[FrameRecord, list[list[Any]]]] = {}
        self._functions: dict[CodeType, int] = {}
        self._steps: list[list[Any]] = []

    def called(self, frame: FrameType) -> None:
        if is_resumed(frame) or threading.get_ident() != self._main:
            return
        record = FrameRecord(frame)
        self._frames[id(frame)] = (record, [])
        self._steps.append([self._number(frame.f_code), "called", record.arguments])

    def stepped(self, frame: FrameType) -> None:
        if (known := self._known(frame)) is None:
            return
        self._settle(frame, *known)
        self.lines += 1
        step: list[Any] = [self._number(frame.f_code), frame.f_lineno, {}]
        self._steps.append(step)
        known[1][:] = [step]

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        if (known := self._known(frame)) is None:
            return
        self._settle(frame, *known)
        self._frames.pop(id(frame), None)
        end: list[Any] = ["raised", {}] if raised else ["returned", {"": show(value)}]
        self._steps.append([self._number(frame.f_code), *end])

    def to_json(self) -> dict[str, Any]:
        functions = [
            {"file": code.co_filename, "function": name_of(code), "first_line": code.co_firstlineno}
            for code in self._functions
        ]
        return {"functions": functions, "steps": self._steps}

    def _known(self, frame: FrameType) -> tuple[FrameRecord, list[list[Any]]] | None:
        known = self._frames.get(id(frame))
        return known if known is not None and known[0].code is frame.f_code else None

    def _settle(self, frame: FrameType, record: FrameRecord, last: list[list[Any]]) -> None:
        changes = record.changes_of(frame)
        for step in last:
            step[2].update(changes)

    def _number(self, code: CodeType) -> int:
        return self._functions.setdefault(code, len(self._functions))

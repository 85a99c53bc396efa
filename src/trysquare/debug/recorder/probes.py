"""Probes: expressions at lines, evaluated whenever a line begins and summarized at once, so that no hit is lost."""

from __future__ import annotations

import os
import threading
from types import CodeType, FrameType
from typing import Any, cast

from trysquare.debug.recorder.expressions import evaluate
from trysquare.debug.recorder.hooks import Watcher
from trysquare.debug.recorder.values import show

_MAX_DISTINCT = 1000
_LONGEST = 80


class Tally:
    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.count = 0
        self.errors = 0
        self.error = ""
        self.least: Any = None
        self.most: Any = None
        self.first = self.last = ""
        self.change: list[Any] | None = None
        self.seen: dict[str, int] = {}

    def evaluate(self, frame: FrameType, hit: int) -> None:
        value, error = evaluate(self.expression, frame)
        if error:
            self.errors += 1
            self.error = self.error or error
            return
        self.count += 1
        text = show(value, name=self.expression, longest=_LONGEST)
        if self.count == 1:
            self.first = text
        elif self.change is None and text != self.last:
            self.change = [hit, self.last, text]
        self.last = text
        if type(value) in (int, float):
            self.least = value if self.least is None or value < self.least else self.least
            self.most = value if self.most is None or value > self.most else self.most
        if text in self.seen or len(self.seen) < _MAX_DISTINCT:
            self.seen[text] = self.seen.get(text, 0) + 1

    def to_json(self) -> dict[str, Any]:
        common = sorted(self.seen.items(), key=lambda pair: -pair[1])[:3]
        return {
            "expression": self.expression,
            "count": self.count,
            "errors": self.errors,
            "error": self.error,
            "min": self.least,
            "max": self.most,
            "distinct": len(self.seen),
            "distinct_is_least": len(self.seen) >= _MAX_DISTINCT,
            "first": self.first,
            "last": self.last,
            "first_change": self.change,
            "common": [list(pair) for pair in common],
        }


class Probe:
    def __init__(self, wanted: dict[str, Any]) -> None:
        self.file = os.path.realpath(str(wanted["file"]))
        self.line = int(wanted["line"])
        self.hits = 0
        self.tallies = [Tally(str(expression)) for expression in wanted["expressions"]]

    def to_json(self) -> dict[str, Any]:
        values = [tally.to_json() for tally in self.tallies]
        return {"file": self.file, "line": self.line, "hits": self.hits, "values": values}


class ProbeRecorder(Watcher):
    """Records probes. Only functions with a probed line are traced, and of them only that line."""

    def __init__(self, roots: list[str], *, skip: str, options: dict[str, Any]) -> None:
        super().__init__(roots, skip=skip, lines=1)
        self._probes = [Probe(each) for each in cast(list[dict[str, Any]], options["probes"])]
        self._lock = threading.Lock()
        self._lines: dict[CodeType, dict[int, list[Probe]]] = {}
        # In a child that is forked while another thread counts, the lock would stay taken.
        os.register_at_fork(after_in_child=lambda: setattr(self, "_lock", threading.Lock()))

    @property
    def is_full(self) -> bool:
        return False

    def wants_line(self, code: CodeType, line: int) -> bool:
        return line in self._lines.get(code, {})

    def stepped(self, frame: FrameType) -> None:
        with self._lock:
            for probe in self._lines[frame.f_code][frame.f_lineno]:
                self.lines += 1
                probe.hits += 1
                for tally in probe.tallies:
                    tally.evaluate(frame, probe.hits)

    def to_json(self) -> dict[str, Any]:
        return {"probes": [probe.to_json() for probe in self._probes]}

    def _is_wanted(self, code: CodeType) -> bool:
        file = os.path.realpath(code.co_filename)
        lines = {line for _, _, line in code.co_lines() if line is not None}
        found: dict[int, list[Probe]] = {}
        for probe in self._probes:
            if probe.file == file and probe.line in lines:
                found.setdefault(probe.line, []).append(probe)
        self._lines[code] = found
        return bool(found)

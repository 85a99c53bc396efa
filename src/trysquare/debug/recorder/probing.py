"""Probing: expressions at lines, evaluated whenever a line begins, and summed up on the spot: no hit is lost."""

from __future__ import annotations

import os
import threading
from types import CodeType, FrameType
from typing import Any, cast

from trysquare.debug.recorder.evaluating import evaluate
from trysquare.debug.recorder.shown import show
from trysquare.debug.recorder.watcher import Watcher

DISTINCT = 1000
"""Different values that are told apart; more are only said to be more."""
_TEXT = 80


class Tally:
    """What one expression came to, over all hits of its line."""

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

    def take(self, frame: FrameType, hit: int) -> None:
        """Evaluate it once more."""
        value, error = evaluate(self.expression, frame)
        if error:
            self.errors += 1
            self.error = self.error or error
            return
        self.count += 1
        text = show(value, name=self.expression, longest=_TEXT)
        if self.count == 1:
            self.first = text
        elif self.change is None and text != self.last:
            self.change = [hit, self.last, text]
        self.last = text
        if type(value) in (int, float):
            self.least = value if self.least is None or value < self.least else self.least
            self.most = value if self.most is None or value > self.most else self.most
        if text in self.seen or len(self.seen) < DISTINCT:
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
            "distinct_is_least": len(self.seen) >= DISTINCT,
            "first": self.first,
            "last": self.last,
            "first_change": self.change,
            "common": [list(pair) for pair in common],
        }


class Probe:
    """A line, how often it was reached, and its expressions."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self.file = os.path.realpath(str(wanted["file"]))
        self.line = int(wanted["line"])
        self.hits = 0
        self.tallies = [Tally(str(expression)) for expression in wanted["expressions"]]

    def to_json(self) -> dict[str, Any]:
        values = [tally.to_json() for tally in self.tallies]
        return {"file": self.file, "line": self.line, "hits": self.hits, "values": values}


class Probing(Watcher):
    """Only functions with a probed line pay, and of them only that line."""

    def __init__(self, roots: list[str], *, skip: str, options: dict[str, Any]) -> None:
        super().__init__(roots, skip=skip, lines=1)
        self._probes = [Probe(each) for each in cast(list[dict[str, Any]], options["probes"])]
        self._lock = threading.Lock()
        self._places: dict[CodeType, dict[int, list[Probe]]] = {}
        # A child that is forked while another thread counts must not find the lock taken for ever.
        os.register_at_fork(after_in_child=self._renew_lock)

    @property
    def is_full(self) -> bool:
        return False

    def wants_line(self, code: CodeType, line: int) -> bool:
        return line in self._places.get(code, {})

    def stepped(self, frame: FrameType) -> None:
        with self._lock:
            for probe in self._places[frame.f_code][frame.f_lineno]:
                self.lines += 1
                probe.hits += 1
                for tally in probe.tallies:
                    tally.take(frame, probe.hits)

    def to_json(self) -> dict[str, Any]:
        return {"probes": [probe.to_json() for probe in self._probes]}

    def _is_wanted(self, code: CodeType) -> bool:
        file = os.path.realpath(code.co_filename)
        lines = {line for _, _, line in code.co_lines() if line is not None}
        places: dict[int, list[Probe]] = {}
        for probe in self._probes:
            if probe.file == file and probe.line in lines:
                places.setdefault(probe.line, []).append(probe)
        self._places[code] = places
        return bool(places)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

"""What a close costs after few and after very many closes, for a small and for a large bot: CPU, memory, state file."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bot_calls import ACTIONS, BEHAVIORS, BOT, BotClient, start_bot, time_of
from benchmarks.measures import cpu_seconds, running
from benchmarks.stdio_client import StdioClient
from benchmarks.tables import Table, Target

CLOSES = (100, 100_000)
LIMIT = 1.2
"""How many times the CPU and memory of a close after few closes it may take after many."""
_WARM = 60
_TURN = 12
_RUNS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """A bot that is measured."""

    title: str
    name: str
    behaviors: Sequence[str]
    actions: Sequence[str]

    def folder(self, parent: Path) -> Path:
        """Its folder; a generated one is written first."""
        if self.name == BOT.name:
            return BOT
        folder = parent / self.name
        _write(folder / "bot_config.json", {"name": self.name, "behaviors": list(self.behaviors)})
        for order, action in enumerate(self.actions, start=1):
            config = {"name": action, "workflow": True, "order": order}
            _write(folder / "base_actions" / f"{order}_{action}" / "action_config.json", config)
        for order, behavior in enumerate(self.behaviors, start=1):
            _write(folder / "behaviors" / f"{order}_{behavior}" / "instructions.json", {"instructions": ["Do it."]})
        return folder


SMALL = Served(title="story_bot, 56 actions in 8 behaviors", name="story_bot", behaviors=BEHAVIORS, actions=ACTIONS)
LARGE = Served(
    title="a bot of 1,000 actions in 50 behaviors",
    name="large_bot",
    behaviors=[f"phase{number}" for number in range(50)],
    actions=["initialize_project", *(f"step{number}" for number in range(19))],
)


@dataclass(slots=True)
class Growth:
    """The best of all rounds, by bot and number of earlier closes: CPU of a close in ms, memory and file in kB."""

    cpu: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    memory: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    file: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])


def measure_growth(growth: Growth, seconds: float, *, quick: bool = False) -> None:
    """One round: both sizes of a history take turns, so that a busy machine is busy for both."""
    for served in (SMALL,) if quick else (SMALL, LARGE):
        with ExitStack() as stack:
            folders = {closes: Path(stack.enter_context(tempfile.TemporaryDirectory())) for closes in CLOSES}
            sites = {closes: stack.enter_context(_Site(served, closes, folders[closes])) for closes in CLOSES}
            end = time.monotonic() + 2 * seconds
            while time.monotonic() < end or not all(site.calls for site in sites.values()):
                for site in sites.values():
                    site.turn()
            for closes, site in sites.items():
                for kind, found in site.figures().items():
                    known: dict[tuple[str, int], float] = getattr(growth, kind)
                    known[served.title, closes] = min(known.get((served.title, closes), found), found)


class _Site:
    """One server on a project with a history."""

    def __init__(self, served: Served, closes: int, folder: Path) -> None:
        self._served, self._folder, self._stack = served, folder, ExitStack()
        self.project, self.calls, self._cpu, self._number = folder / "project", 0, 0.0, 0
        write_history(self.project, served, closes)

    def __enter__(self) -> _Site:
        start = start_bot(self.project, self._served.folder(self._folder))
        with running(start, piped=True) as first:
            # The history is taken over by another process: what that takes is not what a close takes.
            BotClient(StdioClient(first), self._served.name).bot("close_current_action")
        self._process = self._stack.enter_context(running(start, piped=True))
        self._client = BotClient(StdioClient(self._process), self._served.name)
        for _ in range(_WARM):
            self._close()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def turn(self) -> None:
        """Some closes, with the CPU that they took."""
        before = cpu_seconds(self._process.pid)
        for _ in range(_TURN):
            self._close()
        self._cpu, self.calls = self._cpu + cpu_seconds(self._process.pid) - before, self.calls + _TURN

    def _close(self) -> None:
        # Every behavior is done; the last of its actions is taken up again, closed, and so on.
        behavior = self._served.behaviors[self._number % len(self._served.behaviors)]
        self._client.bot(f"{behavior}_{self._served.actions[1]}", self._served.actions[1])
        self._client.bot("close_current_action", self._served.actions[1])
        self._number += 1

    def figures(self) -> Mapping[str, float]:
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        memory = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
        file = (self.project / "workflow_state.json").stat().st_size / 1000
        return {"cpu": self._cpu / self.calls * 1000, "memory": float(memory), "file": file}


def write_history(project: Path, served: Served, closes: int) -> None:
    """A state file with this many closes, which the first call takes over: half in the main run, half in others."""
    others = [f"run-{number}" for number in range(min(_RUNS, closes // 100))]
    document = _run(served, closes // 2)
    document["runs"] = {name: _run(served, closes // 2 // len(others)) for name in others}
    _write(project / "workflow_state.json", document)


def _run(served: Served, closes: int) -> dict[str, Any]:
    places = [f"{served.name}.{behavior}.{action}" for behavior in served.behaviors for action in served.actions]
    lines = [{"action_state": places[number % len(places)], "timestamp": time_of(number)} for number in range(closes)]
    first = f"{served.name}.{served.behaviors[0]}"
    return {
        "current_behavior": first,
        "current_action": f"{first}.{served.actions[1]}",
        "timestamp": time_of(closes),
        "completed_actions": lines,
        "behaviors": {name: {"current_action": served.actions[1]} for name in served.behaviors},
    }


def _write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def growth_tables(growth: Growth) -> Iterator[Table]:
    """The figures, few closes beside many."""
    for title in dict.fromkeys(title for title, _ in growth.cpu):
        rows = [_row(title, name, found, unit) for name, found, unit in _kinds(growth)]
        head = ["", *(f"after {closes:,} closes" for closes in CLOSES), "times"]
        yield Table(title=f"Bots: an action taken up again and closed, {title}", head=head, rows=rows)


def _kinds(growth: Growth) -> Iterator[tuple[str, Mapping[tuple[str, int], float], str]]:
    yield "CPU", growth.cpu, "ms"
    yield "memory of the server", growth.memory, "kB"
    yield "workflow_state.json", growth.file, "kB"


def _row(title: str, name: str, found: Mapping[tuple[str, int], float], unit: str) -> list[str]:
    few, many = (found[title, closes] for closes in CLOSES)
    return [name, f"{few:,.2f} {unit}", f"{many:,.2f} {unit}", f"{many / few:.2f}x"]


def growth_targets(growth: Growth) -> Iterator[Target]:
    """What we promise: neither CPU nor memory of a close grows with the closes before it."""
    for title in dict.fromkeys(title for title, _ in growth.cpu):
        for name, found in (("CPU", growth.cpu), ("memory", growth.memory)):
            few, many = (found[title, closes] for closes in CLOSES)
            promise = f"times the {name} of a close after {CLOSES[1]:,} closes, {title}"
            yield Target(promise=promise, found=many / few, limit=LIMIT)

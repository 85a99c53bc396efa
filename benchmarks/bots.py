"""The section `bots`: calls that forward to an action and change the state, beside a plain tool of the same server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bot_calls import (
    Turn,
    action_turn,
    behavior_turn,
    bot_load,
    close_turn,
    forward_turn,
    plain_turn,
    write_state,
)
from benchmarks.bot_growth import Growth, growth_tables, growth_targets, measure_growth
from benchmarks.tables import Table, Target

HISTORIES = (8, 10_000)
PLAIN = "a plain tool"
CALLS: dict[str, Turn] = {
    PLAIN: plain_turn,
    "the bot tool: forwards to the current action": forward_turn,
    "a behavior tool: forwards, and writes current_behavior": behavior_turn,
    "an action's tool: moves the pointer": action_turn,
    "close_current_action": close_turn,
}
LIMIT = 5
"""Milliseconds of CPU that a call of a bot may take beyond a plain one."""


@dataclass(slots=True)
class BotResults:
    """Milliseconds of CPU a call, by the length of the history and the call; the best of all rounds."""

    cpu: dict[tuple[int, str], float] = field(default_factory=dict[tuple[int, str], float])
    growth: Growth = field(default_factory=Growth)

    def beyond(self, history: int, title: str) -> float:
        """What a call takes beyond a plain tool of the same server."""
        return self.cpu[history, title] - self.cpu[history, PLAIN]


def measure_bots(results: BotResults, seconds: float, *, quick: bool = False) -> None:
    """One round of everything."""
    for history in HISTORIES[:1] if quick else HISTORIES:
        for title, turn in CALLS.items():
            with tempfile.TemporaryDirectory() as folder:
                project = Path(folder) / "project"
                write_state(project, history)
                found = bot_load(project, turn, seconds).cpu_per_call / 1000
            results.cpu[history, title] = min(results.cpu.get((history, title), found), found)
    measure_growth(results.growth, seconds, quick=quick)


def bot_tables(results: BotResults) -> Iterator[Table]:
    """The figures of this section."""
    for history in dict.fromkeys(history for history, _ in results.cpu):
        rows = [_row(results, history, title) for known, title in results.cpu if known == history]
        head = ["call", "CPU a call", "beyond a plain tool", "to a plain tool"]
        yield Table(title=f"Bots: story_bot over stdio, {history:,} completed actions", head=head, rows=rows)
    yield from growth_tables(results.growth)


def _row(results: BotResults, history: int, title: str) -> list[str]:
    found = results.cpu[history, title]
    more = f"{results.beyond(history, title):.2f} ms" if title != PLAIN else "-"
    plain = results.cpu[history, PLAIN]
    # The system counts CPU in ticks: in a run of a few calls a plain tool may have used none.
    ratio = f"{found / plain:.1f}x" if plain else "-"
    return [title, f"{found:.2f} ms", more, ratio]


def bot_targets(results: BotResults) -> Iterator[Target]:
    """What we promise of this section."""
    for history, title in results.cpu:
        if title != PLAIN:
            promise = f"ms of CPU beyond a plain tool, {title.partition(':')[0]}, {history:,} completed actions"
            yield Target(promise=promise, found=results.beyond(history, title), limit=LIMIT)
    yield from growth_targets(results.growth)

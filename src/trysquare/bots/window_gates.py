"""What an edit of the state file may not do: pass an action that only a person can close.

Whoever has tools for files can write the file. Where proof is asked for, an edit may go back and may take up again what
was closed, but it closes nothing, and it points at nothing behind an action that still waits for its proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trysquare.bots.plan import Plan, Position
from trysquare.bots.workflow import Entry, NeedsProof, RunState, current_in


def passed_gate(
    plan: Plan, now: RunState, edited: RunState, added: Iterable[Entry], needs_proof: NeedsProof
) -> Position | None:
    """The first action that an edit would pass without its proof, or None where it passes none.

    `added` are the lines that the edit brings into the history: also what is closed is not closed once more by a file.
    """
    order = [Position(behavior=behavior, action=action) for behavior in plan.behaviors for action in plan.actions]
    told = (entry.position for entry in added if entry.kind == "completed")
    passed = {*told, *_closed(order, now, edited), *_skipped(plan, order, now, edited)}
    return next((each for each in order if each in passed and plan.policy(each) != "skip" and needs_proof(each)), None)


def without_delivery(now: RunState, edited: RunState, needs_proof: NeedsProof) -> RunState:
    """The edited state; where proof is asked for, only a tool can say that instructions were handed out."""
    if not edited.delivered or not needs_proof(edited.current):
        return edited
    return replace(edited, delivered=now.delivered and now.current == edited.current)


def _closed(order: Sequence[Position], now: RunState, edited: RunState) -> Iterator[Position]:
    """What the edit says is closed, and is not."""
    return (each for each in order if edited.is_completed(each) and not now.is_completed(each))


def _skipped(plan: Plan, order: Sequence[Position], now: RunState, edited: RunState) -> Iterator[Position]:
    """What is not closed and would lie behind a pointer that the edit moved: that of the run, or of a behavior."""
    start, stop = (len(order) if state.finished else order.index(state.current) for state in (now, edited))
    behind = [*order[start:stop]]
    for behavior in plan.behaviors:
        start, stop = (order.index(current_in(plan, state, behavior)) for state in (now, edited))
        behind += order[start:stop]
    return (each for each in behind if not now.is_completed(each))

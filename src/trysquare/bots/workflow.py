"""Workflow: where a run stands and where it goes. Pure functions from one state to the next.

A run has one current position and, for each behavior, a pointer of its own, so that work on another behavior in between
loses nothing. Completions are only ever added: going back adds a `reopened` mark and deletes nothing. `version` grows
with every change and orders everything; clocks order nothing. A state keeps only the last word on each action, so that
its size does not grow with its history; each move tells what it adds to the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from trysquare.bots.plan import INITIALIZE, Jump, Plan, Position

NeedsProof: TypeAlias = Callable[[Position], bool]
"""Whether only a human can close an action."""

Approval: TypeAlias = Literal["claimed", "proven", "auto", "combined", "skipped"]
"""How a completion came about: somebody said so, a person proved it, by itself, with the next action, or skipped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line of a run's history: a completion, or the mark that an action was taken up again."""

    position: Position
    at: str
    version: int
    kind: Literal["completed", "reopened"] = "completed"
    approval: Approval = "claimed"
    delivered: bool = True
    """Whether the action's instructions were handed out before it was closed."""
    reason: str | None = None
    by: str | None = None
    # What a proof is bound to is kept in the store alone. A line that comes from the state file is compared without it.
    how: str | None = field(default=None, compare=False)
    """How a human agreed to it; None where none did, or where it was not recorded."""
    files: Mapping[str, str] | None = field(default=None, compare=False)
    """The digests of the files that a human agreed to, by the paths of the bot's definition."""

    @property
    def is_proven(self) -> bool:
        """Whether a human agreed to this completion."""
        return self.kind == "completed" and (self.approval == "proven" or self.how is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunState:
    """Where one run of a bot stands."""

    version: int
    current: Position
    pointers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The current action of each behavior that was begun."""
    latest: Mapping[Position, Entry] = field(default_factory=dict[Position, Entry])
    """The last word on each action that has one."""
    delivered: bool = False
    """Whether the current action's instructions were handed out since it became current."""
    finished: bool = False
    rejections: int = 0
    """How often the current action was sent back to work since it became current."""
    strict: bool = False
    """Whether every close of this run needs proof. It stays so whatever the process that works on it was told."""

    def is_completed(self, position: Position) -> bool:
        """Whether the last word on an action is that it is done."""
        last = self.latest.get(position)
        return last is not None and last.kind == "completed"

    def last_completed(self, behavior: str) -> Position | None:
        """The last action of a behavior that was completed and not taken up again."""
        done = [
            each for each in self.latest.values() if each.position.behavior == behavior and each.kind == "completed"
        ]
        return max(done, key=lambda each: each.version).position if done else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """An action was made current."""

    state: RunState
    jump: Jump
    added: tuple[Entry, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Closed:
    """An action was completed, and the pointer has moved."""

    state: RunState
    completed: Position
    next: Position | None
    completed_behavior: str | None = None
    next_behavior: str | None = None
    added: tuple[Entry, ...] = ()


def is_open(state: RunState, position: Position, needs_proof: NeedsProof) -> bool:
    """Whether an action is still to be done; one that needs proof is open until a human proved it."""
    last = state.latest.get(position)
    if last is None or last.kind != "completed":
        return True
    return is_gate(state, position, needs_proof) and not last.is_proven


def is_gate(state: RunState, position: Position, needs_proof: NeedsProof) -> bool:
    """Whether what follows an action waits for its proof; `needs_proof` is what the bot's definition says.

    In a strict run that is every action but initialize_project, which only settles a folder: a human closes it too, and
    sees the folder in every later question.
    """
    return needs_proof(position) or (state.strict and position.action != INITIALIZE)


def open_actions(plan: Plan, state: RunState, needs_proof: NeedsProof) -> Iterator[Position]:
    """What is left to do, in order."""
    return (each for each in plan.order() if plan.policy(each) != "skip" and is_open(state, each, needs_proof))


def open_gates(plan: Plan, state: RunState, needs_proof: NeedsProof) -> Iterator[Position]:
    """The actions that wait for a human's proof, in order."""
    gates = (each for each in plan.order() if is_gate(state, each, needs_proof))
    return (each for each in gates if plan.policy(each) != "skip" and is_open(state, each, needs_proof))


def gate_before(plan: Plan, state: RunState, position: Position, needs_proof: NeedsProof) -> Position | None:
    """The first gate that stands before an action and waits for its proof: nothing behind it is opened or closed."""
    gate = next(open_gates(plan, state, needs_proof), None)
    return gate if gate is not None and plan.comes_before(gate, position) else None


def begin(plan: Plan) -> RunState:
    """A run that has not done anything yet."""
    return RunState(version=0, current=plan.first, pointers={plan.first.behavior: plan.first.action})


def current_in(plan: Plan, state: RunState, behavior: str | None = None) -> Position:
    """The action that a forward call executes: of the whole run, or of one behavior."""
    if behavior is None or behavior == state.current.behavior:
        return state.current
    if (pointer := state.pointers.get(behavior)) in plan.actions:
        return Position(behavior=behavior, action=str(pointer))
    return derived(plan, state, behavior)


def derived(plan: Plan, state: RunState, behavior: str) -> Position:
    """Where a behavior stands by its completions alone."""
    last = state.last_completed(behavior)
    if last is None:
        return plan.begin(behavior)
    return plan.after(last) or last


def jump_of(state: RunState, position: Position) -> Jump:
    """What opening an action means: it is the current one, one ahead, or one that was done already."""
    if position == state.current and not state.finished:
        return "in_order"
    if state.is_completed(position):
        return "reopened"
    return "in_order" if state.pointers.get(position.behavior) == position.action else "ahead"


def open_action(plan: Plan, state: RunState, position: Position, *, at: str, by: str | None = None) -> Opened:
    """Make an action current and note that its instructions are handed out. Nothing is completed by it."""
    jump = jump_of(state, position)
    if position == state.current and state.delivered and jump == "in_order":
        return Opened(state=state, jump=jump)
    version = state.version + 1
    reopened = (Entry(position=position, at=at, version=version, kind="reopened", by=by),) if jump == "reopened" else ()
    fresh = position != state.current or jump == "reopened"
    return Opened(
        state=replace(
            state,
            version=version,
            current=position,
            pointers={**state.pointers, position.behavior: position.action},
            latest={**state.latest, **{entry.position: entry for entry in reopened}},
            delivered=True,
            finished=False,
            rejections=0 if fresh else state.rejections,
        ),
        jump=jump,
        added=reopened,
    )


def select_behavior(plan: Plan, state: RunState, behavior: str) -> RunState:
    """Make a behavior current at its own pointer, as a behavior tool does even when it only forwards."""
    position = current_in(plan, state, behavior)
    if position == state.current:
        return state
    pointers = {**state.pointers, behavior: position.action}
    return replace(
        state, version=state.version + 1, current=position, pointers=pointers, delivered=False, finished=False
    )


def close(
    plan: Plan,
    state: RunState,
    *,
    at: str,
    approval: Approval = "claimed",
    by: str | None = None,
    reason: str | None = None,
    how: str | None = None,
    files: Mapping[str, str] | None = None,
) -> Closed:
    """Complete the current action and move on: to the next action, the next behavior, or the end."""
    version = state.version + 1
    entry = Entry(
        position=state.current,
        at=at,
        version=version,
        approval=approval,
        delivered=state.delivered,
        by=by,
        reason=reason,
        how=how,
        files=files,
    )
    latest = {**state.latest, entry.position: entry}
    done = replace(state, version=version, latest=latest, delivered=False, rejections=0)
    after = following(plan, done, state.current)
    closed = Closed(
        state=replace(done, finished=True) if after is None else _at(done, after),
        completed=state.current,
        next=after,
        added=(entry,),
    )
    if after is not None and after.behavior == state.current.behavior:
        return closed
    return replace(
        closed,
        completed_behavior=state.current.behavior,
        next_behavior=None if after is None else after.behavior,
    )


def following(plan: Plan, state: RunState, position: Position) -> Position | None:
    """Where a run goes once an action is done: on in its behavior, to a later one that has work left, or nowhere."""
    if (after := plan.after(position)) is not None:
        return after
    for behavior in plan.behaviors_after(position.behavior):
        candidate = current_in(plan, state, behavior)
        if not (state.is_completed(candidate) and plan.after(candidate) is None):
            return candidate
        # All of this behavior was done before, out of order.
    return None


def _at(state: RunState, position: Position) -> RunState:
    pointers = {**state.pointers, position.behavior: position.action}
    return replace(state, current=position, pointers=pointers, finished=False)


def reject(state: RunState, *, at: str) -> RunState:
    """Send the current action back to work: it stays current, and what was handed in does not count."""
    return replace(state, version=state.version + 1, rejections=state.rejections + 1)

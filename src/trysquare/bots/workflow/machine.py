"""Pure workflow state machine: plan, run state, transitions, and what a changed definition no longer demands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from pydantic import TypeAdapter

from trysquare.core.errors import ErrorCode, ToolError

INITIALIZE = "initialize_project"
"""The action that confirms the project directory of a run."""

Policy: TypeAlias = Literal["manual", "auto", "skip", "combine_next"]
"""When an action is complete: closed by a call, closed by itself, left out, or closed together with the next one."""

JumpPolicy: TypeAlias = Literal["allow", "confirm", "deny"]
Jump: TypeAlias = Literal["in_order", "ahead", "reopened"]

RunsOf: TypeAlias = Literal["project", "branch", "worktree"]
"""What has a run of its own where a call names none: the whole project, each branch, or each worktree."""


class StateConflict(ToolError):
    """The present state does not allow the call."""

    default_code = ErrorCode.STATE_CONFLICT


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Position:
    """An action of a behavior."""

    behavior: str
    action: str

    def __str__(self) -> str:
        return f"{self.behavior}.{self.action}"

    def path(self, bot: str) -> str:
        """The position as state files write it: `bot.behavior.action`."""
        return f"{bot}.{self}"


@lru_cache(maxsize=16_384)
def position_of(behavior: str, action: str) -> Position:
    """The same value for the same names: lookups by it compare no names."""
    return Position(behavior=behavior, action=action)


@dataclass(frozen=True, kw_only=True, slots=True)
class Depth:
    """The preset that a run was started with, as the definition was then: a later edit does not change it."""

    name: str
    left_out: frozenset[Position] = frozenset()
    """Actions that do not apply."""
    waived: frozenset[Position] = frozenset()
    """Actions whose gates do not apply."""
    confirmed: bool = False
    """Whether a human agreed to the gates that it takes away."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """A depth that a run can be started with."""

    depth: Depth
    description: str = ""
    drops_proof: bool = False
    """Whether it may take away gates that demand a human's proof; a human is asked at the start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Behaviors and workflow actions in order, and the gates between them."""

    bot: str
    behaviors: tuple[str, ...]
    actions: tuple[str, ...]
    """The workflow actions, in order; every behavior has all of them but `absent`."""
    absent: frozenset[Position] = frozenset()
    """Actions that belong to other behaviors only."""
    independent: frozenset[str] = frozenset()
    """Actions outside the order: they never move the pointer and are never completed."""
    policies: Mapping[Position, Policy] = field(default_factory=dict[Position, Policy])
    jumps: Mapping[Jump, JumpPolicy] = field(default_factory=dict[Jump, JumpPolicy])
    presets: Mapping[str, Preset] = field(default_factory=dict[str, Preset])
    order: tuple[Position, ...] = field(init=False, compare=False, repr=False)
    """Every workflow action of every behavior, in order."""

    def __post_init__(self) -> None:
        every = (position_of(behavior, action) for behavior in self.behaviors for action in self.actions)
        object.__setattr__(self, "order", tuple(each for each in every if each not in self.absent))

    @property
    def first(self) -> Position:
        """The first action that is not skipped."""
        begins = map(self.begin, self.behaviors)
        return next((each for each in begins if self.policy(each) != "skip"), self.begin(self.behaviors[0]))

    def of(self, state: RunState) -> Plan:
        """The plan of one run: what its depth leaves out is skipped."""
        return self.at(state.in_force)

    def at(self, depth: Depth | None) -> Plan:
        if depth is None or not depth.left_out:
            return self
        skipped: dict[Position, Policy] = dict.fromkeys(depth.left_out, "skip")
        return replace(self, policies={**self.policies, **skipped})

    def applying(self) -> int:
        """How many actions are not skipped."""
        return sum(1 for each in self.order if self.policy(each) != "skip")

    def begin(self, behavior: str) -> Position:
        """The first action of a behavior that is not skipped."""
        wanted = (each for each in self.actions if self.policy(Position(behavior=behavior, action=each)) != "skip")
        return Position(behavior=behavior, action=next(wanted, self.actions[0]))

    def policy(self, position: Position) -> Policy:
        return "skip" if self.absent and position in self.absent else self.policies.get(position, "manual")

    def jump_policy(self, jump: Jump) -> JumpPolicy:
        return "allow" if jump == "in_order" else self.jumps.get(jump, "allow")

    def contains(self, position: Position) -> bool:
        return position.behavior in self.behaviors and position.action in self.actions and position not in self.absent

    def comes_before(self, first: Position, second: Position) -> bool:
        behaviors, actions = self.behaviors.index, self.actions.index
        return (behaviors(first.behavior), actions(first.action)) < (behaviors(second.behavior), actions(second.action))

    def after(self, position: Position) -> Position | None:
        """The next action of the same behavior that is not skipped, or None at its end."""
        rest = self.actions[self.actions.index(position.action) + 1 :]
        following = (Position(behavior=position.behavior, action=action) for action in rest)
        return next((each for each in following if self.policy(each) != "skip"), None)

    def together(self, position: Position) -> tuple[Position, ...]:
        """An action and those that are delivered and closed together with it."""
        found = [position]
        while self.policy(found[-1]) == "combine_next" and (after := self.after(found[-1])) is not None:
            found.append(after)
        return tuple(found)


NeedsProof: TypeAlias = Callable[[Position], bool]
"""Whether only a human can close an action."""

Approval: TypeAlias = Literal["claimed", "confirmed", "proven", "auto", "combined", "skipped"]
"""How a completion came about: claimed by a call, confirmed by a human, proven by the signature of one, automatic, with
the next action, or skipped."""
APPROVED: Final = frozenset[Approval]({"confirmed", "proven"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line of a run's history: a completion, or the mark that an action was reopened."""

    position: Position
    at: str
    version: int
    kind: Literal["completed", "reopened"] = "completed"
    approval: Approval = "claimed"
    delivered: bool = True
    """Whether the action's instructions were delivered before it was closed."""
    reason: str | None = None
    by: str | None = None
    # The evidence of a proof is in the store only, so that a line read from the state file is compared without it.
    how: str | None = field(default=None, compare=False)
    """How a human approved it; None without approval or without a record of it."""
    files: Mapping[str, str] | None = field(default=None, compare=False)
    """Digests of the approved files, by the paths of the bot's definition."""

    @property
    def is_approved(self) -> bool:
        """Whether a human approved this completion."""
        return self.kind == "completed" and (self.approval in APPROVED or self.how is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunState:
    """Current state of one run.

    Each behavior has a pointer of its own, so that switching behaviors loses nothing. `version` grows with every change
    and orders everything; clocks order nothing. Only the latest entry of each action is part of the state, so that its
    size does not grow with the history.
    """

    version: int
    current: Position
    pointers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The current action of each started behavior."""
    latest: Mapping[Position, Entry] = field(default_factory=dict[Position, Entry])
    delivered: bool = False
    """Whether the current action's instructions were delivered since it became current."""
    finished: bool = False
    rejections: int = 0
    """How often the current action was rejected since it became current."""
    strict: bool = False
    """Whether every close needs proof; permanent, whatever the settings of the process that continues the run."""
    depth: Depth | None = None
    """The preset that it was started with; None for the full depth."""

    @property
    def in_force(self) -> Depth | None:
        """The depth that applies: in a strict run, only one to which a human agreed."""
        return None if self.depth is None or (self.strict and not self.depth.confirmed) else self.depth

    @property
    def waived(self) -> frozenset[Position]:
        """The actions whose gates do not apply."""
        return frozenset() if self.in_force is None else self.in_force.waived

    def is_completed(self, position: Position) -> bool:
        last = self.latest.get(position)
        return last is not None and last.kind == "completed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
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
    return is_gate(state, position, needs_proof) and not last.is_approved


def is_gate(state: RunState, position: Position, needs_proof: NeedsProof) -> bool:
    """Whether what follows an action waits for its proof; `needs_proof` comes from the bot's definition.

    In a strict run that is every action but initialize_project, which only confirms a directory: a human closes it too,
    and sees the directory in every later question.
    """
    if not needs_proof(position) and not (state.strict and position.action != INITIALIZE):
        return False
    return position not in state.waived


def open_actions(plan: Plan, state: RunState, needs_proof: NeedsProof) -> Iterator[Position]:
    """The actions left to do, in order."""
    plan = plan.of(state)
    return (each for each in plan.order if plan.policy(each) != "skip" and is_open(state, each, needs_proof))


def open_gates(plan: Plan, state: RunState, needs_proof: NeedsProof) -> Iterator[Position]:
    """The gates that wait for a human's proof, in order."""
    plan = plan.of(state)
    # Of many actions few are gates, so that is asked first.
    gates = (each for each in plan.order if is_gate(state, each, needs_proof))
    return (each for each in gates if plan.policy(each) != "skip" and is_open(state, each, needs_proof))


def gate_before(plan: Plan, state: RunState, position: Position, needs_proof: NeedsProof) -> Position | None:
    """The first open gate before an action: nothing behind it is opened or closed."""
    gate = next(open_gates(plan, state, needs_proof), None)
    return gate if gate is not None and plan.comes_before(gate, position) else None


def begin(plan: Plan, depth: Depth | None = None, *, strict: bool = False) -> RunState:
    """A run that has not started, at the full depth or at that of a preset."""
    state = RunState(version=0, current=plan.first, strict=strict, depth=depth)
    first = plan.of(state).first
    return replace(state, current=first, pointers={first.behavior: first.action})


def keep_depth(plan: Plan, state: RunState, depth: Depth | None) -> RunState:
    """The state at a depth; a pointer at an action that does not apply is moved on."""
    state = replace(state, depth=depth)
    own = plan.of(state)
    if state.finished or own.policy(state.current) != "skip" or plan.policy(state.current) == "skip":
        return state
    after = following(plan, state, state.current)
    return replace(state, finished=True) if after is None else point_to(state, after)


def current_in(plan: Plan, state: RunState, behavior: str | None = None) -> Position:
    """The current action of the whole run, or of one behavior."""
    if behavior is None or behavior == state.current.behavior:
        return state.current
    if (pointer := state.pointers.get(behavior)) in plan.actions:
        return Position(behavior=behavior, action=str(pointer))
    return derived(plan, state, behavior)


def derived(plan: Plan, state: RunState, behavior: str) -> Position:
    """The current action of a behavior by its completions alone."""
    plan = plan.of(state)
    done = (each for each in state.latest.values() if each.position.behavior == behavior)
    last = max((each for each in done if each.kind == "completed"), key=lambda each: each.version, default=None)
    return plan.begin(behavior) if last is None else plan.after(last.position) or last.position


def jump_of(state: RunState, position: Position) -> Jump:
    """Classify opening an action: the current one, one ahead, or a completed one."""
    if position == state.current and not state.finished:
        return "in_order"
    if state.is_completed(position):
        return "reopened"
    return "in_order" if state.pointers.get(position.behavior) == position.action else "ahead"


def open_action(plan: Plan, state: RunState, position: Position, *, at: str, by: str | None = None) -> Opened:
    """Make an action current and mark its instructions as delivered. Completes nothing."""
    jump = jump_of(state, position)
    if position == state.current and state.delivered and jump == "in_order":
        return Opened(state=state, jump=jump)
    version = state.version + 1
    reopened = (Entry(position=position, at=at, version=version, kind="reopened", by=by),) if jump == "reopened" else ()
    opened = replace(
        point_to(state, position),
        version=version,
        latest={**state.latest, **{entry.position: entry for entry in reopened}},
        delivered=True,
        rejections=0 if position != state.current or reopened else state.rejections,
    )
    return Opened(state=opened, jump=jump, added=reopened)


def select_behavior(plan: Plan, state: RunState, behavior: str) -> RunState:
    """Make a behavior current at its own pointer, as a behavior tool does even when it only forwards."""
    position = current_in(plan, state, behavior)
    if position == state.current:
        return state
    return replace(point_to(state, position), version=state.version + 1, delivered=False)


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
    """Complete the current action and move to the next action, the next behavior, or the end."""
    position, version = state.current, state.version + 1
    entry = Entry(
        position=position,
        at=at,
        version=version,
        approval=approval,
        delivered=state.delivered,
        by=by,
        reason=reason,
        how=how,
        files=files,
    )
    latest = {**state.latest, position: entry}
    done = replace(state, version=version, latest=latest, delivered=False, rejections=0)
    after = following(plan, done, position)
    stays = after is not None and after.behavior == position.behavior
    return Closed(
        state=replace(done, finished=True) if after is None else point_to(done, after),
        completed=position,
        next=after,
        completed_behavior=None if stays else position.behavior,
        next_behavior=None if stays or after is None else after.behavior,
        added=(entry,),
    )


def following(plan: Plan, state: RunState, position: Position) -> Position | None:
    """Where a run continues after an action: in its behavior, in a later one with work left, or nowhere."""
    plan = plan.of(state)
    if (after := plan.after(position)) is not None:
        return after
    for behavior in plan.behaviors[plan.behaviors.index(position.behavior) + 1 :]:
        candidate = current_in(plan, state, behavior)
        if plan.policy(candidate) == "skip" and plan.policy(plan.begin(behavior)) == "skip":
            continue
        if not (state.is_completed(candidate) and plan.after(candidate) is None):
            return candidate
    return None


def point_to(state: RunState, position: Position) -> RunState:
    """The state with its pointers moved to a position."""
    pointers = {**state.pointers, position.behavior: position.action}
    return replace(state, current=position, pointers=pointers, finished=False)


def reject(state: RunState) -> RunState:
    """Send the current action back to work; it stays current."""
    return replace(state, version=state.version + 1, rejections=state.rejections + 1)


PROOF = "a human's proof"


@dataclass(frozen=True, kw_only=True, slots=True)
class Strength:
    """What a definition demands: the gates with their demands, the order that they guard, and the jumps.

    The names of the demands make no difference, so that future demands are compared in the same way.
    """

    digest: str
    order: tuple[str, ...]
    """The workflow actions in order, as `behavior.action`, without skipped ones."""
    gates: Mapping[str, frozenset[str]]
    independent: frozenset[str]
    jumps: Mapping[str, int]


STORED_STRENGTH = TypeAdapter(Strength)
"""Reads and writes the strength that is stored with a run."""


def weakenings(before: Strength, after: Strength, *, strict: bool = False) -> tuple[str, ...]:
    """Describe what a definition no longer demands; in a strict run every action is a gate.

    A definition is weaker where a demand is missing, where an action is reachable without the gate that guarded it, or
    where a jump is easier.
    """
    if before.digest == after.digest:
        return ()
    old, new = _gates_of(before, strict=strict), _gates_of(after, strict=strict)
    found = [text for path in before.order if path in old for text in _weaker_gate(path, old, new, before, after)]
    found += [f"the jump `{jump}` is easier" for jump, rank in before.jumps.items() if after.jumps.get(jump, 0) < rank]
    return tuple(dict.fromkeys(found))


def _gates_of(strength: Strength, *, strict: bool) -> Mapping[str, frozenset[str]]:
    if not strict:
        return strength.gates
    return {path: strength.gates.get(path, frozenset()) | {PROOF} for path in strength.order}


def _weaker_gate(
    path: str, old: Mapping[str, frozenset[str]], new: Mapping[str, frozenset[str]], before: Strength, after: Strength
) -> Iterator[str]:
    if path not in after.order:
        yield f"{path} is no longer part of the workflow"
        return
    for demand in sorted(old[path] - new.get(path, frozenset())):
        yield f"{path} no longer needs {demand}"
    index = after.order.index(path)
    for guarded in before.order[before.order.index(path) + 1 :]:
        if guarded in after.order and after.order.index(guarded) < index:
            yield f"{guarded} comes before {path} now"
        elif guarded.partition(".")[2] in after.independent:
            yield f"{guarded} can be called without {path}"

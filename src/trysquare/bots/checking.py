"""Checking: every state that a bot's workflow can get into, and the way to the first one that is wrong.

Behaviors meet only where one ends and the next begins, and a move within one looks at nothing of the others. So each
behavior is explored on its own, with all of its actions (those with the same gates once), and then behaviors together,
each as a single step. Of many behaviors, each row of neighbours is explored: what is passed over because it is done
makes no difference by its number. Both run the workflow's own functions, so what is proved is what is served.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from trysquare.bots.definition import BotDefinition
from trysquare.bots.graph.schema import problems_of
from trysquare.bots.plan import Plan, Policy, Position
from trysquare.bots.rules import Rule
from trysquare.bots.scanning.findings import ScannerFailed, Selected
from trysquare.bots.scanning.running import is_command, run_scanner
from trysquare.bots.workflow import RunState, begin, close, jump_of, open_action, select_behavior

MAX_STATES = 60_000
_TOGETHER = 5
"""So many neighbouring behaviors are explored together in all their combinations."""
_NEVER = "1970-01-01T00:00:00Z"
_WHOLE = "work"

DefectKind: TypeAlias = Literal["dead_end", "unreachable", "unapproved"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Defect:
    """Something wrong with a workflow, and the calls that show it."""

    kind: DefectKind
    position: Position
    message: str
    trace: tuple[str, ...] = ()
    """The calls from the beginning of the run to the state that is wrong."""

    def __str__(self) -> str:
        steps = "".join(f"\n  {number}. {step}" for number, step in enumerate(self.trace, start=1))
        return f"{self.message}{steps}"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowCheck:
    """What an exploration found."""

    states: int
    defects: tuple[Defect, ...] = ()
    exhaustive: bool = True
    """False where the workflow is too large for all of its states."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What of a state decides about its future."""

    current: Position
    completed: frozenset[Position]
    pointers: frozenset[tuple[str, str]]
    delivered: bool
    finished: bool


@dataclass(frozen=True, slots=True)
class _Move:
    told: str
    state: RunState
    unapproved: tuple[Position, ...] = ()


@dataclass(slots=True)
class _Explored:
    start: _Key
    came: dict[_Key, tuple[_Key, str] | None] = field(default_factory=dict[_Key, "tuple[_Key, str] | None"])
    leads_to: dict[_Key, list[_Key]] = field(default_factory=dict[_Key, "list[_Key]"])
    unapproved: dict[Position, tuple[_Key, str]] = field(default_factory=dict[Position, "tuple[_Key, str]"])
    complete: bool = True


def check_bot(definition: BotDefinition) -> WorkflowCheck:
    """Explore the workflow of a bot with its gates as they work."""
    proof = frozenset(position for position, gate in definition.gates.items() if gate.proof)
    plan = definition.plan()
    # What needs proof is never done by itself.
    manual: dict[Position, Policy] = {each: "manual" for each in proof if plan.policy(each) == "auto"}
    return check_workflow(
        replace(plan, policies={**plan.policies, **manual}), proof=proof, shut=_never_clean(definition)
    )


def check_workflow(
    plan: Plan, *, proof: frozenset[Position] = frozenset(), shut: frozenset[Position] = frozenset()
) -> WorkflowCheck:
    """Explore a plan. `proof` are the actions that a person must approve, `shut` those that can never be closed."""
    states, defects, complete = 0, list[Defect](), True
    known = dict[object, bool]()
    for behavior in plan.behaviors:
        gates = tuple(_gate(plan, proof, shut, Position(behavior=behavior, action=action)) for action in plan.actions)
        if known.get(gates):
            continue
        explored, found = _look_at(replace(plan, behaviors=(behavior,)), proof, shut)
        known[gates] = not found
        states += len(explored.came)
        complete = complete and explored.complete
        defects += found
    for behaviors in _rows(plan.behaviors) if not defects else ():
        together = replace(plan, behaviors=behaviors, actions=(_WHOLE,), policies={})
        explored, found = _look_at(together, frozenset(), frozenset())
        states += len(explored.came)
        complete = complete and explored.complete
        defects += found
    return WorkflowCheck(states=states, defects=tuple(defects), exhaustive=complete)


def _gate(plan: Plan, proof: frozenset[Position], shut: frozenset[Position], position: Position) -> object:
    return plan.policy(position), position in proof, position in shut


def _look_at(plan: Plan, proof: frozenset[Position], shut: frozenset[Position]) -> tuple[_Explored, list[Defect]]:
    explored = _explore(plan, proof, shut)
    return explored, list(_defects(plan, explored))


def _rows(behaviors: tuple[str, ...]) -> list[tuple[str, ...]]:
    last = max(0, len(behaviors) - _TOGETHER)
    return [behaviors[start : start + _TOGETHER] for start in range(last + 1)]


def _explore(plan: Plan, proof: frozenset[Position], shut: frozenset[Position]) -> _Explored:
    state = begin(plan)
    explored = _Explored(_key(state))
    explored.came[explored.start] = None
    waiting = deque([state])
    while waiting:
        state = waiting.popleft()
        key = _key(state)
        followers = explored.leads_to.setdefault(key, [])
        for move in _moves(plan, state, proof, shut):
            for position in move.unapproved:
                explored.unapproved.setdefault(position, (key, move.told))
            after = _key(move.state)
            followers.append(after)
            if after in explored.came:
                continue
            if len(explored.came) >= MAX_STATES:
                explored.complete = False
                continue
            explored.came[after] = (key, move.told)
            waiting.append(move.state)
    return explored


def _key(state: RunState) -> _Key:
    completed = frozenset(position for position in state.latest if state.is_completed(position))
    pointers = frozenset(state.pointers.items())
    return _Key(state.current, completed, pointers, state.delivered, state.finished)


def _moves(plan: Plan, state: RunState, proof: frozenset[Position], shut: frozenset[Position]) -> Iterator[_Move]:
    yield from _openings(plan, state)
    if state.finished:
        return
    position = state.current
    if plan.policy(position) == "auto":
        if state.delivered and position not in shut:
            done = close(plan, state, at=_NEVER, approval="auto").state
            yield _Move(f"{_told(plan, position)} closes itself", done, tuple({position} & proof))
        return
    chain = _chain(plan, position)
    if chain and not shut & set(chain):
        yield _closing(plan, state, chain, proof)


def _openings(plan: Plan, state: RunState) -> Iterator[_Move]:
    for behavior in plan.behaviors:
        if behavior != state.current.behavior:
            yield _Move(f"select {behavior}", select_behavior(plan, state, behavior))
    for position in (Position(behavior=b, action=a) for b in plan.behaviors for a in plan.actions):
        jump = jump_of(state, position)
        policy = plan.jump_policy(jump)
        if policy != "deny":
            asked = ", which a person confirms" if policy == "confirm" else ""
            opened = open_action(plan, state, position, at=_NEVER).state
            yield _Move(f"open {_told(plan, position)}{asked}", opened)


def _chain(plan: Plan, position: Position) -> list[Position]:
    """What a close of an action completes: it and all that is combined with it; nothing where it cannot be closed."""
    if plan.policy(position) == "skip" and plan.policy(plan.begin(position.behavior)) == "skip":
        return []
    chain = [position]
    while plan.policy(chain[-1]) == "combine_next":
        after = plan.after(chain[-1])
        if after is None:
            return []
        chain.append(after)
    return chain


def _closing(plan: Plan, state: RunState, chain: list[Position], proof: frozenset[Position]) -> _Move:
    approved = "a person approves, and " if proof & set(chain) else ""
    after = state
    for position in chain:
        # Combined actions follow one another; the state is at each of them in turn.
        after = close(
            plan, replace(after, current=position), at=_NEVER, approval="proven" if approved else "claimed"
        ).state
    return _Move(f"{approved}{' with '.join(_told(plan, each) for each in chain)} is closed", after)


def _told(plan: Plan, position: Position) -> str:
    return position.behavior if plan.actions == (_WHOLE,) else f"{position.behavior}.{position.action}"


def _defects(plan: Plan, explored: _Explored) -> Iterator[Defect]:
    for position, (key, told) in explored.unapproved.items():
        yield Defect(
            kind="unapproved",
            position=position,
            message=f"`{_told(plan, position)}` is completed although nobody approved it, and proof is asked for.",
            trace=(*_trace(explored, key), told),
        )
    stuck = _stuck(explored)
    if stuck is not None:
        yield Defect(
            kind="dead_end",
            position=stuck.current,
            message=f"From `{_told(plan, stuck.current)}` the workflow can never be finished.",
            trace=_trace(explored, stuck),
        )
    reached = {key.current for key in explored.came}
    for position in (Position(behavior=b, action=a) for b in plan.behaviors for a in plan.actions):
        if position not in reached:
            yield _unreachable(plan, explored, position)


def _unreachable(plan: Plan, explored: _Explored, position: Position) -> Defect:
    """Shown by the longest way there is: it ends without the action."""
    farthest = max(explored.came, key=lambda key: len(key.completed))
    return Defect(
        kind="unreachable",
        position=position,
        message=f"`{_told(plan, position)}` can never be opened.",
        trace=(*_trace(explored, farthest), f"and {_told(plan, position)} was not reached"),
    )


def _stuck(explored: _Explored) -> _Key | None:
    """The first state, in the order of the exploration, where nothing can be completed and no way leads to the end."""
    before: dict[_Key, list[_Key]] = {}
    for key, followers in explored.leads_to.items():
        for follower in followers:
            before.setdefault(follower, []).append(key)
    ending = deque(key for key in explored.came if key.finished)
    # Where the exploration was cut short, nothing is known about the rest, so nothing is claimed.
    ending.extend(key for key in explored.came if not explored.complete and key not in explored.leads_to)
    ends = set(ending)
    while ending:
        for key in before.get(ending.popleft(), ()):
            if key not in ends:
                ends.add(key)
                ending.append(key)
    lost = [key for key in explored.came if key not in ends]
    return next((key for key in lost if not _completes(explored, key)), lost[0] if lost else None)


def _completes(explored: _Explored, key: _Key) -> bool:
    return any(len(follower.completed) > len(key.completed) for follower in explored.leads_to.get(key, ()))


def _trace(explored: _Explored, key: _Key) -> tuple[str, ...]:
    steps: list[str] = []
    while (came := explored.came[key]) is not None:
        key, told = came
        steps.append(told)
    return tuple(reversed(steps))


def other_documents(definition: BotDefinition) -> list[str]:
    """The documents of a bot that are not story graphs: nothing can be built, rendered or validated of them yet."""
    configs = [(behavior.name, each) for behavior in definition.behaviors for each in behavior.content.knowledge]
    # Several templates may describe parts of one document; one that is a whole story graph is enough.
    graphs = {config.output for _, config in configs if _is_story_graph(config.template_text)}
    return [
        f"{config.file}: {config.output} of {behavior} is not a story graph (its template has no valid `epics`), so "
        "it cannot be built, rendered or validated yet."
        for behavior, config in configs
        if config.output not in graphs
    ]


def _is_story_graph(template: str) -> bool:
    try:
        return not problems_of(json.loads(template))
    except (ValueError, RecursionError):
        return False


def _never_clean(definition: BotDefinition) -> frozenset[Position]:
    """Actions that need a clean validation in a behavior that has a rule which cannot be run at all."""
    gates: Mapping[Position, bool] = {position: gate.requires_clean for position, gate in definition.gates.items()}
    behaviors = {position.behavior for position, needed in gates.items() if needed}
    broken = {behavior for behavior in behaviors if any(map(_cannot_run, definition.rules_of(behavior)))}
    return frozenset(position for position, needed in gates.items() if needed and position.behavior in broken)


def _cannot_run(rule: Rule) -> bool:
    if rule.scanner is None or is_command(rule.scanner):
        return False
    examples = (*rule.do.examples, *rule.dont.examples)
    try:
        run_scanner(rule.scanner, [Selected(value=each, file=rule.file) for each in examples], None)
    except ScannerFailed:
        return True
    return False

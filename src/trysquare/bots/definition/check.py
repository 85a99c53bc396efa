"""Model checking of a workflow: every reachable state, and the trace to the first invalid one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.bots.definition.findings import Finding
from trysquare.bots.definition.folder import line_of, read_bot_folder
from trysquare.bots.definition.loader import load_folder
from trysquare.bots.definition.model import BotDefinition
from trysquare.bots.definition.review import review
from trysquare.bots.scanners.base import CommandScanner, Rule, ScannerFailed, Selected
from trysquare.bots.scanners.runner import run_scanner, self_test
from trysquare.bots.workflow import machine
from trysquare.bots.workflow.machine import Plan, Policy, Position, RunState
from trysquare.core.errors import ConfigurationError


def require_sound_rules(definition: BotDefinition) -> None:
    """Refuse a bot with a rule that fails its own examples."""
    problems = [problem for rule in definition.all_rules for problem in self_test(rule)]
    if problems:
        more = f" Run `trysquare bot check` for {len(problems) - 1} more." if len(problems) > 1 else ""
        raise ConfigurationError(
            problems[0].message,
            where=f"{definition.root}/{problems[0].file}",
            hint=f"Fix the scanner or the example.{more}",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BotCheck:
    """Everything that is wrong with a bot's folder; without a definition, nothing of it can be loaded."""

    definition: BotDefinition | None
    findings: tuple[Finding, ...]
    workflow: WorkflowCheck | None = None


def check_folder(root: Path) -> BotCheck:
    """Find all mistakes of a bot at once: in its files, its rules and templates, and its workflow."""
    folder = read_bot_folder(root)
    definition = load_folder(folder)
    if definition is None:
        return BotCheck(definition=None, findings=tuple(folder.findings))
    found = [*folder.findings, *review(definition, folder)]
    # What cannot be loaded may be what is missing for the workflow.
    explored = None if folder.errors else check_bot(definition)
    for defect in () if explored is None else explored.defects:
        remedy = f"Change the gates of {defect.position}, or the jumps."
        config = next((path for path in folder.files if path.endswith("bot_config.json")), "bot_config.json")
        line = line_of(folder.text(config), defect.position.action)
        found.append(Finding(code=defect.kind, file=config, line=line, message=str(defect), remedy=remedy))
    return BotCheck(definition=definition, findings=tuple(dict.fromkeys(found)), workflow=explored)


MAX_STATES = 60_000
MAX_MOVES = 150_000
EXACT = 8
"""Number of actions up to which every set of completed actions is a state of its own."""
_ALIKE = 3
"""How many neighbours with the same gate stand for all of them, in a longer list."""
_TOGETHER = 5
"""Number of neighbouring behaviors that are explored together."""
_NEVER = "1970-01-01T00:00:00Z"
_WHOLE = "work"

DefectKind: TypeAlias = Literal["dead_end", "unreachable", "unapproved"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Defect:
    """A defect of a workflow, with the calls that show it."""

    kind: DefectKind
    position: Position
    message: str
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        steps = "".join(f"\n  {number}. {step}" for number, step in enumerate(self.trace, start=1))
        return f"{self.message}{steps}"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowCheck:
    states: int
    defects: tuple[Defect, ...] = ()
    exhaustive: bool = True
    """False where the workflow has too many states or moves."""

    def and_also(self, other: WorkflowCheck) -> WorkflowCheck:
        return WorkflowCheck(
            states=self.states + other.states,
            defects=self.defects + other.defects,
            exhaustive=self.exhaustive and other.exhaustive,
        )


@dataclass(frozen=True, slots=True)
class _Key:
    """The parts of a state that decide its future."""

    current: Position
    completed: frozenset[Position]
    pointers: frozenset[tuple[str, str]]
    delivered: bool
    finished: bool


@dataclass(frozen=True, slots=True)
class _Move:
    text: str
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
    """Explore the workflow of a bot with its gates."""
    proof = frozenset(position for position, gate in definition.gates.items() if gate.proof)
    plan = definition.plan()
    # What needs proof never closes itself.
    manual: dict[Position, Policy] = {each: "manual" for each in proof if plan.policy(each) == "auto"}
    return check_workflow(
        replace(plan, policies={**plan.policies, **manual}), proof=proof, shut=_never_clean(definition)
    )


def check_workflow(
    plan: Plan, *, proof: frozenset[Position] = frozenset(), shut: frozenset[Position] = frozenset()
) -> WorkflowCheck:
    """Explore a plan; a human must approve `proof`, and `shut` can never be closed.

    Behaviors meet only where one ends and the next begins. So each behavior is explored alone, with all of its actions
    (those with the same gates once), and then rows of neighbouring behaviors, each as a single step. Both use the
    workflow's own functions.
    """
    check = WorkflowCheck(states=0)
    known = dict[object, bool]()
    for behavior in plan.behaviors:
        positions = list(replace(plan, behaviors=(behavior,)).order)
        gates = tuple((plan.policy(each), each in proof, each in shut) for each in positions)
        if not known.get(gates):
            found = _check_behavior(replace(plan, behaviors=(behavior,)), proof, shut)
            known[gates] = not found.defects
            check = check.and_also(found)
    for start in range(max(0, len(plan.behaviors) - _TOGETHER) + 1) if not check.defects else ():
        row = plan.behaviors[start : start + _TOGETHER]
        together = replace(plan, behaviors=row, actions=(_WHOLE,), absent=frozenset(), policies={})
        check = check.and_also(_check(together, frozenset(), frozenset()))
    return check


def _check_behavior(plan: Plan, proof: frozenset[Position], shut: frozenset[Position]) -> WorkflowCheck:
    """Explore one behavior. In a long one, what is alike is explored once.

    Of more than three neighbours with the same gate, the first two and the last stand for all: whatever leads past one
    of those between leads past the second as well. And where no jump is denied, what was completed decides nothing.
    """
    positions = list(plan.order)
    plan = replace(plan, actions=tuple(each.action for each in positions), absent=frozenset())
    if len(positions) <= EXACT:
        return _check(plan, proof, shut)

    def gate(position: Position) -> tuple[Policy, bool, bool]:
        return plan.policy(position), position in proof, position in shut

    alike = {row[1]: row[2:-1] for row in (list(found) for _, found in groupby(positions, gate)) if len(row) > _ALIKE}
    left_out = {each.action for row in alike.values() for each in row}
    short = replace(plan, actions=tuple(action for action in plan.actions if action not in left_out))
    found = _check(short, proof, shut)
    return replace(found, defects=tuple(each for defect in found.defects for each in _for_all(defect, alike)))


def _for_all(defect: Defect, alike: Mapping[Position, Sequence[Position]]) -> Iterator[Defect]:
    """A defect, and the same of the neighbours that its action stands for."""
    yield defect
    for position in alike.get(defect.position, ()) if defect.kind != "dead_end" else ():
        message = defect.message.replace(f"`{defect.position}`", f"`{position}`")
        yield replace(defect, position=position, message=message, trace=())


def _check(plan: Plan, proof: frozenset[Position], shut: frozenset[Position]) -> WorkflowCheck:
    explored = _explore(plan, proof, shut)
    defects = tuple(_defects(plan, explored))
    return WorkflowCheck(states=len(explored.came), defects=defects, exhaustive=explored.complete)


def _explore(plan: Plan, proof: frozenset[Position], shut: frozenset[Position]) -> _Explored:
    state = machine.begin(plan)
    denied = "deny" in (plan.jump_policy("ahead"), plan.jump_policy("reopened"))
    remembers = denied or len(plan.behaviors) > 1 or len(plan.actions) <= EXACT
    explored, moves = _Explored(_key(state, remembers)), 0
    explored.came[explored.start] = None
    waiting = deque([state])
    while waiting:
        if moves > MAX_MOVES:
            explored.complete = False
            break
        state = waiting.popleft()
        key = _key(state, remembers)
        followers = explored.leads_to.setdefault(key, [])
        for move in _moves(plan, state, proof, shut):
            for position in move.unapproved:
                explored.unapproved.setdefault(position, (key, move.text))
            after, moves = _key(move.state, remembers), moves + 1
            followers.append(after)
            if after in explored.came:
                continue
            if len(explored.came) >= MAX_STATES:
                explored.complete = False
                continue
            explored.came[after] = (key, move.text)
            waiting.append(move.state)
    return explored


def _key(state: RunState, remembers: bool) -> _Key:
    """What decides the future of a state; what was completed does not where nothing `remembers` it."""
    completed = frozenset(position for position in state.latest if remembers and state.is_completed(position))
    pointers = frozenset(state.pointers.items())
    return _Key(state.current, completed, pointers, state.delivered, state.finished)


def _moves(plan: Plan, state: RunState, proof: frozenset[Position], shut: frozenset[Position]) -> Iterator[_Move]:
    yield from _openings(plan, state)
    if state.finished:
        return
    position = state.current
    if plan.policy(position) == "auto":
        if state.delivered and position not in shut:
            done = machine.close(plan, state, at=_NEVER, approval="auto").state
            yield _Move(f"{_name(plan, position)} closes itself", done, tuple({position} & proof))
        return
    chain = _chain(plan, position)
    if chain and not shut & set(chain):
        yield _closing(plan, state, chain, proof)


def _openings(plan: Plan, state: RunState) -> Iterator[_Move]:
    for behavior in plan.behaviors:
        if behavior != state.current.behavior:
            yield _Move(f"select {behavior}", machine.select_behavior(plan, state, behavior))
    for position in plan.order:
        policy = plan.jump_policy(machine.jump_of(state, position))
        if policy != "deny":
            asked = ", which a human confirms" if policy == "confirm" else ""
            opened = machine.open_action(plan, state, position, at=_NEVER).state
            yield _Move(f"open {_name(plan, position)}{asked}", opened)


def _chain(plan: Plan, position: Position) -> tuple[Position, ...]:
    """The actions that a close completes, combined ones included; none where it cannot be closed."""
    if plan.policy(position) == "skip" and plan.policy(plan.begin(position.behavior)) == "skip":
        return ()
    chain = plan.together(position)
    return () if plan.policy(chain[-1]) == "combine_next" else chain


def _closing(plan: Plan, state: RunState, chain: tuple[Position, ...], proof: frozenset[Position]) -> _Move:
    approved = "a human approves, and " if proof & set(chain) else ""
    after = state
    for position in chain:
        after = machine.close(
            plan, replace(after, current=position), at=_NEVER, approval="confirmed" if approved else "claimed"
        ).state
    return _Move(f"{approved}{' with '.join(_name(plan, each) for each in chain)} is closed", after)


def _name(plan: Plan, position: Position) -> str:
    return position.behavior if plan.actions == (_WHOLE,) else str(position)


def _defects(plan: Plan, explored: _Explored) -> Iterator[Defect]:
    for position, (key, text) in explored.unapproved.items():
        yield Defect(
            kind="unapproved",
            position=position,
            message=f"`{_name(plan, position)}` is completed without the required proof.",
            trace=(*_trace(explored, key), text),
        )
    stuck = _stuck(explored)
    if stuck is not None:
        yield Defect(
            kind="dead_end",
            position=stuck.current,
            message=f"From `{_name(plan, stuck.current)}` the workflow can never be finished.",
            trace=_trace(explored, stuck),
        )
    reached = {key.current for key in explored.came}
    # Shown by the longest trace, which ends without the action.
    farthest = max(explored.came, key=lambda key: len(key.completed))
    # Where the exploration was cut short, the rest may reach it.
    for position in (each for each in plan.order if each not in reached and explored.complete):
        yield Defect(
            kind="unreachable",
            position=position,
            message=f"`{_name(plan, position)}` can never be opened.",
            trace=(*_trace(explored, farthest), f"and {_name(plan, position)} was not reached"),
        )


def _stuck(explored: _Explored) -> _Key | None:
    """The first state in exploration order that completes nothing and has no path to the end."""
    before: dict[_Key, list[_Key]] = {}
    for key, followers in explored.leads_to.items():
        for follower in followers:
            before.setdefault(follower, []).append(key)
    ending = deque(key for key in explored.came if key.finished)
    # Where the exploration was cut short, the rest may reach the end.
    ending.extend(key for key in explored.came if not explored.complete and key not in explored.leads_to)
    ending.extend(key for key in before if key not in explored.came)
    ends = set(ending)
    while ending:
        for key in before.get(ending.popleft(), ()):
            if key not in ends:
                ends.add(key)
                ending.append(key)
    lost = [key for key in explored.came if key not in ends]

    def completes(key: _Key) -> bool:
        return any(len(each.completed) > len(key.completed) for each in explored.leads_to.get(key, ()))

    return next((key for key in lost if not completes(key)), lost[0] if lost else None)


def _trace(explored: _Explored, key: _Key) -> tuple[str, ...]:
    steps: list[str] = []
    while (came := explored.came[key]) is not None:
        key, text = came
        steps.append(text)
    return tuple(reversed(steps))


def _never_clean(definition: BotDefinition) -> frozenset[Position]:
    """Actions that need clean rules in a behavior with a rule that cannot run."""
    gates = [position for position, gate in definition.gates.items() if gate.requires_clean]
    behaviors = {position.behavior for position in gates}
    broken = {behavior for behavior in behaviors if any(map(_cannot_run, definition.rules_of(behavior)))}
    return frozenset(position for position in gates if position.behavior in broken)


def _cannot_run(rule: Rule) -> bool:
    if rule.scanner is None or isinstance(rule.scanner, CommandScanner):
        return False
    examples = (*rule.do.examples, *rule.dont.examples)
    try:
        run_scanner(rule.scanner, [Selected(value=each, file=rule.file) for each in examples], None)
    except ScannerFailed:
        return True
    return False

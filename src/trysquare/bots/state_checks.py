"""Values around a state: what a call expects of it and gets back, and the checks of a move."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trysquare.bots.ledger import Ledger, Stamp, split_path
from trysquare.bots.plan import Plan, Position
from trysquare.bots.state_file import MAIN, is_run_name
from trysquare.bots.window_rules import NOTHING, Notices
from trysquare.bots.workflow import Entry, RunState, begin
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.store.idempotency import Claim, EarlierAnswer
from trysquare.store.workflow import WorkflowRows


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request key with the call that it stands for: sent again, the call gets its first answer."""

    key: str
    tool: str
    arguments: JsonObject = field(default_factory=dict[str, Any])

    @property
    def digest(self) -> str:
        """The arguments in short."""
        text = json.dumps(self.arguments, sort_keys=True, default=repr)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """What a caller believes of the state; a move is refused where it is otherwise."""

    action: str | None = None
    version: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """A state as it was read."""

    state: RunState
    notices: Notices = NOTHING
    raised: bool = False
    """Whether the run is strict only from the next move on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A state after a move. `replayed`: the move was made before under the same request key, and not again."""

    state: RunState
    answer: JsonObject
    replayed: bool = False
    notices: Notices = NOTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    """A run among others."""

    name: str
    state: RunState
    updated: str
    origin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryLine:
    """A numbered line of a run's history."""

    seq: int
    entry: Entry


@dataclass(frozen=True, kw_only=True, slots=True)
class EventLine:
    """A change of a run."""

    version: int
    at: str
    kind: str
    principal: str
    current: Position


def require_run_name(run: str) -> None:
    """Refuse a name that no run can have. It is a part of paths, so it holds nothing that leads elsewhere."""
    if not is_run_name(run):
        raise ToolError(
            f"`{run[:80]}` cannot be the name of a run.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Use 1 to 64 letters, digits, `_`, `-` and `.`, beginning with a letter or digit.",
        )


def require_distinct(ledger: Ledger, run: str) -> None:
    """Two runs whose names differ only in case would share their files where a disk does not tell the two apart."""
    if run == MAIN or ledger.rows.run(run) is not None:
        return
    same = [each.name for each in ledger.rows.runs() if each.name.casefold() == run.casefold()]
    if same or run.casefold() == MAIN:
        raise ToolError(
            f"There is a run `{same[0] if same else MAIN}` already, which differs from `{run}` only in case.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Use that run, or choose another name.",
        )


def claimed_key(rows: WorkflowRows, request: Request | None, principal: str) -> Claim | EarlierAnswer | None:
    if request is None:
        return None
    return rows.claim(request.key, tool=request.tool, principal=principal, digest=request.digest)


def check_expected(plan: Plan, state: RunState, expected: Expectation) -> None:
    if expected.action is not None and not names(plan, expected.action, state.current):
        raise _conflict(plan, state, f"`{expected.action[:120]}` is not the current action")
    if expected.version is not None and expected.version != state.version:
        raise _conflict(plan, state, f"the state has version {state.version}, not {expected.version}")


def names(plan: Plan, path: str, position: Position) -> bool:
    named = split_path(plan.bot, path)
    return named is not None and named.action == position.action and named.behavior in ("", position.behavior)


def _conflict(plan: Plan, state: RunState, what: str) -> ToolError:
    current = state.current.path(plan.bot)
    return ToolError(
        f"Nothing was changed: {what}. The current one is `{current}`.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Look at the current action, and send the call again if it is still meant.",
        fields={"current_action": current, "version": state.version},
    )


def check_step(before: RunState, after: RunState, added: Sequence[Entry]) -> None:
    """A change counts the version on, so that no two states share one; anything else is a mistake in the caller."""
    if after != before and after.version <= before.version:
        raise ValueError("a change of a state must count its version on")
    if added and after == before:
        raise ValueError("lines of history come with a change of the state")


def begun(ledger: Ledger, name: str, stamp: Stamp) -> RunState:
    """Begin a run at the first action, where there is none of that name."""
    if ledger.rows.run(name) is not None:
        raise ToolError(
            f"There is a run `{name}` already.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Choose another name, or go on with that run.",
        )
    state = begin(ledger.plan)
    ledger.save(name, state, (), stamp)
    return state

"""A small bot and a project, as the tests of its state use them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trysquare.bots.workflow.machine import Approval, NeedsProof, Plan, Position, RunState, close, open_action
from trysquare.bots.workflow.runs import Change, Loaded, Request, Transition, WorkflowRuns, open_workflows
from trysquare.bots.workflow.sync import NAME, StateFileSync
from trysquare.store.workflows import WorkflowStore

BOT = "story_bot"
PLAN = Plan(
    bot=BOT,
    behaviors=("shape", "discovery"),
    actions=("initialize_project", "gather_context", "validate_rules"),
    independent=frozenset({"correct_bot"}),
)
AT = "2026-11-15T12:00:00.000Z"


def at(path: str) -> Position:
    """`behavior.action` as a position."""
    behavior, action = path.split(".")
    return Position(behavior=behavior, action=action)


def close_change(state: RunState, answer: str, approval: Approval = "claimed") -> Change:
    """The change of a close; its answer names the action."""
    closed = close(PLAN, state, at=AT, approval=approval)
    return Change(state=closed.state, added=closed.added, answer={answer: closed.completed.action})


@dataclass
class Desk:
    """One bot's state in one project, with the calls that tools make of it."""

    project: Path
    state: WorkflowRuns

    @property
    def file(self) -> Path:
        return self.project / NAME

    def document(self) -> dict[str, Any]:
        return json.loads(self.file.read_text(encoding="utf-8"))

    def edit(self, **fields: Any) -> None:
        """Change fields of the file by hand; a field that becomes None is taken out."""
        document = {**self.document(), **fields}
        kept = {name: value for name, value in document.items() if value is not None}
        self.file.write_text(json.dumps(kept), encoding="utf-8")

    def completed(self) -> list[str]:
        """The history as the file shows it; a reopened action with a mark."""
        return [
            each["action_state"].removeprefix(f"{BOT}.") + ("*" if each.get("reopened") else "")
            for each in self.document()["completed_actions"]
        ]

    def load(self, run: str = "main") -> Loaded:
        return self.state.load(run)

    def current(self, run: str = "main") -> str:
        position = self.state.load(run).state.current
        return f"{position.behavior}.{position.action}"

    def begin(self) -> None:
        """A call that finds nothing to change."""
        self.state.move(lambda before: Change(state=before), kind="open", principal="agent")

    def open(self, path: str, run: str = "main") -> Transition:
        return self.state.move(
            lambda before: Change.opened(open_action(PLAN, before, at(path), at=AT)),
            kind="open",
            principal="agent",
            run=run,
        )

    def close(
        self,
        *,
        run: str = "main",
        key: str | None = None,
        arguments: dict[str, Any] | None = None,
        version: int | None = None,
        approval: Approval = "claimed",
    ) -> Transition:
        return self.state.move(
            lambda before: close_change(before, "completed_action", approval),
            kind="close",
            principal="agent",
            run=run,
            expected_version=version,
            request=None if key is None else Request(key=key, tool="close", arguments=arguments or {}),
        )


def desk(
    project: Path,
    *,
    plan: Plan = PLAN,
    store: WorkflowStore | None = None,
    url: str | None = None,
    legacy: Path | None = None,
    needs_proof: NeedsProof = lambda _: False,
) -> Desk:
    """Open the bot's state in a project, as a server process does at its start."""
    project.mkdir(parents=True, exist_ok=True)
    window = StateFileSync(project, plan.bot, legacy=legacy)
    state = WorkflowRuns(plan=plan, store=store or open_workflows(url, project), sync=window, needs_proof=needs_proof)
    OPENED.append(state)
    return Desk(project, state)


OPENED: list[WorkflowRuns] = []
"""What the tests opened; a fixture closes it after each of them."""

"""Differences between two runs or versions, in actions and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trysquare.bots.actions import produced_files
from trysquare.bots.artifacts import Digests, changed_files, files_at
from trysquare.bots.gates import file_digests
from trysquare.bots.projects import LiveBot
from trysquare.bots.workflow.machine import Position, RunState
from trysquare.bots.workflow.runs import WorkflowRuns
from trysquare.core.errors import ConfigurationError

FOLDER = "."
"""The current files of the project."""
FOLDER_NAME = "the folder"


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One side of a comparison. The current files have no state."""

    name: str
    state: RunState | None
    files: Digests


def compare(bot: LiveBot, first: str, second: str) -> dict[str, Any]:
    """The actions and files that differ between two of `RUN`, `RUN@VERSION`, `@VERSION` and `.`."""
    before, after = _side(bot, first), _side(bot, second)
    files = changed_files(bot.project().root, before.files, after.files, headings=(before.name, after.name))
    return {"before": before.name, "after": after.name, "actions": _actions(bot, before, after), "files": files}


def _side(bot: LiveBot, text: str) -> Side:
    project = bot.project()
    if text == FOLDER:
        return Side(name=FOLDER_NAME, state=None, files=file_digests(project.root, _produced(bot)))
    project.load("main")
    name, _, number = text.partition("@")
    run = name or "main"
    if number and not number.isdigit():
        raise ConfigurationError(
            f"expected RUN[@VERSION]; got `{text}`.", where="bot diff", hint="Write `main`, `main@12`, `@12`, or `.`."
        )
    version = int(number) if number else None
    return Side(name=text, state=_state_of(project.state, run, version), files=files_at(project.state, run, version))


def _produced(bot: LiveBot) -> list[str]:
    definition = bot.definition
    steps = ((each, action) for each in definition.behaviors for action in definition.actions_of(each.name))
    return sorted({path for behavior, action in steps for path in produced_files(definition, behavior, action.name)})


def _state_of(state: WorkflowRuns, run: str, version: int | None) -> RunState:
    if version is not None:
        return state.state_at(run, version)
    known = {each.name: each.state for each in state.runs()}
    if run not in known:
        hint = f"Known runs: {', '.join(known)}." if known else "No run has started; see `trysquare bot status`."
        raise ConfigurationError(f"unknown run `{run}`.", where="bot diff", hint=hint)
    return known[run]


def _actions(bot: LiveBot, before: Side, after: Side) -> list[dict[str, Any]]:
    first, second, plan = before.state, after.state, bot.plan
    if first is None or second is None:
        return []
    return [
        {"action": str(each), "before": _status_of(first, each), "after": _status_of(second, each)}
        for each in plan.order
        if _status_of(first, each) != _status_of(second, each)
    ]


def _status_of(state: RunState, position: Position) -> str:
    last = state.latest.get(position)
    word = "open" if last is None else "reopened" if last.kind == "reopened" else last.approval
    return f"{word}, current" if position == state.current and not state.finished else word

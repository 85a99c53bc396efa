"""`trysquare bot diff`: what differs between two runs or versions: what was done, and what the files held."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from trysquare.bots.actions.built_in import produced_files
from trysquare.bots.artifacts import Digests, changed_files, files_at
from trysquare.bots.gates import file_digests
from trysquare.bots.plan import Position
from trysquare.bots.projects import LiveBot
from trysquare.bots.state import BotState
from trysquare.bots.workflow import RunState
from trysquare.cli.bot_projects import one_bot, opened_bots
from trysquare.cli.output import print_json, print_table, styled
from trysquare.core.errors import ConfigurationError

FOLDER = "."
"""Stands for what lies in the project's folder now."""
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of the two that are compared. The folder has files and no state."""

    name: str
    state: RunState | None
    files: Digests


def diff(arguments: argparse.Namespace) -> int:
    """What is done in one and not in the other, and what the files held."""
    with opened_bots(arguments) as bots:
        bot = one_bot(bots)
        before, after = (_side(bot, text) for text in (arguments.before, arguments.after))
        names = (before.name, after.name)
        files = changed_files(bot.project().root, before.files, after.files, headings=names)
        report = {"before": before.name, "after": after.name, "actions": _actions(bot, before, after), "files": files}
    if arguments.json:
        print_json(report)
    else:
        _show(report, compared=before.state is not None and after.state is not None)
    return 0


def _side(bot: LiveBot, text: str) -> Side:
    project = bot.project()
    if text == FOLDER:
        return Side(name="the folder", state=None, files=file_digests(project.root, _produced(bot)))
    project.load("main")
    run, _, number = text.partition("@")
    run = run or "main"
    if number and not number.isdigit():
        raise ConfigurationError(
            f"`{text}` is no RUN[@VERSION].", where="bot diff", hint="Write `main`, `main@12`, `@12`, or `.`."
        )
    version = int(number) if number else None
    return Side(name=text, state=_stood(project.state, run, version), files=files_at(project.state, run, version))


def _produced(bot: LiveBot) -> list[str]:
    definition = bot.definition
    found = (
        produced_files(definition, behavior, action.name)
        for behavior in definition.behaviors
        for action in definition.actions
    )
    return sorted({path for paths in found for path in paths})


def _stood(state: BotState, run: str, version: int | None) -> RunState:
    if version is not None:
        return state.state_at(run, version)
    known = {each.name: each.state for each in state.runs()}
    if run not in known:
        hint = f"There are: {', '.join(known)}." if known else "No run has begun; `trysquare bot status` shows that."
        raise ConfigurationError(f"there is no run `{run}`.", where="bot diff", hint=hint)
    return known[run]


def _actions(bot: LiveBot, before: Side, after: Side) -> list[dict[str, Any]]:
    first, second, plan = before.state, after.state, bot.plan
    if first is None or second is None:
        return []
    places = (Position(behavior=behavior, action=action) for behavior in plan.behaviors for action in plan.actions)
    return [
        {"action": f"{each.behavior}.{each.action}", "before": _said(first, each), "after": _said(second, each)}
        for each in places
        if _said(first, each) != _said(second, each)
    ]


def _said(state: RunState, position: Position) -> str:
    last = state.latest.get(position)
    word = "open" if last is None else "reopened" if last.kind == "reopened" else last.approval
    return f"{word}, current" if position == state.current and not state.finished else word


def _show(report: dict[str, Any], *, compared: bool) -> None:
    rows = [(row["action"], row["before"], row["after"]) for row in report["actions"]]
    if rows:
        print_table(("ACTION", report["before"].upper(), report["after"].upper()), rows)
    elif compared:
        print("They stand at the same place.")
    for file in report["files"]:
        print()
        _show_file(file)
    if not report["files"]:
        print("No file differs.")


def _show_file(file: dict[str, Any]) -> None:
    digests = " -> ".join((file[side] or "none")[:12] for side in ("before", "after"))
    print(styled(f"{file['path']} {file['change']} ({digests})", "bold"))
    if file["lines"] is None:
        print(f"  {file['note']}")
        return
    for line in file["lines"][2:]:
        print(styled(line, _COLOURS[line[0]]) if line[:1] in _COLOURS else line)

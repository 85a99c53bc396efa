"""`trysquare bot status|history|rewind|fork`: where runs stand, how they got there, and other ways to go."""

from __future__ import annotations

import argparse
from typing import Any

from trysquare.bots.projects import LiveBot
from trysquare.bots.state import BotState, RunSummary
from trysquare.bots.state_file import MAIN
from trysquare.bots.workflow import RunState
from trysquare.cli.bot_projects import one_bot, opened_bots
from trysquare.cli.output import print_json, print_table, styled
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError


def status(arguments: argparse.Namespace) -> int:
    """Every run of every bot."""
    with opened_bots(arguments) as bots:
        reports = [_status(bot) for bot in bots]
    if arguments.json:
        print_json(reports)
        return 0
    for report in reports:
        print(styled(report["bot"], "bold") + f" in {report['project']}")
        shown = ("run", "version", "current_action", "state", "progress", "updated")
        rows = [[str(each[name]) for name in shown] for each in report["runs"]]
        if rows:
            print_table(("RUN", "VERSION", "CURRENT ACTION", "STATE", "DONE", "UPDATED"), rows)
        else:
            print("  No run has begun.")
    return 0


def _status(bot: LiveBot) -> dict[str, Any]:
    project = bot.project()
    project.load("main")
    runs = [_summary(bot, each) for each in project.state.runs()]
    return {"bot": bot.name, "project": str(project.root), "runs": runs}


def _summary(bot: LiveBot, run: RunSummary) -> dict[str, Any]:
    state = run.state
    done = sum(1 for entry in state.latest.values() if entry.kind == "completed")
    return {
        "run": run.name,
        "version": state.version,
        "current_action": f"{state.current.behavior}.{state.current.action}",
        "state": _word(state),
        "progress": f"{done}/{len(bot.plan.behaviors) * len(bot.plan.actions)}",
        "updated": run.updated,
        "origin": run.origin,
    }


def _word(state: RunState) -> str:
    if state.finished:
        return "complete"
    if state.rejections:
        return f"sent back ({state.rejections})"
    return "delivered" if state.delivered else "not delivered"


def history(arguments: argparse.Namespace) -> int:
    """What was completed and taken up again, or every change."""
    with opened_bots(arguments) as bots:
        bot = one_bot(bots)
        project = bot.project()
        project.load(arguments.run)
        state = project.state
        _require_run(state, arguments.run)
        lines = _events(state, arguments) if arguments.events else _entries(state, arguments)
    if arguments.json:
        print_json(lines)
    elif not lines:
        print(f"Run {arguments.run} has no history.")
    else:
        print_table([name.upper() for name in lines[0]], [[str(cell) for cell in line.values()] for line in lines])
    return 0


def _require_run(state: BotState, run: str) -> None:
    known = [each.name for each in state.runs()]
    if run not in known and (known or run != MAIN):
        raise ConfigurationError(
            f"there is no run `{run}`.", where="bot history", hint=f"There are: {', '.join(known) or 'none'}."
        )


def _entries(state: BotState, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [
        {
            "version": line.entry.version,
            "at": line.entry.at,
            "action": f"{line.entry.position.behavior}.{line.entry.position.action}",
            "what": line.entry.kind if line.entry.kind == "reopened" else line.entry.approval,
            "by": line.entry.by or "",
            "delivered": "yes" if line.entry.delivered else "no",
            "reason": line.entry.reason or "",
        }
        for line in state.history(arguments.run, limit=arguments.limit)
    ]


def _events(state: BotState, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [
        {
            "version": line.version,
            "at": line.at,
            "what": line.kind,
            "by": line.principal,
            "current": f"{line.current.behavior}.{line.current.action}",
        }
        for line in state.events(arguments.run, limit=arguments.limit)
    ]


def rewind(arguments: argparse.Namespace) -> int:
    """Set a run back."""
    with opened_bots(arguments) as bots:
        state = one_bot(bots).project().state
        me = local_principal().subject
        moved = state.rewind(arguments.run, arguments.version, principal=me, reason=arguments.reason)
    return _tell(arguments, arguments.run, moved.state, "stands again at")


def fork(arguments: argparse.Namespace) -> int:
    """Begin a run at another one's place."""
    with opened_bots(arguments) as bots:
        state = one_bot(bots).project().state
        me = local_principal().subject
        moved = state.fork(arguments.run, arguments.name, principal=me, at_version=arguments.at)
    return _tell(arguments, arguments.name, moved.state, "begins at")


def _tell(arguments: argparse.Namespace, run: str, state: RunState, what: str) -> int:
    current = f"{state.current.behavior}.{state.current.action}"
    if arguments.json:
        print_json({"run": run, "version": state.version, "current_action": current})
    else:
        print(f"Run {run} {what} {current} (version {state.version}).")
    return 0

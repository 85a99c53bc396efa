"""The runs of a bot in a project as plain values, for everything that shows them."""

from __future__ import annotations

from typing import Any

from trysquare.bots.gates import Gates
from trysquare.bots.projects import BotProject, LiveBot
from trysquare.bots.workflow.conflicts import Notices
from trysquare.bots.workflow.machine import Entry, RunState, open_actions
from trysquare.bots.workflow.runs import RunSummary
from trysquare.bots.workflow.state_file import MAIN, UnreadableState, parse_state
from trysquare.bots.workflow.sync import NAME
from trysquare.bots.workflow.transaction import DamagedRecord
from trysquare.core.errors import ErrorCode, ToolError


def report_bot(bot: LiveBot, *, limit: int | None = None) -> dict[str, Any]:
    """Every run of a bot by name, and what reading its state found; with a limit, the runs that changed last."""
    project = bot.project()
    try:
        notices = notices_of(project)
    except ToolError as error:
        if error.code != ErrorCode.STATE_UNAVAILABLE or (found := _written(bot, project)) is None:
            raise
        notice = f"{error.message} The runs are shown as {NAME} has them."
        return {"bot": bot.name, "project": str(project.root), "runs": found, "notices": [notice]}
    shown = [*notices.recovered, *notices.inconsistent, *notices.warnings]
    if limit is None:
        runs, damaged, more = project.state.runs(), project.state.damaged(), {}
    else:
        latest = project.state.latest_runs(limit=limit)
        runs, damaged, more = latest.runs, latest.damaged, {"more": max(0, latest.total - limit)}
    reports = [report_run(bot, each) for each in runs]
    return {
        "bot": bot.name,
        "project": str(project.root),
        "runs": reports,
        "notices": [*shown, *damaged.values()],
        **more,
    }


def _written(bot: LiveBot, project: BotProject) -> list[dict[str, Any]] | None:
    """The runs of the state file, which those can read too who cannot use the database; None without one."""
    try:
        runs = parse_state(bot.plan, (project.root / NAME).read_text(encoding="utf-8")).runs
    except (OSError, UnicodeDecodeError, UnreadableState):
        return None
    latest = {name: max((each.at for each in state.latest.values()), default="") for name, state in runs.items()}
    return [
        report_run(bot, RunSummary(name=name, state=state, updated=latest[name], origin=""))
        for name, state in sorted(runs.items())
    ]


def notices_of(project: BotProject) -> Notices:
    """What reading the state file found; the damage of the main run is listed with that of the others."""
    try:
        return project.load(MAIN).notices
    except DamagedRecord:
        return Notices()


def report_run(bot: LiveBot, run: RunSummary) -> dict[str, Any]:
    state = run.state
    plan = bot.plan.of(state)
    opened = set(open_actions(plan, state, Gates.of(bot.definition, state).is_defined))
    done = sum(1 for each in plan.order if plan.policy(each) != "skip" and each not in opened)
    return {
        "run": run.name,
        "version": state.version,
        "current_action": str(state.current),
        "state": word_of(state, len(opened)),
        "strict": state.strict,
        "preset": None if state.depth is None else state.depth.name,
        "open": len(opened),
        "progress": f"{done}/{plan.applying()}",
        "updated": run.updated,
        "origin": run.origin,
    }


def word_of(state: RunState, left: int) -> str:
    if state.finished:
        return f"ended, {left} open" if left else "complete"
    if state.rejections:
        return f"sent back ({state.rejections})"
    return "delivered" if state.delivered else "not delivered"


def report_entry(entry: Entry) -> dict[str, Any]:
    """One line of a run's history."""
    return {
        "version": entry.version,
        "at": entry.at,
        "action": str(entry.position),
        "what": entry.kind if entry.kind == "reopened" else entry.approval,
        "by": entry.by or "",
        "delivered": "yes" if entry.delivered else "no",
        "reason": entry.reason or "",
    }

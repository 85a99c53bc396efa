"""`trysquare bot status|history|rewind|fork`: where runs stand, how they got there, and other ways to go."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from trysquare.bots.artifacts import files_at
from trysquare.bots.gates import Gates, ask_person
from trysquare.bots.projects import LiveBot
from trysquare.bots.run_files import changed_since, plan_copies, proof_holds, write_copies
from trysquare.bots.state import BotState, RunSummary, require_run_name
from trysquare.bots.state_file import MAIN
from trysquare.bots.workflow import RunState, open_actions
from trysquare.cli.bot_projects import one_bot, opened_bots
from trysquare.cli.output import print_json, print_table, styled
from trysquare.cli.terminal import TerminalCaller
from trysquare.core.context import CallContext, local_principal
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
        for notice in report["notices"]:
            print(styled(f"  Warning: {notice}", "yellow"))
        shown = ("run", "version", "current_action", "state", "progress", "updated")
        rows = [[str(each[name]) for name in shown] for each in report["runs"]]
        if rows:
            print_table(("RUN", "VERSION", "CURRENT ACTION", "STATE", "DONE", "UPDATED"), rows)
        else:
            print("  No run has begun.")
    return 0


def _status(bot: LiveBot) -> dict[str, Any]:
    project = bot.project()
    notices = project.load("main").notices
    runs = [_summary(bot, each) for each in project.state.runs()]
    told = [*notices.recovered, *notices.inconsistent, *notices.warnings]
    return {"bot": bot.name, "project": str(project.root), "runs": runs, "notices": told}


def _summary(bot: LiveBot, run: RunSummary) -> dict[str, Any]:
    state = run.state
    opened = set(open_actions(bot.plan, state, Gates(definition=bot.definition).is_defined))
    left, done = len(opened), sum(1 for each in state.latest if state.is_completed(each) and each not in opened)
    return {
        "run": run.name,
        "version": state.version,
        "current_action": f"{state.current.behavior}.{state.current.action}",
        "state": _word(state, left),
        "strict": state.strict,
        "open": left,
        "progress": f"{done}/{len(bot.plan.behaviors) * len(bot.plan.actions)}",
        "updated": run.updated,
        "origin": run.origin,
    }


def _word(state: RunState, left: int) -> str:
    if state.finished:
        return f"ended, {left} open" if left else "complete"
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


def _require_run(state: BotState, run: str, where: str = "bot history") -> None:
    known = [each.name for each in state.runs()]
    if run not in known and (known or run != MAIN):
        raise ConfigurationError(
            f"there is no run `{run}`.", where=where, hint=f"There are: {', '.join(known) or 'none'}."
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
    """Set a run back. Its files stay as they are, and proofs come back only where they fit them."""
    with opened_bots(arguments) as bots:
        bot = one_bot(bots)
        project, run = bot.project(), arguments.run
        project.load(run)
        definition = bot.definition_of(run)
        moved = project.state.rewind(
            run,
            arguments.version,
            principal=local_principal().subject,
            reason=arguments.reason,
            holds=lambda entry: proof_holds(project.root, definition, run, entry),
        )
        then = project.state.state_at(run, arguments.version)
        changed = changed_since(project.root, files_at(project.state, run, arguments.version), run)
    told = {"files_restored": [], "files_not_restored": list(changed), "open_again": _open_again(then, moved.state)}
    return _tell(arguments, run, moved.state, "stands again at", told)


def _open_again(then: RunState, now: RunState) -> list[str]:
    """What was proven at a version and is not any more, because its files changed since."""
    return [
        f"{each.behavior}.{each.action}"
        for each, entry in then.latest.items()
        if entry.is_proven and not now.is_completed(each)
    ]


def fork(arguments: argparse.Namespace) -> int:
    """Begin a run at another one's place."""
    with opened_bots(arguments) as bots:
        bot = one_bot(bots)
        project, to = bot.project(), arguments.name
        source = project.load(arguments.run).state
        require_run_name(to)
        definition = bot.definition_of(to)
        copies = plan_copies(project.root, bot.definition, project.state, arguments.run, to, arguments.at)
        moved = project.state.fork(
            arguments.run,
            to,
            principal=local_principal().subject,
            at_version=arguments.at,
            holds=lambda entry: proof_holds(project.root, definition, to, entry),
            prepare=lambda: write_copies(project.root, copies),
        )
        then = source if arguments.at is None else project.state.state_at(arguments.run, arguments.at)
    told = {
        "files_restored": sorted(copies.files),
        "files_not_restored": list(copies.lost),
        "open_again": _open_again(then, moved.state),
    }
    return _tell(arguments, to, moved.state, "begins at", told)


def loosen(arguments: argparse.Namespace) -> int:
    """Take a run out of strict mode, which a human has to agree to in a terminal."""
    with opened_bots(arguments) as bots:
        bot = one_bot(bots)
        project, run = bot.project(), arguments.run
        _require_run(project.state, run, "bot loosen")
        context = CallContext(caller=TerminalCaller(), client="trysquare bot")
        if not context.can_ask():
            raise ConfigurationError(
                "only a human can take a run out of strict mode, and stdin is not a terminal.",
                where="bot loosen",
                hint="Run it in a terminal.",
            )
        if not project.load(run).state.strict:
            print(f"Run {run} is not strict.")
            return 0
        question = f"Take run {run} of {bot.name} out of strict mode? Its actions can then be closed without proof."
        binding = {"project": str(project.root), "run": run, "loosen": True}
        agreement = asyncio.run(ask_person("bot loosen", question, binding, approvals=bot.approvals, context=context))
        audit = {"reason": arguments.reason, "agreement": {"by": agreement.by, "how": agreement.how}}
        moved = project.state.loosen(run, principal=local_principal().subject, audit=audit)
    return _tell(arguments, run, moved.state, "is not strict any more and stands at", {})


def _tell(arguments: argparse.Namespace, run: str, state: RunState, what: str, told: dict[str, Any]) -> int:
    current = f"{state.current.behavior}.{state.current.action}"
    if arguments.json:
        print_json({"run": run, "version": state.version, "current_action": current, **told})
        return 0
    print(f"Run {run} {what} {current} (version {state.version}).")
    for name, words in _FILES.items():
        if told.get(name):
            print(f"{words}: {', '.join(told[name])}.")
    return 0


_FILES = {
    "files_restored": "Copied files",
    "files_not_restored": "Files that differ from then and were not restored",
    "open_again": "Open again, because the files changed since they were approved",
}

"""`trysquare bot`: create and check workflow bots, and show, change and approve their runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trysquare.bots import load_bot
from trysquare.bots.artifacts import files_at
from trysquare.bots.comparison import compare
from trysquare.bots.definition.check import check_folder
from trysquare.bots.definition.folder import close_tool_name
from trysquare.bots.definition.scaffold import TEMPLATES, write_new_bot
from trysquare.bots.gates import ask_human
from trysquare.bots.overview import report_bot, report_entry
from trysquare.bots.parameters import CLOSE
from trysquare.bots.run_files import changed_since, plan_copies, proof_holds, write_copies
from trysquare.bots.tools.close import close_action
from trysquare.bots.tools.responses import BotCall
from trysquare.bots.workflow.machine import RunState
from trysquare.bots.workflow.runs import WorkflowRuns, event_state, require_run_name
from trysquare.bots.workflow.state_file import MAIN
from trysquare.cli.approve import SIGN, decide_code
from trysquare.cli.bot_corrections import CORRECT
from trysquare.cli.bot_diff import print_difference
from trysquare.cli.bot_import import IMPORT
from trysquare.cli.bot_open import ABOUT_BOT, RUN, opened_bot, opened_bots, require_run
from trysquare.cli.bot_records import write_export
from trysquare.cli.bot_start import START
from trysquare.cli.bot_team import ASSIGN, COMMENT, VERIFY
from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_place_options, positive
from trysquare.cli.terminal import (
    TerminalCaller,
    count,
    print_json,
    print_listing,
    print_report,
    require_terminal,
    styled,
)
from trysquare.core.context import CallContext, local_principal
from trysquare.core.errors import ConfigurationError, ConsentNeeded
from trysquare.core.json import JsonObject, as_list, as_object


def _new(arguments: argparse.Namespace) -> None:
    folder = arguments.into / arguments.name
    files = write_new_bot(folder, arguments.name, arguments.template)
    tools = len(load_bot(folder).tool_names())
    if arguments.json:
        print_json({"folder": str(folder), "files": files, "tools": tools})
        return
    print(f"Created {folder}: {count(len(files), 'file')}, {count(tools, 'tool')}. Next:")
    print(f"  trysquare bot check {folder}")
    print(f"  trysquare serve --bot {folder}")


def _check(arguments: argparse.Namespace) -> int:
    """Load the bot, test its rules and templates, and explore its workflow; 1 if anything is wrong."""
    checked = check_folder(arguments.folder)
    definition, explored = checked.definition, checked.workflow
    rules = () if definition is None else definition.all_rules
    report: dict[str, Any] = {
        "bot": arguments.folder.name if definition is None else definition.name,
        "behaviors": [] if definition is None else [behavior.name for behavior in definition.behaviors],
        "actions": [] if definition is None else [action.name for action in definition.actions],
        "tools": 0 if definition is None else len(definition.tool_names()),
        "rules": len(rules),
        "tested_rules": sum(1 for rule in rules if rule.scanner is not None),
        "problems": [str(each) for each in checked.findings if each.severity == "error"],
        "warnings": [str(each) for each in checked.findings if each.severity == "warning"],
        "findings": [each.to_json() for each in checked.findings],
        "missing": [] if definition is None else [*definition.missing],
        "states": 0 if explored is None else explored.states,
        "exhaustive": explored is not None and explored.exhaustive,
    }
    print_report(report, lambda: _print_check(report, explored=explored is not None), json=arguments.json)
    return 1 if checked.findings else 0


def _print_check(report: dict[str, Any], *, explored: bool) -> None:
    behaviors, actions = len(report["behaviors"]), len(report["actions"])
    print(styled(report["bot"], "bold"))
    print(f"  {count(behaviors, 'behavior')}, {count(actions, 'action')}, {count(report['tools'], 'tool')}")
    print(f"  {count(report['rules'], 'rule')}, {report['tested_rules']} tested with examples")
    states = f"all {report['states']} reachable" if report["exhaustive"] else f"the first {report['states']}"
    ends = "no dead ends" if not report["problems"] else "see the errors"
    print(f"  explored {states} states; {ends}" if explored else "  the workflow was not explored; see the errors")
    for name, style in (("problems", "red"), ("warnings", "yellow")):
        for line in report[name]:
            print(styled(f"  {'error' if name == 'problems' else 'warning'}: {line}", style))
    unused = len(report["missing"])
    optional = f" {count(unused, 'optional part')} not used; --json lists them." if unused else ""
    errors, warnings = count(len(report["problems"]), "error"), count(len(report["warnings"]), "warning")
    found = f"{errors}, {warnings} found." if report["findings"] else "OK: no errors."
    print(f"{found}{optional}")


def _status(arguments: argparse.Namespace) -> None:
    """Every run of every bot, or one run of each that has it."""
    with opened_bots(arguments) as bots:
        reports = [report_bot(bot) for bot in bots]
    if arguments.run:
        known = sorted({each["run"] for report in reports for each in report["runs"]})
        if arguments.run not in known:
            hint = f"Known runs: {', '.join(known) or 'none'}."
            raise ConfigurationError(f"unknown run `{arguments.run}`.", where="bot status", hint=hint)
        reports = [{**each, "runs": [run for run in each["runs"] if run["run"] == arguments.run]} for each in reports]
    print_report(reports, lambda: _print_status(reports), json=arguments.json)


def _print_status(reports: list[dict[str, Any]]) -> None:
    headings = ("RUN", "VERSION", "CURRENT ACTION", "STATE", "DONE", "UPDATED")
    for report in reports:
        print(styled(report["bot"], "bold") + f" in {report['project']}")
        for notice in report["notices"]:
            print(styled(f"  Warning: {notice}", "yellow"))
        shown = ("run", "version", "current_action", "state", "progress", "updated")
        rows = [[str(each[name]) for name in shown] for each in report["runs"]]
        if any(each["preset"] for each in report["runs"]):
            rows = [[*row, each["preset"] or "full depth"] for row, each in zip(rows, report["runs"], strict=True)]
            print_listing(report, (*headings, "PRESET"), rows, json=False, empty="")
            continue
        print_listing(report, headings, rows, json=False, empty="  No runs yet.")


def _history(arguments: argparse.Namespace) -> None:
    """What was completed and taken up again, or every change."""
    with opened_bot(arguments) as bot:
        project = bot.project()
        project.load(arguments.run)
        require_run(project.state, arguments.run)
        lines = (_events if arguments.events else _entries)(project.state, arguments)
    headings = [name.upper() for name in lines[0]] if lines else []
    rows = [[str(cell) for cell in line.values()] for line in lines]
    print_listing(lines, headings, rows, json=arguments.json, empty=f"Run {arguments.run} has no history.")


def _entries(state: WorkflowRuns, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [report_entry(line.entry) for line in state.history(arguments.run, limit=arguments.limit)]


def _events(state: WorkflowRuns, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    return [
        {
            "version": line.version,
            "at": line.at,
            "what": line.kind,
            "by": line.principal,
            "current": ".".join(map(str, as_list(event_state(line).get("current")))),
        }
        for line in state.events(arguments.run, limit=arguments.limit)
    ]


def _export(arguments: argparse.Namespace) -> None:
    """The whole history of one run or of all of them, as lines of JSON."""
    with opened_bot(arguments) as bot:
        project = bot.project()
        project.load(MAIN)
        if arguments.run is not None:
            require_run(project.state, arguments.run, "bot export")
        known = sorted((*(each.name for each in project.state.runs()), *project.state.damaged()))
        runs = known if arguments.run is None else [arguments.run]
        write_export(project.state, runs, arguments.output)


def _recover(arguments: argparse.Namespace) -> None:
    """Rebuild a damaged record from the run's changes and history."""
    with opened_bot(arguments) as bot:
        state, version = bot.project().state.recover(arguments.run, principal=local_principal().subject)
    _report(arguments, arguments.run, state, f"was rebuilt from version {version} and is at", {})


def _diff(arguments: argparse.Namespace) -> None:
    with opened_bot(arguments) as bot:
        report = compare(bot, arguments.before, arguments.after)
    print_report(report, lambda: print_difference(report), json=arguments.json)


def _rewind(arguments: argparse.Namespace) -> None:
    """Set a run back. Its files stay as they are, and proofs come back only where they fit them."""
    with opened_bot(arguments) as bot:
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
    changes = {"files_restored": [], "files_not_restored": list(changed), "open_again": _open_again(then, moved.state)}
    _report(arguments, run, moved.state, "is back at", changes)


def _open_again(then: RunState, now: RunState) -> list[str]:
    """What was approved at a version and is not any more, because its files changed since."""
    return [str(each) for each, entry in then.latest.items() if entry.is_approved and not now.is_completed(each)]


def _fork(arguments: argparse.Namespace) -> None:
    """Begin a run at another one's place."""
    with opened_bot(arguments) as bot:
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
    changes = {
        "files_restored": sorted(copies.files),
        "files_not_restored": list(copies.lost),
        "open_again": _open_again(then, moved.state),
    }
    _report(arguments, to, moved.state, "starts at", changes)


async def _loosen(arguments: argparse.Namespace) -> None:
    """Take a run out of strict mode, which a human has to agree to in a terminal."""
    with opened_bot(arguments) as bot:
        project, run = bot.project(), arguments.run
        require_run(project.state, run, "bot loosen")
        context = CallContext(caller=TerminalCaller(), client="trysquare bot")
        require_terminal("bot loosen", "take a run out of strict mode", context.can_ask())
        if not project.load(run).state.strict:
            print(f"Run {run} is not strict.")
            return
        question = f"Take run {run} of {bot.name} out of strict mode? Its actions can then be closed without proof."
        binding = {"project": str(project.root), "run": run, "loosen": True}
        agreement = await ask_human(
            "bot loosen", question, binding, approvals=bot.approvals, context=context, strict=True
        )
        audit = {"reason": arguments.reason, "agreement": {"by": agreement.by, "how": agreement.how}}
        moved = project.state.loosen(run, principal=local_principal().subject, audit=audit)
    _report(arguments, run, moved.state, "is no longer strict and is at", {})


def _report(arguments: argparse.Namespace, run: str, state: RunState, what: str, changes: dict[str, Any]) -> None:
    if arguments.json:
        print_json({"run": run, "version": state.version, "current_action": str(state.current), **changes})
        return
    print(f"Run {run} {what} {state.current} (version {state.version}).")
    for name, words in _FILES.items():
        if changes.get(name):
            print(f"{words}: {', '.join(changes[name])}.")


_FILES = {
    "files_restored": "Copied files",
    "files_not_restored": "Files that differ from then and were not restored",
    "open_again": "Open again, because the files changed since they were approved",
}


async def _approve(arguments: argparse.Namespace) -> int | None:
    """Close the current action with proof, or approve the code of a close that waits."""
    if arguments.code is not None:
        return decide_code(arguments, refuse=False)
    if arguments.sign is None:
        return await _decide(arguments, {}, proof=True)
    try:
        return await _decide(arguments, {}, proof=True)
    except ConsentNeeded as needed:
        code = as_object(needed.fields.get("approval")).get("code")
        if code is None:
            raise
        status = decide_code(argparse.Namespace(**{**vars(arguments), "code": code}), refuse=False)
    return status or await _decide(arguments, {}, proof=True)


async def _reject(arguments: argparse.Namespace) -> int | None:
    """Send the current action back to work, or refuse the code of a close that waits."""
    if arguments.code is not None:
        return decide_code(arguments, refuse=True)
    if not arguments.reason:
        raise ConfigurationError("a reason is required.", where="bot reject", hint='Add --reason "…".')
    return await _decide(arguments, {"reject": True, "reason": arguments.reason}, proof=False)


async def _decide(arguments: argparse.Namespace, given: JsonObject, *, proof: bool) -> None:
    with opened_bot(arguments) as bot:
        tool = close_tool_name(bot.name)
        read = CLOSE.read(tool, {**given, "run": arguments.run})
        by = local_principal().subject
        call = BotCall.of(bot, tool=tool, parameters=read, principal=by, client="trysquare bot")
        context = CallContext(caller=TerminalCaller(), client="trysquare bot")
        if proof and arguments.sign is None:
            require_terminal("bot approve", "approve", context.can_ask())
        result = await close_action(call, context, proof=proof)
    if arguments.json:
        print_json(result.to_json())
    else:
        print(result.message)
        for warning in result.warnings:
            print(f"Warning: {warning}")


_NEW = (
    option("name", metavar="NAME", help="name of the bot: lower-case letters, digits and underscores"),
    option("--template", choices=TEMPLATES, help="a small bot to start from (default: story maps in two behaviors)"),
    option("--into", metavar="FOLDER", type=Path, default=Path(), help="parent of the bot's directory"),
    JSON,
)
_FOLDER = option("folder", metavar="PATH", type=Path, help="the bot's directory")
_RUN = RUN
_HISTORY = (
    option("--events", action="store_true", help="show every change instead of the completions"),
    option("--limit", type=positive(int), default=1_000, metavar="N", help="maximum number of lines"),
    *_RUN,
)
_EXPORT = (
    option("--output", type=Path, metavar="FILE", help="the file to write (default: standard output)"),
    option("--run", metavar="RUN", help="only this run (default: all)"),
    option("--bot", metavar="FOLDER", action="append", default=argparse.SUPPRESS, help=ABOUT_BOT),
    add_place_options,
)
_SIDES = (
    option("before", metavar="BEFORE", help="RUN, RUN@VERSION, @VERSION, or . for the current files"),
    option("after", metavar="AFTER", help="the other side, in the same form"),
)
_REASON = (option("--reason", metavar="TEXT", help="the reason, for the audit log"), *_RUN)
_REWIND = (option("version", type=int, metavar="VERSION", help="a version of the run"), *_REASON)
_FORK = (
    option("name", metavar="NEW_RUN", help="the name of the new run"),
    option("--at", type=int, metavar="VERSION", help="the version to start from (default: the latest)"),
)
_CODE = option("code", metavar="CODE", nargs="?", help="the code that a closing call returned")
_WHY = option("--reason", metavar="TEXT", help="the reason; required without a code")
COMMAND = Command(
    subcommands={
        "new": Command(
            _new,
            _NEW,
            "write a small working bot to start from",
            examples=(
                "trysquare bot new release --template release",
                "trysquare bot new my_bot --into bots",
            ),
        ),
        "import": IMPORT,
        "check": Command(
            _check,
            (_FOLDER, JSON),
            "check a bot's directory",
            examples=(
                "trysquare bot check bots/release",
                "trysquare bot check bots/release --json",
            ),
        ),
        "status": Command(
            _status,
            _RUN,
            "show the state of every run, or of one",
            examples=(
                "trysquare bot status --bot bots/release",
                "trysquare bot status --run story-7",
                "trysquare bot status --json",
            ),
        ),
        "history": Command(
            _history,
            _HISTORY,
            "show completed actions, by whom and how they were approved",
            examples=(
                "trysquare bot history --bot bots/release",
                "trysquare bot history --events --limit 20",
            ),
        ),
        "export": Command(
            _export,
            _EXPORT,
            "write the whole history of the runs as lines of JSON",
            examples=(
                "trysquare bot export --output history.jsonl",
                "trysquare bot export --run hotfix",
            ),
        ),
        "recover": Command(
            _recover,
            _RUN,
            "rebuild the damaged record of a run from its history",
            examples=(
                "trysquare bot recover --run hotfix",
                "trysquare bot recover --run main --bot bots/release",
            ),
        ),
        "start": START,
        "assign": ASSIGN,
        "comment": COMMENT,
        "correct": CORRECT,
        "verify": VERIFY,
        "diff": Command(
            _diff,
            (*_SIDES, *_RUN),
            "show changes of actions and files between two runs or versions",
            examples=(
                "trysquare bot diff main@3 main",
                "trysquare bot diff main . --bot bots/release",
            ),
        ),
        "rewind": Command(
            _rewind,
            _REWIND,
            "set a run back to an earlier version; nothing is deleted",
            examples=(
                "trysquare bot rewind 3",
                'trysquare bot rewind 3 --reason "wrong branch" --bot bots/release',
            ),
        ),
        "fork": Command(
            _fork,
            (*_FORK, *_RUN),
            "start a new run from another run's current or earlier state",
            examples=(
                "trysquare bot fork hotfix",
                "trysquare bot fork hotfix --at 3 --run main",
            ),
        ),
        "loosen": Command(
            _loosen,
            _REASON,
            "take a run out of strict mode, as a human in a terminal",
            examples=(
                "trysquare bot loosen",
                'trysquare bot loosen --run hotfix --reason "trial run"',
            ),
        ),
        "approve": Command(
            _approve,
            (_CODE, SIGN, *_RUN),
            "close the current action with proof, or approve a code",
            examples=(
                "trysquare bot approve --bot bots/release",
                "trysquare bot approve --sign ~/.ssh/id_ed25519",
                "trysquare bot approve K7QF-2M9X",
            ),
        ),
        "reject": Command(
            _reject,
            (_CODE, _WHY, *_RUN),
            "send the current action back to work, or refuse a code",
            examples=(
                'trysquare bot reject --reason "The changelog is missing"',
                "trysquare bot reject K7QF-2M9X",
            ),
        ),
    },
    examples=(
        "trysquare bot new release",
        "trysquare bot status --bot release",
    ),
)

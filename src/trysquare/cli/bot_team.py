"""Commands for teams: who works on a behavior, comments on an action, and the verification for CI."""

from __future__ import annotations

import argparse
from typing import Any

from trysquare.bots.people import ASSIGNEES, all_comments, with_comment
from trysquare.bots.projects import LiveBot
from trysquare.bots.verification import Consents, Demand, Verification, verify_bot
from trysquare.bots.workflow.machine import Position
from trysquare.bots.workflow.runs import Change
from trysquare.cli.bot_open import ABOUT_BOT, RUN, opened_bot, opened_bots, require_run
from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_place_options
from trysquare.cli.terminal import count, print_json, print_listing, print_report, styled
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import as_object
from trysquare.core.text import closest_names
from trysquare.store.audit import verify
from trysquare.store.lazy import LazyDatabase


def _assign(arguments: argparse.Namespace) -> None:
    """Name who may close the actions of a behavior in a run; without names, everybody that the bot allows."""
    with opened_bot(arguments) as bot:
        _require_known(arguments.behavior, [each.name for each in bot.definition.behaviors], "behavior", "bot assign")
        state, names = bot.project().state, list(dict.fromkeys(arguments.names))
        state.load(arguments.run)
        known = as_object(state.notes(arguments.run).get(ASSIGNEES))
        note = {**known, arguments.behavior: names}
        audit = {"behavior": arguments.behavior, "assignees": names}
        state.move(
            lambda before: Change(state=before, notes={ASSIGNEES: note}, audit=audit),
            kind="assign",
            principal=local_principal().subject,
            run=arguments.run,
        )
    if arguments.json:
        print_json({"run": arguments.run, **audit})
    else:
        print(
            f"{arguments.behavior} of run {arguments.run} is assigned to {', '.join(names) or 'nobody in particular'}."
        )


def _comment(arguments: argparse.Namespace) -> None:
    """Comment on an action, or list the comments of a run."""
    with opened_bot(arguments) as bot:
        state = bot.project().state
        state.load(arguments.run)
        if arguments.text is not None:
            position, by = _position(bot, arguments.action), local_principal().subject
            state.move(
                lambda before: with_comment(Change(state=before), position, arguments.text, by=by),
                kind="comment",
                principal=by,
                run=arguments.run,
            )
        else:
            require_run(state, arguments.run, "bot comment")
        found = all_comments(state.notes(arguments.run))
    wanted = {path: lines for path, lines in found.items() if arguments.action in (None, path)}
    lines = [{"action": path, **each} for path, comments in wanted.items() for each in comments]
    rows = [[line["action"], line["at"], line["by"], line["text"]] for line in lines]
    print_listing(lines, ["ACTION", "AT", "BY", "COMMENT"], rows, json=arguments.json, empty="No comments.")


def _position(bot: LiveBot, path: str) -> Position:
    known = [str(each) for each in bot.definition.gates]
    _require_known(path, known, "action", "bot comment")
    behavior, _, action = path.partition(".")
    return Position(behavior=behavior, action=action)


def _require_known(name: str, known: list[str], what: str, where: str) -> None:
    if name in known:
        return
    near = closest_names(name, known)
    hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
    raise ConfigurationError(f"unknown {what} `{name[:80]}`.", where=where, hint=hint)


def _verify(arguments: argparse.Namespace) -> int:
    """Check the runs of every bot; 1 if anything does not hold."""
    demand = Demand(run=arguments.run, complete=arguments.complete, receipts=not arguments.without_receipts)
    with opened_bots(arguments) as bots:
        found = {bot.name: verify_bot(bot, demand, consents_of(bot)) for bot in bots}
    if arguments.run is not None and not any(each.runs for each in found.values()):
        raise ConfigurationError(
            f"unknown run `{arguments.run}`.", where="bot verify", hint="See trysquare bot status."
        )
    reports = [_report(name, each) for name, each in found.items()]
    print_report(reports, lambda: _print_verified(reports), json=arguments.json)
    return 1 if any(report["problems"] for report in reports) else 0


def consents_of(bot: LiveBot) -> Consents:
    """The audit log of the approvals in the project, where it has one."""
    from trysquare.store import project_state

    path = project_state(bot.project().root)
    try:
        if not path.exists():
            return Consents()
    except PermissionError:
        hint = "Run the command as the user whose state it is."
        raise ConfigurationError("cannot be read: permission denied.", where=str(path), hint=hint) from None
    state = LazyDatabase(path)
    try:
        with state.read() as connection:
            rows = connection.execute("SELECT kind, body FROM audit WHERE kind = 'consent.approved'").fetchall()
            return Consents(report=verify(connection), agreed=_agreed(rows))
    finally:
        state.close()


def _agreed(rows: list[Any]) -> frozenset[tuple[str, str]]:
    import json

    bodies = [as_object(json.loads(body)) for _, body in rows]
    return frozenset((str(body.get("digest")), str(body.get("by"))) for body in bodies)


def _report(name: str, found: Verification) -> dict[str, Any]:
    problems = [each.to_json() for each in found.problems]
    return {"bot": name, "runs": list(found.runs), "read_from": found.source, "problems": problems}


def _print_verified(reports: list[dict[str, Any]]) -> None:
    for report in reports:
        problems = report["problems"]
        print(styled(report["bot"], "bold") + f": {count(len(report['runs']), 'run')}, read from {report['read_from']}")
        for each in problems:
            print(styled(f"  {each['check']}: {each['where']}: {each['problem']}", "red"))
        print(f"  {count(len(problems), 'problem')} found." if problems else "  OK: rules, gates and receipts hold.")


ASSIGN = Command(
    _assign,
    (
        option("behavior", metavar="BEHAVIOR", help="the behavior"),
        option("names", metavar="NAME", nargs="*", help="principals; none takes the assignment back"),
        *RUN,
    ),
    "name who may close the actions of a behavior in a run",
    examples=(
        "trysquare bot assign shape ada",
        "trysquare bot assign shape ada token:bob --run hotfix",
    ),
)
COMMENT = Command(
    _comment,
    (
        option("action", metavar="ACTION", nargs="?", help="behavior.action (default: all)"),
        option("text", metavar="TEXT", nargs="?", help="the comment; without it, comments are listed"),
        *RUN,
    ),
    "comment on an action for whoever works on it next, or list comments",
    examples=(
        'trysquare bot comment shape.gather_context "See acme/shop#12"',
        "trysquare bot comment --run hotfix",
    ),
)
VERIFY = Command(
    _verify,
    (
        option("--complete", action="store_true", help="open actions are a problem too"),
        option("--without-receipts", action="store_true", help="believe proofs of the state file without a database"),
        option("--run", metavar="RUN", help="only this run (default: all)"),
        JSON,
        option("--bot", metavar="FOLDER", action="append", default=argparse.SUPPRESS, help=ABOUT_BOT),
        add_place_options,
    ),
    "check rules, gates and receipts of the runs, for CI",
    examples=(
        "trysquare bot verify --bot bots/release",
        "trysquare bot verify --complete --json",
    ),
)

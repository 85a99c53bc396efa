"""`trysquare verify`: check the signed receipts, audit logs and bot runs of a project, for CI."""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from trysquare.bots.verification import Demand, Problem, verify_bot
from trysquare.cli.bot_open import ABOUT_BOT, opened_bots
from trysquare.cli.bot_team import consents_of
from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_place_options, load
from trysquare.cli.terminal import count, print_report, styled
from trysquare.core.approvals import SignedStatement
from trysquare.core.json import JsonObject, as_object
from trysquare.providers import bot_configs, project_approvers
from trysquare.settings.load import Loaded
from trysquare.store import project_state
from trysquare.store.approvals import Receipt, receipts_in
from trysquare.store.approvers import RECEIPTS, Approvers, read_receipt, receipt_path
from trysquare.store.audit import verify as verify_chain
from trysquare.store.lazy import LazyDatabase
from trysquare.store.signatures import InvalidSignature


def run(arguments: argparse.Namespace) -> int:
    """Check everything and list what does not hold; 1 if anything does not."""
    loaded = load(arguments)
    approvers = project_approvers(loaded.settings, loaded.origins)
    files = sorted((approvers.root / RECEIPTS).glob("*.json"))
    problems = [problem for file in files for problem in _of_file(approvers, file)]
    problems += _of_database(loaded, approvers)
    runs: list[str] = []
    if bot_configs(loaded.settings, loaded.origins):
        demand = Demand(complete=arguments.complete, receipts=not arguments.without_receipts)
        with opened_bots(arguments) as bots:
            for bot in bots:
                found = verify_bot(bot, demand, consents_of(bot))
                runs += [f"{bot.name}: {name}" for name in found.runs]
                problems += found.problems
    listed = list(dict.fromkeys(problems))
    report = {
        "holds": not listed,
        "approvers": approvers.is_configured(),
        "receipts": len(files),
        "runs": runs,
        "problems": [each.to_json() for each in listed],
    }
    print_report(report, lambda: _print(report), json=arguments.json)
    return 1 if listed else 0


def _of_file(approvers: Approvers, file: Path) -> Iterator[Problem]:
    """Whether a committed receipt was signed by an approver who may approve it, for this project."""
    where = f"{RECEIPTS}/{file.name}"
    try:
        signed = read_receipt(file.read_bytes())
        _, fields = approvers.verify(signed)
        if receipt_path(signed) != where:
            raise InvalidSignature("its name is not the digest of its text")
        if fields.get("project") != approvers.project_name():
            raise InvalidSignature(f"it was signed for project {fields.get('project')}")
    except InvalidSignature as error:
        yield Problem(check="signatures", where=where, problem=str(error))
    except OSError as error:
        yield Problem(check="signatures", where=where, problem=f"cannot be read: {error.strerror}")


def _of_database(loaded: Loaded, approvers: Approvers) -> list[Problem]:
    path = project_state(loaded.settings.project)
    if not path.exists():
        return []
    with closing(LazyDatabase(path)) as state, state.read() as connection:
        chain = verify_chain(connection).problem
        broken = [Problem(check="records", where="audit log of the approvals", problem=chain)] if chain else []
        return [*broken, *_receipts(connection, approvers)]


def _receipts(connection: sqlite3.Connection, approvers: Approvers) -> Iterator[Problem]:
    rows = connection.execute("SELECT kind, body FROM audit WHERE kind IN ('consent.approved', 'consent.refused')")
    recorded = {_key(kind == "consent.approved", as_object(json.loads(body))) for kind, body in rows}
    for receipt in receipts_in(connection):
        where = f"receipt {receipt.id} of {receipt.tool}"
        shown = {"tool": receipt.tool, "digest": receipt.digest, "by": receipt.by, "how": receipt.how}
        if _key(receipt.approved, shown) not in recorded:
            yield Problem(check="receipts", where=where, problem=f"the audit log has no decision by {receipt.by}")
        if receipt.statement is not None or receipt.signature is not None:
            yield from _signed(receipt, approvers, where)


def _key(approved: bool, body: JsonObject) -> tuple[Any, ...]:
    return (approved, *(body.get(name) for name in ("tool", "digest", "by", "how")))


def _signed(receipt: Receipt, approvers: Approvers, where: str) -> Iterator[Problem]:
    signed = SignedStatement(text=receipt.statement or "", signature=receipt.signature or "")
    shown = {"tool": receipt.tool, "caller": receipt.principal, "digest": receipt.digest, "question": receipt.question}
    try:
        by, fields = approvers.verify(signed)
        different = next((name for name, value in shown.items() if fields.get(name) != value), None)
        if by != receipt.by or different is not None:
            raise InvalidSignature(f"something else was signed: `{different or 'by'}` differs")
    except InvalidSignature as error:
        yield Problem(check="signatures", where=where, problem=str(error))


def _print(report: dict[str, Any]) -> None:
    print(f"{count(report['receipts'], 'signed receipt')}, {count(len(report['runs']), 'run')} of bots.")
    for each in report["problems"]:
        print(styled(f"  {each['check']}: {each['where']}: {each['problem']}", "red"))
    problems = len(report["problems"])
    print(f"{count(problems, 'problem')} found." if problems else "OK: signatures, receipts, records and gates hold.")


COMMAND = Command(
    run,
    (
        option("--complete", action="store_true", help="open actions are a problem too"),
        option("--without-receipts", action="store_true", help="believe unsigned proofs of the state file"),
        JSON,
        option("--bot", metavar="FOLDER", action="append", default=argparse.SUPPRESS, help=ABOUT_BOT),
        add_place_options,
    ),
    examples=("trysquare verify", "trysquare verify --complete --json"),
)

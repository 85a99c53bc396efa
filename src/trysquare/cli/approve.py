"""`trysquare approve CODE`: the person in charge answers a tool's question for consent."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from trysquare.app import state_file
from trysquare.cli.options import add_place_options, load
from trysquare.cli.output import as_json, print_json, print_table, styled
from trysquare.cli.terminal import ask_yes_or_no
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.untrusted import one_line
from trysquare.settings.load import Loaded
from trysquare.store.approvals import PendingApproval, Receipt, StoredApprovals
from trysquare.store.codes import normalized
from trysquare.store.database import open_database
from trysquare.store.location import project_state, user_state

LONGEST = 4_000
"""Characters of a question."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `approve`."""
    parser.add_argument("code", metavar="CODE", nargs="?", help="the code that the tool's answer named; none lists all")
    parser.add_argument("--refuse", action="store_true", help="refuse the call instead")
    parser.add_argument("--receipts", action="store_true", help="show what was decided so far, latest first")
    parser.add_argument("--json", action="store_true", help="print what waits, or the receipts, as JSON")
    add_place_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show what waits, or decide one call."""
    with _open_approvals(load(arguments)) as found:
        if arguments.receipts:
            return _show_receipts(found, as_json=arguments.json)
        if arguments.code is None:
            return _show_all(found, as_json=arguments.json)
        approvals = _holding(found, arguments.code)
        return _refuse(approvals, arguments.code) if arguments.refuse else _approve(approvals, arguments.code)


@contextmanager
def _open_approvals(loaded: Loaded) -> Generator[list[StoredApprovals]]:
    """The approvals of this project and of this user; a file that does not exist has none, and is not made."""
    paths = _paths(loaded)
    with ExitStack() as stack:
        found: list[StoredApprovals] = []
        for path in paths:
            database = open_database(path)
            stack.callback(database.close)
            found.append(StoredApprovals(database))
        yield found


def _paths(loaded: Loaded) -> list[Path]:
    project = loaded.settings.project
    wanted = [state_file(loaded.settings, loaded.origins), project_state(project), user_state()]
    return [path for path in dict.fromkeys(wanted) if path.exists()]


def _holding(found: list[StoredApprovals], code: str) -> StoredApprovals:
    """The approvals that hold a code; the first ones for a wrong code, so that the try is counted."""
    if not found:
        raise ConfigurationError(
            "no call waits: no server that runs here has asked for consent.",
            where="approve",
            hint="Name the server's project with --project FOLDER.",
        )
    wanted = normalized(code)
    return next((one for one in found if any(waits.code == wanted for waits in one.pending())), found[0])


def _show_all(found: list[StoredApprovals], *, as_json: bool) -> int:
    waiting = [pending for approvals in found for pending in approvals.pending()]
    if as_json:
        print_json([asdict(pending) for pending in waiting])
    elif not waiting:
        print("No call waits for approval.")
    else:
        rows = [(one.code, one.tool, one.principal, _time(one.expires_in), one.question) for one in waiting]
        print_table(("CODE", "TOOL", "CALLER", "EXPIRES", "QUESTION"), rows)
        print("\nRun `trysquare approve CODE` to see one in full and decide.")
    return 0


def _show_receipts(found: list[StoredApprovals], *, as_json: bool) -> int:
    receipts = [receipt for approvals in found for receipt in approvals.receipts()]
    if as_json:
        print_json([asdict(receipt) for receipt in receipts])
    elif not receipts:
        print("Nothing was decided yet.")
    else:
        rows = [(one.at, _decision(one), one.by, one.how, one.tool, one.digest[:16], one.question) for one in receipts]
        print_table(("WHEN", "DECISION", "BY", "HOW", "TOOL", "DIGEST", "QUESTION"), rows)
    return 0


def _decision(receipt: Receipt) -> str:
    return "approved" if receipt.approved else "refused"


def _approve(approvals: StoredApprovals, code: str) -> int:
    pending = approvals.show(code)
    _show(pending)
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "only a person can approve, and stdin is no terminal.", where="approve", hint="Run it in a terminal."
        )
    if not ask_yes_or_no("Let it run once with exactly these arguments?"):
        print("Not decided; the call still waits. `--refuse` refuses it.")
        return 1
    receipt = approvals.approve(pending.code, by=local_principal().subject)
    print(f"Approved by {receipt.by} at {receipt.at}. The caller can now send the same call again.")
    return 0


def _refuse(approvals: StoredApprovals, code: str) -> int:
    pending = approvals.show(code)
    _show(pending)
    receipt = approvals.refuse(pending.code, by=local_principal().subject)
    print(f"Refused by {receipt.by} at {receipt.at}.")
    return 0


def _show(pending: PendingApproval) -> None:
    print(styled(one_line(pending.question, LONGEST), "bold"))
    print(f"  Tool       {one_line(pending.tool)}")
    print(f"  Caller     {one_line(pending.principal)}")
    for number, line in enumerate(as_json(pending.arguments).split("\n")):
        print(f"  {'Arguments' if number == 0 else '':<9}  {line}")
    print(f"  Digest     {pending.digest}")
    print(f"  Expires    in {_time(pending.expires_in)}", flush=True)


def _time(seconds: float) -> str:
    return f"{max(0, round(seconds))} s"

"""`trysquare approve CODE`: approve or refuse a call that needs consent."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path

from trysquare.cli.command import Command, option
from trysquare.cli.options import add_place_options, load
from trysquare.cli.terminal import as_json, ask_yes_or_no, print_listing, require_terminal, styled
from trysquare.core.approvals import SignedStatement
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError, ConsentNeeded
from trysquare.core.untrusted import one_line
from trysquare.providers import approval_files, project_approvers
from trysquare.settings.load import Loaded
from trysquare.store import StoredApprovals
from trysquare.store.approvals import PendingApproval, normalize_code
from trysquare.store.database import open_database
from trysquare.store.signatures import InvalidSignature, sign_text

LONGEST = 4_000
"""Characters of a question."""
SIGN = option("--sign", metavar="KEY", type=Path, help="sign it as an approver, with this SSH key")
_OPTIONS = (
    option("code", metavar="CODE", nargs="?", help="the code in the tool's answer (default: list pending calls)"),
    SIGN,
    option("--refuse", action="store_true", help="refuse the call instead"),
    option("--receipts", action="store_true", help="show past decisions, latest first"),
    option("--json", action="store_true", help="print pending calls, or the receipts, as JSON"),
    add_place_options,
)


def approve(arguments: argparse.Namespace) -> int | None:
    """Show pending calls or receipts, or decide one call."""
    if arguments.code is not None and not arguments.receipts:
        if arguments.refuse and arguments.sign is not None:
            raise ConfigurationError("a refusal is not signed.", where="approve", hint="Remove --sign KEY.")
        return decide_code(arguments, refuse=arguments.refuse)
    with _open_approvals(load(arguments)) as found:
        return (_show_receipts if arguments.receipts else _show_all)(found, as_json=arguments.json)


def decide_code(arguments: argparse.Namespace, *, refuse: bool) -> int:
    """Approve or refuse the call of `arguments.code`."""
    with _open_approvals(load(arguments)) as found:
        store = _holding(found, arguments.code)
        if not refuse and arguments.sign is not None:
            return _sign(store, arguments.code, arguments.sign)
        return _decide(store, arguments.code, refuse=refuse)


@contextmanager
def _open_approvals(loaded: Loaded) -> Generator[list[StoredApprovals]]:
    """Open the approvals of the project and of the user; a missing file is not created."""
    wanted = approval_files(loaded.settings, loaded.origins)
    with ExitStack() as stack:
        found = [closing(open_database(path)) for path in wanted if path.exists()]
        approvers, strict = project_approvers(loaded.settings, loaded.origins), loaded.settings.strict
        lifetime = loaded.settings.limits.approval_seconds
        opened = [stack.enter_context(database) for database in found]
        yield [StoredApprovals(one, approvers=approvers, strict=strict, lifetime=lifetime) for one in opened]


def _holding(found: list[StoredApprovals], code: str) -> StoredApprovals:
    """The store of a code, or the first one for a wrong code, so that the attempt is counted."""
    if not found:
        raise ConfigurationError(
            "no pending calls: no server of this project has asked for consent.",
            where="approve",
            hint="Name the server's project with --project FOLDER.",
        )
    wanted = normalize_code(code)
    return next((one for one in found if any(waits.code == wanted for waits in one.pending())), found[0])


def _show_all(found: list[StoredApprovals], *, as_json: bool) -> None:
    waiting = [pending for approvals in found for pending in approvals.pending()]
    rows = [(one.code, one.tool, one.principal, _time(one.expires_in), one.question) for one in waiting]
    headings = ("CODE", "TOOL", "CALLER", "EXPIRES", "QUESTION")
    empty, then = "No pending calls.", "Run `trysquare approve CODE` to see one in full and decide."
    print_listing([asdict(one) for one in waiting], headings, rows, json=as_json, empty=empty, then=then)


def _show_receipts(found: list[StoredApprovals], *, as_json: bool) -> None:
    receipts = [receipt for approvals in found for receipt in approvals.receipts()]
    rows = [
        (one.at, "approved" if one.approved else "refused", one.by, one.how, one.tool, one.digest[:16], one.question)
        for one in receipts
    ]
    headings = ("WHEN", "DECISION", "BY", "HOW", "TOOL", "DIGEST", "QUESTION")
    report = [asdict(receipt) for receipt in receipts]
    print_listing(report, headings, rows, json=as_json, empty="No decisions yet.")


def _decide(approvals: StoredApprovals, code: str, *, refuse: bool) -> int:
    pending = approvals.show(code)
    _show(pending)
    if refuse:
        receipt = approvals.refuse(pending.code, by=local_principal().subject)
        print(f"Refused by {receipt.by} at {receipt.at}.")
        return 0
    require_terminal("approve", "approve")
    if not ask_yes_or_no("Let it run once with exactly these arguments?"):
        print("Not decided; the call is still pending. Use --refuse to refuse it.")
        return 1
    receipt = approvals.approve(pending.code, by=local_principal().subject)
    if receipt.unsigned:
        print(
            f"Confirmed by {receipt.by} at {receipt.at}, but not proven: the call still waits. An approver of this "
            f"project has to sign it: trysquare approve {pending.code} --sign KEY"
        )
        return 1
    print(f"Approved by {receipt.by} at {receipt.at}. The caller can now send the same call again.")
    return 0


def _sign(approvals: StoredApprovals, code: str, key: Path) -> int:
    """Show exactly what is approved, sign it with an approver's key, and store the receipt."""
    try:
        text = approvals.statement(code)
        print(text, flush=True)
        if sys.stdin.isatty() and not ask_yes_or_no("Sign this?"):
            print("Not signed; the call is still pending. Use --refuse to refuse it.")
            return 1
        receipt = approvals.approve_signed(code, SignedStatement(text=text, signature=sign_text(text, key)))
    except InvalidSignature as error:
        raise ConsentNeeded(
            f"Not approved: {error}.",
            instruction="Sign with the key of an approver who may approve this; see the project's approvers.",
        ) from None
    print(f"Signed by {receipt.by} at {receipt.at}: proven. The caller can now send the same call again.")
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


COMMAND = Command(
    approve,
    _OPTIONS,
    examples=(
        "trysquare approve",
        "trysquare approve K7QF-2M9X",
        "trysquare approve K7QF-2M9X --refuse",
        "trysquare approve K7QF-2M9X --sign ~/.ssh/id_ed25519",
    ),
)

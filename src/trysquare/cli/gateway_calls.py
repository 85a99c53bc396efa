"""`trysquare gateway calls`: the ledger of calls to the servers, for the person at this terminal."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from trysquare.cli.output import count, print_json, print_table
from trysquare.store.ledger import CallLedger
from trysquare.store.ledger_rows import CallRecord
from trysquare.store.location import user_state

STATES = ("done", "not_sent", "sending", "sent_unknown")
USUAL = 50


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `calls`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="the server; without it, all")
    parser.add_argument("--state", choices=STATES, help="only calls of which this is known")
    parser.add_argument("--limit", metavar="N", type=_positive, default=USUAL, help=f"so many at most; {USUAL}")
    parser.add_argument("--json", action="store_true", help="print JSON, with the arguments and digests")


def run(arguments: argparse.Namespace) -> int:
    """Show the latest calls, latest first. What killed processes left behind is settled on the way."""
    ledger = CallLedger(user_state().with_name("ledger.db"))
    try:
        calls = ledger.recent(limit=arguments.limit, server=arguments.name, state=arguments.state)
    finally:
        ledger.close()
    if arguments.json:
        print_json([_as_json(call) for call in calls])
    elif not calls:
        print("No call was made.")
    else:
        headings = ("WHEN", "SERVER", "TOOL", "STATE", "TOOK", "RESULT", "ARGUMENTS")
        print_table(headings, [_row(call) for call in calls])
        _tell_unknown(calls)
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _row(call: CallRecord) -> tuple[str, ...]:
    told = call.note or call.arguments
    return (_time(call.started), call.server, call.tool, call.state, _took(call), _result(call), told)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def _took(call: CallRecord) -> str:
    return "" if call.ended is None else f"{(call.ended - call.started) * 1000:.0f} ms"


def _result(call: CallRecord) -> str:
    if call.result_bytes is None:
        return ""
    size = count(call.result_bytes, "byte")
    return f"error, {size}" if call.is_error else size


def _tell_unknown(calls: list[CallRecord]) -> None:
    unknown = sum(call.state == "sent_unknown" for call in calls)
    if unknown:
        print(f"\n{count(unknown, 'call')} may have taken effect, or not: look at what they were to change.")


def _as_json(call: CallRecord) -> dict[str, Any]:
    return {**asdict(call), "arguments": json.loads(call.arguments)}

"""A process that keeps a ledger of calls until it is killed. It prints a line after each outcome is put down."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from trysquare.store import call_ledger as ledger_module
from trysquare.store.call_ledger import CallEnd, CallLedger, KeyedCall, NewCall


def call(number: int) -> NewCall:
    return NewCall(principal="me", server="files", tool="write", arguments=f'{{"n":{number}}}', digest=f"d{number}")


def acknowledge(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def work(ledger: CallLedger) -> None:
    """One call after the other; every third one is never answered."""
    for number in range(1_000_000):
        id = ledger.begin(call(number))
        if number % 3 == 2:
            acknowledge(f"open {id}")
            continue
        ledger.end(id, CallEnd(state="done", ended=time.time(), is_error=False, result_digest=f"r{number}"))
        acknowledge(f"done {id}")


def claim(ledger: CallLedger) -> None:
    """Run each of some keyed calls unless some process ran it before."""
    for number in range(1_000_000):
        claimed = ledger.claim(call(number), f"key-{number}")
        if isinstance(claimed, KeyedCall):
            acknowledge(f"{claimed.state} key-{number}")
            continue
        acknowledge(f"sent key-{number}")
        ledger.end_claimed(claimed, CallEnd(state="done", ended=time.time()), b"answer")
        acknowledge(f"done key-{number}")


if __name__ == "__main__":
    what, file = sys.argv[1:]
    if what == "hasty":
        # Carry the journal over all the time, to be killed in the middle of that.
        ledger_module.GATHER_SECONDS = 0.0
    {"work": work, "hasty": work, "claim": claim}[what](CallLedger(Path(file)))

"""A process that works on a state file until it is told to stop or is killed. It prints a line after each commit."""

from __future__ import annotations

import sys
from pathlib import Path

from trysquare import ToolError
from trysquare.store.audit import Audit, append
from trysquare.store.database import open_database
from trysquare.store.idempotency import Claim, claim, finish


def acknowledge(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def append_rows(path: Path, name: str, count: int) -> None:
    """Append to the audit; each row is acknowledged after it was committed."""
    database = open_database(path)
    for number in range(count):
        Audit(database).append(kind="work", principal=name, body={"number": number})
        acknowledge(f"{name} {number}")


def fill_disk(path: Path, name: str, count: int) -> None:
    """Append large rows under a limit of the file's size until nothing more can be written."""
    import resource

    database = open_database(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, resource.RLIM_INFINITY))
    for number in range(10_000):
        try:
            Audit(database).append(kind="work", principal=name, body={"number": number, "text": "x" * 4000})
        except ToolError as error:
            acknowledge(f"full {error.code} {error}")
            return
        acknowledge(f"{name} {number}")


def hold(path: Path, name: str, count: int) -> None:
    """Write some rows in one transaction and wait in its middle, to be killed there."""
    database = open_database(path)
    with database.write() as connection:
        for number in range(count):
            append(connection, kind="work", principal=name, body={"number": number})
        acknowledge(f"{name} inside")
        sys.stdin.readline()


def run_once(path: Path, name: str, count: int) -> None:
    """Run each of some keyed calls unless it was run before, its change and its key in one transaction."""
    database = open_database(path)
    for number in range(count):
        with database.write() as connection:
            got = claim(connection, f"key-{number}", tool="count", principal="all", digest="d", now=0.0)
            if isinstance(got, Claim):
                append(connection, kind="ran", principal=name, body={"number": number})
                finish(connection, got, {"by": name}, now=0.0)
        acknowledge(f"{name} {number}")


if __name__ == "__main__":
    what, file, who, many = sys.argv[1:]
    {"append": append_rows, "fill": fill_disk, "hold": hold, "once": run_once}[what](Path(file), who, int(many))

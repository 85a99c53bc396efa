"""`python -m tests.gateway.torture [ROW …] [--json FILE]`: our own gateway on every lane, and its scorecard."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tests.gateway.torture.arena import Verdict, run_trial
from tests.gateway.torture.fronts import Trysquare
from tests.gateway.torture.lanes import LANES
from tests.gateway.torture.rows import ROWS
from tests.gateway.torture.scorecard import as_json, lines


def main() -> int:
    """Run the trials that were asked for, all of them by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.torture", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(row.name for row in ROWS))
    parser.add_argument("--lane", type=int, action="append", help="the number of a lane, from 1 on")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the scorecard to a file as well")
    arguments = parser.parse_args()
    entries = as_json(asyncio.run(_run(arguments.rows, arguments.lane or range(1, len(LANES) + 1))))
    sys.stdout.write("\n".join(lines(entries, ROWS, LANES)) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    return 0 if all(entry["passed"] for entry in entries) else 1


async def _run(names: list[str], numbers: list[int] | range) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for lane in (LANES[number - 1] for number in numbers):
        for row in ROWS:
            if (not names or row.name in names) and row.impossible(lane) is None:
                verdicts.append(await run_trial(row, lane, Trysquare()))
                sys.stderr.write(f"{row.name}, {lane}: {verdicts[-1].failures or 'passed'}\n")
    return verdicts


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks [cold] [call] [memory] [http] [guide] [bots] [gateway] [debug] …`: us beside the peers."""

from __future__ import annotations

import argparse
import compileall
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.known import PEERS, ROOT, is_there
from benchmarks.report import print_report, write_page
from benchmarks.sections import SECTIONS, Plan, Results, run_section

PAGE = ROOT / "docs" / "benchmarks.md"


def main(words: list[str] | None = None) -> int:
    """Run the sections that were asked for, all of them by default."""
    arguments = _parser().parse_args(words)
    plan = Plan.quick() if arguments.quick else Plan(rounds=arguments.rounds, seconds=arguments.seconds)
    peers = [peer for peer in PEERS if is_there(peer)]
    for peer in set(PEERS) - set(peers):
        print(f"{peer} is left out: run `make node`", file=sys.stderr)
    # An installed package has its bytecode; a checkout where none may be written would be compiled at every start.
    compileall.compile_dir(ROOT / "src" / "trysquare", quiet=2)
    results = Results()
    with tempfile.TemporaryDirectory() as project:
        try:
            for section in arguments.sections or SECTIONS:
                run_section(section, plan, peers, results, Path(project))
        finally:
            # What was measured before a failure is worth seeing too.
            print_report(results)
    if not arguments.quick and not arguments.no_page and not arguments.sections:
        write_page(PAGE, results, plan)
        print(f"\nWritten to {PAGE.relative_to(ROOT)}.")
    if arguments.page:
        write_page(arguments.page, results, plan, arguments.sections)
        print(f"\nWritten to {arguments.page}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="a small run that shows that everything works")
    parser.add_argument("--rounds", type=int, default=5, help="how often each thing is measured (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.5, help="how long each load lasts (default: 1.5)")
    parser.add_argument("--page", type=Path, help="write the figures into this page, between its markers")
    parser.add_argument("--no-page", action="store_true", help="do not write docs/benchmarks.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())

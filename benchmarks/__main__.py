"""Measure Trysquare beside its peers: `python -m benchmarks [SECTION …]`, all sections by default."""

from __future__ import annotations

import argparse
import compileall
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.known import BASELINE, BASELINE_VARIABLE, PEERS, ROOT, is_there
from benchmarks.report import print_report, write_pages
from benchmarks.sections import SECTIONS, Results, known_sections, run_section
from benchmarks.servers import Plan


def main(words: list[str] | None = None) -> int:
    """Run the sections that were asked for, all of them by default."""
    arguments = _parser().parse_args(words)
    plan = Plan.quick() if arguments.quick else Plan(rounds=arguments.rounds, seconds=arguments.seconds)
    sections = known_sections(arguments.sections)
    peers = [peer for peer in PEERS if is_there(peer)]
    for peer in set(PEERS) - set(peers):
        print(f"{peer} is left out: run `make node`", file=sys.stderr)
    sources = [ROOT / "src" / "trysquare"]
    if arguments.baseline is not None:
        os.environ[BASELINE_VARIABLE] = str(arguments.baseline.resolve())
        sources.append(arguments.baseline / "src" / "trysquare")
        peers.append(BASELINE)
    for source in sources:
        # An installed package has its bytecode; a checkout where none may be written would be compiled at every start.
        compileall.compile_dir(source, quiet=2)
    results = Results()
    with tempfile.TemporaryDirectory() as project:
        try:
            for number, section in enumerate(sections, start=1):
                run_section(section, plan, peers, results, Path(project))
                if arguments.write:
                    # After each section: what is measured stays written if a later one fails, or is left for later.
                    pages = sorted((ROOT / "docs").glob("benchmarks*.md"))
                    for page in write_pages(pages, results, plan, sections[:number]):
                        print(f"{section} is written to {page.relative_to(ROOT)}.")
        finally:
            # What was measured before a failure is worth seeing too.
            print_report(results, sections)
    return 0


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:14} {section.minutes:4g} min  {section.about}" for name, section in SECTIONS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"sections, and how long each takes with 5 rounds on two idle cores:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="what to measure (default: everything)")
    parser.add_argument("--quick", action="store_true", help="a small run that shows that everything works")
    parser.add_argument("--rounds", type=int, default=5, help="how often each thing is measured (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.5, help="how long each load lasts (default: 1.5)")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/benchmarks*.md")
    parser.add_argument("--baseline", type=Path, metavar="DIR", help="measure this checkout of Trysquare as a peer too")
    return parser


if __name__ == "__main__":
    sys.exit(main())

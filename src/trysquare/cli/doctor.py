"""`trysquare doctor`: what is installed, what works, and what to run to get the rest. Asks nothing of the network."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from trysquare.cli.doctor_checks import Finding, check_clients, check_installation, check_state
from trysquare.cli.doctor_server import check_server
from trysquare.cli.options import add_shared_options, load
from trysquare.cli.output import print_json, styled
from trysquare.core.errors import TrysquareError
from trysquare.core.untrusted import one_line

_MARKS = {"ok": ("ok", "green"), "absent": ("--", "dim"), "broken": ("NO", "red")}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_shared_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look at everything; 1 if something that is needed does not work."""
    findings = examine(arguments)
    broken = [finding for finding in findings if finding.state == "broken"]
    if arguments.json:
        print_json({"ok": not broken, "findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings)
    return 1 if broken else 0


def examine(arguments: argparse.Namespace) -> list[Finding]:
    """Everything that was found, in order."""
    findings = check_installation()
    try:
        loaded = load(arguments)
    except TrysquareError as error:
        wrong = Finding(
            group="server", name="configuration", state="broken", detail=str(error), fix="mend the configuration"
        )
        return [*findings, wrong]
    findings += check_state(loaded.settings.project)
    findings += check_server(arguments, loaded)
    return findings + check_clients(loaded.settings.project)


def _print(findings: Sequence[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    group = None
    for finding in findings:
        if finding.group != group:
            group = finding.group
            print(styled(f"{group}:", "bold"))
        mark, style = _MARKS[finding.state]
        print(f"  {styled(mark, style)}  {finding.name.ljust(width)}  {one_line(finding.detail, 4_000)}")
        if finding.fix is not None:
            print(f"      {' ' * width}  {styled('run: ' + finding.fix, 'cyan')}")
    broken = sum(finding.state == "broken" for finding in findings)
    print("\nEverything that is needed works." if not broken else f"\n{broken} of {len(findings)} need attention.")

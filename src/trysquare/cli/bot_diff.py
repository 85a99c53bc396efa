"""`trysquare bot diff`: differences between two runs or versions, in actions and files."""

from __future__ import annotations

from typing import Any

from trysquare.bots.comparison import FOLDER_NAME
from trysquare.cli.terminal import print_table, styled

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def print_difference(report: dict[str, Any]) -> None:
    """Print the report of `compare`."""
    rows = [(row["action"], row["before"], row["after"]) for row in report["actions"]]
    if rows:
        print_table(("ACTION", report["before"].upper(), report["after"].upper()), rows)
    elif FOLDER_NAME not in (report["before"], report["after"]):
        print("No action differs.")
    for file in report["files"]:
        print()
        _show_file(file)
    if not report["files"]:
        print("No file differs.")


def _show_file(file: dict[str, Any]) -> None:
    digests = " -> ".join((file[side] or "none")[:12] for side in ("before", "after"))
    print(styled(f"{file['path']} {file['change']} ({digests})", "bold"))
    if file["lines"] is None:
        print(f"  {file['note']}")
        return
    for line in file["lines"][2:]:
        print(styled(line, _COLOURS[line[0]]) if line[:1] in _COLOURS else line)

"""Writes what really came out into a page: `python -m tests.docs.refresh docs/tools/errors.md`. Read the diff."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import read_page
from tests.docs.runner import PageRun, is_same, project_of
from tests.docs.settings_tables import MARK, settings_tables


class Recorder:
    """Takes note of each place that shows something else than what came out."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []

    def __call__(self, place: str, expected: str, actual: str) -> None:
        if not is_same(expected, actual):
            self.changes.append((place, expected, actual))


def refresh(path: Path) -> list[str]:
    """Run a page and write what came out in place of what it showed; returns the places that changed."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({"HOME": home, "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"})
        PageRun(read_page(path), project_of(path, Path(home) / "project"), recorder).run()
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    # From the end to the start, so that the lines of the places before stay where they are.
    for place, expected, actual in reversed(recorder.changes):
        _replace(lines, place, expected, actual)
    path.write_text(_with_tables("".join(lines)), encoding="utf-8")
    return [place for place, _, _ in recorder.changes]


def _with_tables(text: str) -> str:
    head, mark, _ = text.partition(MARK)
    return head + mark + settings_tables() if mark else text


def _replace(lines: list[str], place: str, expected: str, actual: str) -> None:
    block, _, command = place.partition(" `")
    start = int(block.rpartition(":")[2])
    if command:
        whole = f"$ {command.removesuffix('`')}\n"
        begun = (
            number for number in range(start, len(lines)) if lines[number] == whole or _begins(whole, lines[number])
        )
        start = next(begun) + 1
        while lines[start - 1].rstrip("\n").endswith("\\"):
            start += 1
    body = "\n".join(line.rstrip() for line in actual.strip("\n").splitlines())
    lines[start : start + len(expected.splitlines())] = [f"{body}\n"] if body else []


def _begins(whole: str, line: str) -> bool:
    """Whether a line is the first of a command that goes on in the next line."""
    return line.endswith("\\\n") and whole.startswith(line[:-2].rstrip())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for changed in refresh(Path(name).resolve()):
            sys.stdout.write(f"{changed}\n")

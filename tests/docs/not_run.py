"""The blocks that no test runs, each with its reason. Every other block of the pages is run or parsed."""

from __future__ import annotations

NOT_RUN: dict[tuple[str, str], str] = {
    ("README.md", "$ make demo"): "installs packages and runs the demo, which has tests of its own; make test is this run",
    ("README.md", '$ export PATH="$PWD/.venv/bin:$PATH"'): "the tests put the commands on the path themselves",
}
"""(page, first line of the block) -> why it is not run here."""

"""The rows of the comparison page, and the checks that are registered for them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "start" / "comparison.md"
Check: TypeAlias = Callable[[Path], Awaitable[None]]
"""Does in a directory of its own what a cell of the page says."""
OURS: dict[str, Check] = {}
THEIRS: dict[str, Check] = {}


def ours(row: str) -> Callable[[Check], Check]:
    """Register a check of what the page says of Trysquare in a row."""
    return _registered(OURS, row)


def theirs(row: str) -> Callable[[Check], Check]:
    """Register a check of what the page says of FastMCP in a row."""
    return _registered(THEIRS, row)


def _registered(checks: dict[str, Check], row: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        assert row not in checks, f"two checks for {row}"
        checks[row] = check
        return check

    return register


def rows_below(heading: str) -> list[str]:
    """The first cells of all tables below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    cells = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    return [cell for cell in cells if cell]


def named_version() -> str:
    """The version of FastMCP that the page is about."""
    found = re.search(r"FastMCP (\d+\.\d+\.\d+)", PAGE.read_text(encoding="utf-8"))
    assert found is not None
    return found[1]

"""The blocks that no test runs, each with its reason. Every other block of the pages is run or parsed."""

from __future__ import annotations

NOT_RUN: dict[tuple[str, str], str] = {}
"""(page, first line of the block) -> why it is not run here."""

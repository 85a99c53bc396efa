"""Tables go between the markers of their own part, and the rest of the page stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.tables import Table
from evals import page as page_module
from evals.page import write_tables

PAGE = """\
Before.
<!-- calls: start -->
old
<!-- calls: end -->
Between.
<!-- builder: start -->
<!-- builder: end -->
"""


def test_only_the_part_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "version", lambda name: "1.0")
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    write_tables(page, "calls", "make eval", [Table(title="Right", head=["way", "all"], rows=[["ours", "1 of 2"]])])
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert "Made by `make eval`: " in text
    assert "### Right\n\n| way | all |\n| --- | --- |\n| ours | 1 of 2 |\n\n<!-- calls: end -->\nBetween.\n" in text
    assert text.endswith("<!-- builder: start -->\n<!-- builder: end -->\n")


def test_a_page_without_the_part_is_left_as_it_is_and_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Nothing here.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no place for calls"):
        write_tables(page, "calls", "make eval", [])
    assert page.read_text(encoding="utf-8") == "Nothing here.\n"

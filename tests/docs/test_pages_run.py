"""Every code block of the README, the docs and the examples runs, and shows what it says it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.not_run import NOT_RUN
from tests.docs.pages import ROOT, read_page, run_pages
from tests.docs.runner import PageRun, first_line, project_of


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", run_pages(), ids=_name)
def test_each_block_of_the_page_runs_and_shows_what_it_says(path: Path, tmp_path: Path) -> None:
    project = project_of(path, tmp_path / "project")
    PageRun(read_page(path), project).run()


def test_each_block_that_is_left_out_still_stands_on_its_page() -> None:
    standing = {(block.page, first_line(block)) for path in run_pages() for block in read_page(path).blocks}
    assert sorted(NOT_RUN.keys() - standing) == []

"""Every cell of the comparison page that says what Trysquare does is run; so are many of those about FastMCP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.comparison import serving, writing
from tests.comparison.rows import OURS, THEIRS, named_version, rows_below

ROWS = rows_below("Row by row")
SECONDS = 60


def test_every_row_has_a_check_and_every_check_a_row() -> None:
    assert {writing.__name__, serving.__name__} == {check.__module__ for check in OURS.values()}
    assert sorted(OURS) == sorted(ROWS)
    assert set(THEIRS) <= {*ROWS, *rows_below("What FastMCP has and Trysquare does not")}


def test_the_page_names_the_version_that_is_compared() -> None:
    pins = (Path(__file__).parents[2] / "constraints" / "dev.txt").read_text(encoding="utf-8")
    assert f"\nfastmcp=={named_version()} " in pins


@pytest.mark.parametrize("row", ROWS)
async def test_trysquare_does_what_the_page_says(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with asyncio.timeout(SECONDS):
        await OURS[row](tmp_path)


@pytest.mark.parametrize("row", sorted(THEIRS))
async def test_fastmcp_does_what_the_page_says(row: str, tmp_path: Path) -> None:
    async with asyncio.timeout(SECONDS):
        await THEIRS[row](tmp_path)

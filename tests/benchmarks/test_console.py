"""Every page of the console is measured, and answered. No test here asserts a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.console import IDLE, OPEN, PAGES, ConsoleResults, console_tables, console_targets, measure_console


def test_every_page_is_measured_and_a_first_paint_is_small(tmp_path: Path):
    pytest.importorskip("dbos")
    results = ConsoleResults()
    measure_console(results, tmp_path, 0.01, quick=True)

    [table] = console_tables(results)
    assert [row[0] for row in table.rows] == [*PAGES, IDLE, OPEN]
    *_, paint = console_targets(results)
    assert paint.is_met


def test_a_page_that_takes_too_long_misses_its_target():
    results = ConsoleResults(
        cpu={"Calls": 99.0, "Bots": 101.0, IDLE: 6.0, OPEN: 11.1}, paint={"Bots": 51.0, "Calls": 20.0}
    )

    assert [target.is_met for target in console_targets(results)] == [True, False, False, False]

"""The loop is measured with every step really made. No test asserts a time."""

from __future__ import annotations

from benchmarks.agent_loop import OURS, LoopResults, loop_tables, loop_targets, measure_loop


def test_every_size_is_measured_and_shown() -> None:
    results = LoopResults()
    measure_loop(results, quick=True)
    [table] = loop_tables(results)
    assert list(table.head) == ["loop", "2 tools", "10 tools"]
    assert table.rows[0][0] == OURS
    assert all(cost > 0 for cost in results.steps.values())


def test_the_best_of_all_rounds_is_kept() -> None:
    results = LoopResults()
    for cost in (300.0, 200.0, 250.0):
        results.add(OURS, 10, cost)
    results.add(OURS, 1000, 210.0)
    [target] = loop_targets(results)
    assert (target.found, target.is_met) == (1.05, True)

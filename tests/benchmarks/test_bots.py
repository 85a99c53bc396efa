"""The bots are measured beside a plain tool, and every answer is looked at. No test here asserts a time."""

from __future__ import annotations

from benchmarks.bot_growth import Growth, growth_targets
from benchmarks.bots import CALLS, PLAIN, BotResults, bot_tables, bot_targets, measure_bots


def test_every_kind_of_call_is_measured_and_answered_rightly():
    results = BotResults()
    measure_bots(results, 0.01, quick=True)

    calls, growth = bot_tables(results)
    assert [row[0] for row in calls.rows] == list(CALLS)
    assert [row[0] for row in growth.rows] == ["CPU", "memory of the server", "workflow_state.json"]
    assert len(list(bot_targets(results))) == len(CALLS) - 1 + 2


def test_a_close_that_costs_more_after_many_closes_misses_its_target():
    growth = Growth(
        cpu={("a bot", 100): 1.0, ("a bot", 100_000): 1.3}, memory={("a bot", 100): 1, ("a bot", 100_000): 1}
    )
    assert [target.is_met for target in growth_targets(growth)] == [False, True]


def test_a_call_that_takes_too_long_beyond_a_plain_one_misses_its_target():
    titles = list(CALLS)
    cpu = {(10_000, PLAIN): 1.0, (10_000, titles[1]): 5.9, (10_000, titles[2]): 6.1}

    assert [target.is_met for target in bot_targets(BotResults(cpu=cpu))] == [True, False]

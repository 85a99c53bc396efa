"""The bots are measured beside a plain tool, and every answer is looked at. No test here asserts a time."""

from __future__ import annotations

from benchmarks.bots import CALLS, PLAIN, BotResults, bot_tables, bot_targets, measure_bots


def test_every_kind_of_call_is_measured_and_answered_rightly():
    results = BotResults()
    measure_bots(results, 0.01, quick=True)

    [table] = bot_tables(results)
    assert [row[0] for row in table.rows] == list(CALLS)
    assert len(list(bot_targets(results))) == len(CALLS) - 1


def test_a_call_that_takes_too_long_beyond_a_plain_one_misses_its_target():
    titles = list(CALLS)
    cpu = {(10_000, PLAIN): 1.0, (10_000, titles[1]): 5.9, (10_000, titles[2]): 6.1}

    assert [target.is_met for target in bot_targets(BotResults(cpu=cpu))] == [True, False]

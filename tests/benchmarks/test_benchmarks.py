"""The benchmarks run, and say what they found. No test here asserts a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.measures import Cold, Load
from benchmarks.peers.known import FASTMCP, LOWLEVEL, MCPSERVER, PEERS, TRYSQUARE, is_there
from benchmarks.report import END, START, targets, write_page
from benchmarks.sections import Cell, Plan, Results, run_section
from tests.support import missing_component, size


@pytest.mark.parametrize("peer", PEERS)
def test_every_server_is_measured_in_every_way_and_answers_rightly(peer: str, tmp_path: Path):
    if not is_there(peer):
        missing_component("the TypeScript SDK", "run `make node`")
    plan = Plan(rounds=1, seconds=0.01, cold_tools=(1,), http_tools=(9,), callers=(2,))
    results = Results()
    sections = ("cold", "call", "call-modern", "memory", "http", "growth")
    for section in sections[: size(3, len(sections))] if peer != TRYSQUARE else sections:
        run_section(section, plan, [peer], results, tmp_path)

    assert results.cold[Cell(section="cold", peer=peer, tools=1)].cpu > 0
    assert results.rate[Cell(section="call", peer=peer, tools=9, callers=2)] > 0


def test_a_section_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(SystemExit, match="cold, call"):
        main(["nonsense", "--quick"])


def test_the_best_of_all_rounds_counts_each_figure_by_itself():
    results = Results()
    cell = Cell(section="call", peer=TRYSQUARE, tools=75, callers=1)
    for load in (Load(calls=100, seconds=1.0, cpu=0.5), Load(calls=100, seconds=2.0, cpu=0.4)):
        results.add_load(cell, load)
    results.add_cold(cell, Cold(cpu=10, wall=30))
    results.add_cold(cell, Cold(cpu=20, wall=20))

    assert (results.cpu[cell], results.rate[cell]) == (4000.0, 100.0)
    assert results.cold[cell] == Cold(cpu=10, wall=20)


def finished(factor: float) -> Results:
    """Results in which ours are the peers' times a factor."""
    results = Results()
    for peer in (LOWLEVEL, MCPSERVER, FASTMCP, TRYSQUARE):
        share = factor if peer == TRYSQUARE else 1.0
        results.add_cold(Cell(section="cold", peer=peer, tools=1000), Cold(cpu=1000 * share, wall=1000 * share))
        load = Load(calls=100, seconds=share, cpu=share)
        results.add_load(Cell(section="call", peer=peer, tools=75, callers=1), load)
        results.add_load(Cell(section="http", peer=peer, tools=1000, callers=1), load)
    for tools in (1, 1000):
        results.add_load(Cell(section="growth", peer=TRYSQUARE, tools=tools, callers=1), load)
    return results


def test_targets_are_met_or_missed_and_a_miss_is_said_plainly():
    good, bad = list(targets(finished(0.05))), list(targets(finished(2.0)))

    assert [target.is_met for target in good] == [True] * 6
    assert [target.is_met for target in bad] == [False] * 5 + [True]
    assert bad[0].row()[-1] == "**missed**"


def test_the_page_keeps_its_words_and_gets_new_figures(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{START}\nold figures\n{END}\nafter\n", encoding="utf-8")
    write_page(page, finished(0.5), Plan())
    text = page.read_text(encoding="utf-8")

    assert text.startswith(f"before\n{START}\n\nMade by `make bench`")
    assert text.endswith(f"{END}\nafter\n")
    assert "old figures" not in text
    assert "| SDK low-level + jsonschema |" in text


def test_a_section_with_markers_of_its_own_leaves_the_other_figures_alone(tmp_path: Path):
    page = tmp_path / "page.md"
    own = "<!-- figures of torture: start -->\nold\n<!-- figures of torture: end -->"
    page.write_text(f"{own}\n{START}\nother figures\n{END}\n", encoding="utf-8")
    write_page(page, finished(0.5), Plan(), ["torture"])
    text = page.read_text(encoding="utf-8")

    assert text.startswith("<!-- figures of torture: start -->\n\nMade by `python -m benchmarks torture`: each once")
    assert text.endswith(f"<!-- figures of torture: end -->\n{START}\nother figures\n{END}\n")
    assert "old\n" not in text

"""The benchmarks run, and say what they found. No test here asserts a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.measures import Cold, Load, cpu_seconds
from benchmarks.peers.known import (
    BARE,
    BASELINE,
    BASELINE_VARIABLE,
    FASTMCP,
    LOWLEVEL,
    MCPSERVER,
    PEERS,
    ROOT,
    TRYSQUARE,
    TYPESCRIPT,
    is_there,
    start_of,
)
from benchmarks.report import tables, write_pages
from benchmarks.sections import SECTIONS, Results, run_section
from benchmarks.servers import Cell, Plan, ServerResults
from benchmarks.tables import Target
from tests.support import missing_component, size

SERVERS = ("cold", "call", "call-modern", "http", "http-sessions", "growth")


@pytest.mark.parametrize("peer", PEERS)
def test_every_server_is_measured_in_every_way_and_answers_rightly(peer: str, tmp_path: Path):
    if not is_there(peer):
        missing_component("the TypeScript SDK", "run `make node`")
    plan = Plan(rounds=1, seconds=0.01, tools=(1,), call_tools=9, callers=(2,))
    results = Results()
    for section in SERVERS[: size(3, len(SERVERS))] if peer != TRYSQUARE else SERVERS:
        run_section(section, plan, [peer], results, tmp_path)

    assert results.servers.cold[Cell(section="cold", peer=peer, tools=1)].cpu > 0
    assert results.servers.rate[Cell(section="call", peer=peer, tools=9, callers=2)] > 0
    if peer == TRYSQUARE:
        for served in (peer, BARE):
            assert results.servers.rate[Cell(section="http-sessions", peer=served, tools=1, callers=2)] > 0


def test_a_section_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(SystemExit, match="cold, call"):
        main(["nonsense", "--quick"])


def test_the_cpu_of_a_process_counts_its_threads_also_those_that_have_ended():
    work = "import threading, time\ndef work():\n  while time.thread_time() < 0.2: pass"
    ends = "thread = threading.Thread(target=work); thread.start(); thread.join()"
    words = [sys.executable, "-c", f"{work}\n{ends}\nprint('ready', flush=True); input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        used = cpu_seconds(process.pid)
        process.communicate(b"\n")

    assert used >= 0.2
    with pytest.raises(OSError):
        cpu_seconds(process.pid)


def test_the_baseline_is_served_from_its_own_source_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(BASELINE_VARIABLE, "/checkout")

    ours, baseline = (start_of(peer, "stdio", 1, tmp_path) for peer in (TRYSQUARE, BASELINE))

    assert ours.environment["PYTHONPATH"].split(":")[0] == str(ROOT / "src")
    assert baseline.environment["PYTHONPATH"].split(":")[0] == "/checkout/src"
    assert baseline.command == ours.command


def test_the_best_of_all_rounds_counts_each_figure_by_itself():
    results = ServerResults()
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
    servers = results.servers
    for peer in (LOWLEVEL, MCPSERVER, FASTMCP, TYPESCRIPT, TRYSQUARE):
        share = factor if peer == TRYSQUARE else 1.0
        for tools in (75, 1000):
            servers.add_cold(Cell(section="cold", peer=peer, tools=tools), Cold(cpu=1000 * share, wall=1000 * share))
        load = Load(calls=100, seconds=share, cpu=share)
        servers.add_load(Cell(section="call", peer=peer, tools=75, callers=1), load)
        for section in ("http", "http-sessions"):
            servers.add_load(Cell(section=section, peer=peer, tools=1000, callers=1), load)
    for section in ("growth", "http", "http-sessions"):
        for tools in (1, 1000):
            servers.add_load(Cell(section=section, peer=TRYSQUARE, tools=tools, callers=1), load)
    return results


def targets(results: Results) -> list[Target]:
    return [target for section in SERVERS for target in SECTIONS[section].targets(results)]


def test_targets_are_met_or_missed_and_a_miss_is_said_plainly():
    good, bad = targets(finished(0.05)), targets(finished(2.0))

    assert [target.promise for target in good if not target.is_met] == []
    # How a call grows with the number of tools is compared with our own calls, which are all the same here.
    assert [target.promise for target in bad if target.is_met] == [
        "CPU a call over HTTP, 2026-07-28, 1000 tools to 1 tool",
        "CPU a call over HTTP, 2025-11-25, 1000 tools to 1 tool",
        "CPU a call over stdio, 1000 tools to 1 tool",
    ]
    assert bad[0].row()[-1] == "**missed**"


def test_every_target_of_a_call_stands_beside_its_ratio():
    shown = {table.title: table.rows for table in tables(finished(0.5), ["call", "http-sessions"])}

    cells = {row[0]: row[1] for row in shown["Calls over stdio, 2025-11-25 (handshake), 75 tools"]}
    assert cells["TypeScript SDK"].endswith("(0.50, target 0.6)")
    assert cells["SDK MCPServer"].endswith("(0.50)")
    assert "Targets" in shown


def test_a_page_keeps_its_words_and_gets_the_figures_of_the_sections_that_were_run(tmp_path: Path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    both = "<!-- figures of cold call: start -->\nold\n<!-- figures of cold call: end -->"
    torture = "<!-- figures of torture: start -->\nold\n<!-- figures of torture: end -->"
    page.write_text(f"before\n{both}\nbetween\n{torture}\nafter\n", encoding="utf-8")
    # It was asked for, and what it measures is not installed.
    local = "<!-- figures of local: start -->\nold\n<!-- figures of local: end -->"
    other.write_text(f"other\n{torture}\n{local}\n", encoding="utf-8")

    written = write_pages([page, other], finished(0.5), Plan(), ["cold", "call", "http", "local"])

    text = page.read_text(encoding="utf-8")
    assert written == [page]
    assert text.startswith(
        "before\n<!-- figures of cold call: start -->\n\n"
        "Made by `python -m benchmarks cold call --rounds 5 --seconds 1.5 --write`: best of 5 interleaved rounds"
    )
    assert text.endswith(f"\n\n<!-- figures of cold call: end -->\nbetween\n{torture}\nafter\n")
    assert "| SDK low-level + jsonschema |" in text
    assert "Calls over HTTP" not in text


def test_every_section_has_a_place_on_a_page():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("benchmarks*.md"))
    placed = {name for part in pages.split("<!-- figures of ")[1:] for name in part.split(":")[0].split()}

    assert placed == set(SECTIONS)

"""What the weights of search are learned from never holds what is measured, and learning takes the best of its grid."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.search_training import TrainingSet, is_held_out, read_training
from benchmarks.tune_search import RANKING, START, climb, learn
from tests.gateway.requests.reading import read_other_requests, read_requests
from trysquare.search import Weights

_ASKED = [f"please roll {count} dice for me" for count in range(40)]


def _clone(sources: Path) -> None:
    """A clone of MetaTool as it stands on GitHub, with one tool."""
    folder = sources / "MetaTool" / "dataset"
    (folder / "data").mkdir(parents=True)
    (folder / "plugin_des.json").write_text(json.dumps({"Dice": "Rolls dice."}), encoding="utf-8")
    (folder / "big_tool_des.json").write_text("{}", encoding="utf-8")
    rows = "".join(f"{request},Dice\n" for request in _ASKED)
    (folder / "data" / "all_clean_data.csv").write_text(f"Query,Tool\n{rows}unknown,Nobody\n", encoding="utf-8")
    several = [{"query": "dice and nobody", "tool": ["Dice", "Nobody"]}, {"query": "dice", "tool": ["Dice"]}]
    (folder / "data" / "multi_tool_query_golden.json").write_text(json.dumps(several), encoding="utf-8")


def _measure(folder: Path, request: str) -> None:
    folder.mkdir()
    (folder / "set.tools.jsonl").write_text('{"server": "plugins", "name": "Dice"}\n', encoding="utf-8")
    line = json.dumps({"query": request, "tools": ["plugins.Dice"]})
    (folder / "set.queries.jsonl").write_text(f"{line}\n", encoding="utf-8")


def test_nothing_that_is_measured_is_learned_from(tmp_path: Path) -> None:
    _clone(tmp_path)
    kept = [request for request in _ASKED if not is_held_out(request)]
    assert 0 < len(kept) < len(_ASKED)
    _measure(tmp_path / "measured", kept[0])
    found = {one.name: one for one in read_training(tmp_path, tmp_path / "measured")}
    assert {query for query, _ in found["MetaTool"].asked} == set(kept[1:])
    learned = {query for one in found.values() for query, _ in one.asked}
    learned |= {query for one in found.values() for query in one.unanswerable}
    measured = {one.text for one in read_requests() if one.is_held_out} | {one.text for one in read_other_requests()}
    assert not learned & measured


def test_the_same_training_parts_have_the_same_digest(tmp_path: Path) -> None:
    _clone(tmp_path)
    first, again = ([one.digest for one in read_training(tmp_path, None)] for _ in range(2))
    assert first == again
    assert len(set(first)) == len(first)


def test_climbing_takes_the_best_value_of_each_weight() -> None:
    wanted = {"name": 0.7, "words": 0.15, "words_per_part": 0.06, "most_words": 0.4}

    def nearness(weights: Weights) -> float:
        return -sum(abs(getattr(weights, name) - value) for name, value in wanted.items())

    found = climb(START, RANKING, nearness)
    assert {name: getattr(found, name) for name in wanted} == wanted


def test_without_an_encoder_only_what_concerns_words_is_learned() -> None:
    [everyday, keyword] = read_training(None, None)
    few = TrainingSet(
        name="few", entries=everyday.entries, asked=keyword.asked[:5], unanswerable=everyday.unanswerable[:5]
    )
    weights = learn([few], None, None)
    assert weights.likely == START.likely

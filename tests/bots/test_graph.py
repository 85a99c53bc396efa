"""The story graph: its schema, its invariants, and its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bots.graph_strategies import graphs
from tests.support import size
from trysquare.bots.documents.store import load_document, save_document
from trysquare.bots.documents.story import StoryGraph
from trysquare.bots.graph import GraphConflict, line_numbers, problems_of, walk
from trysquare.core.errors import InvalidArguments
from trysquare.files.root import DirectoryRoot

MANY = settings(max_examples=size(60, 1000), deadline=None)


def kitchen() -> dict[str, Any]:
    return {
        "schema": 1,
        "product": "Family Table",
        "epics": [
            {
                "name": "Plan the week",
                "sub_epics": [
                    {
                        "name": "Choose recipes",
                        "stories": [
                            {
                                "name": "Cook excludes an ingredient",
                                "acceptance_criteria": [{"when": "walnuts are excluded", "then": "none is suggested"}],
                            },
                            {"name": "Cook picks seven recipes"},
                        ],
                    }
                ],
            },
            {"name": "Shop", "stories": [{"name": "Cook prints the list"}]},
        ],
        "increments": [{"name": "By hand", "stories": ["Cook picks seven recipes", "Cook prints the list"]}],
    }


@pytest.mark.parametrize(
    ("epic", "message"),
    [
        ({"name": "Cook", "stories": [{"name": "Cook prints the list"}]}, "two stories"),
        ({"name": "Shop"}, "2 times"),
        ({"name": " "}, "does not match"),
    ],
)
def test_duplicate_and_empty_names_are_problems(epic: dict[str, Any], message: str) -> None:
    graph = kitchen()
    graph["epics"].append(epic)
    assert message in problems_of(graph)[0].message


def test_an_increment_with_an_unknown_story_is_a_problem_with_its_place() -> None:
    graph = kitchen()
    graph["increments"][0]["stories"].append("Cook flies")
    (problem,) = (str(each) for each in problems_of(graph))
    assert problem.startswith("/increments/0/stories/2: ")
    assert "`By hand`" in problem
    assert "`Cook flies`" in problem


@MANY
@given(graphs())
def test_every_drawn_graph_keeps_the_schema(graph: dict[str, Any]) -> None:
    assert problems_of(graph) == []


@MANY
@given(graphs(), st.sampled_from([None, 0, 1, 2]))
def test_each_value_is_on_the_line_that_is_named(graph: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(graph, indent=indent)
    found = line_numbers(text)
    lines = text.splitlines()
    for node in walk(graph):
        if node.kind in ("story", "epic", "sub_epic"):
            assert json.dumps(node.name) in lines[found[(*node.pointer, "name")] - 1]
            assert node.pointer in found


def test_a_graph_is_written_only_over_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(kitchen()), encoding="utf-8")
    with DirectoryRoot(tmp_path) as folder:
        first = load_document(folder, "graph.json", StoryGraph())
        assert first.value == kitchen()
        save_document(folder, first, StoryGraph(), kitchen() | {"product": "Kitchen"})
        with pytest.raises(GraphConflict, match="changed meanwhile"):
            save_document(folder, first, StoryGraph(), kitchen())
        assert load_document(folder, "graph.json", StoryGraph()).value["product"] == "Kitchen"


def test_a_broken_graph_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n "epics": [\n  {"name": 3}\n ]\n}', encoding="utf-8")
    (tmp_path / "b.json").write_text('{\n "epics": [,]\n}', encoding="utf-8")
    with DirectoryRoot(tmp_path) as folder:
        with pytest.raises(InvalidArguments, match=r"a\.json .*line 3"):
            load_document(folder, "a.json", StoryGraph())
        with pytest.raises(InvalidArguments, match=r"b\.json:2: this is not JSON"):
            load_document(folder, "b.json", StoryGraph())

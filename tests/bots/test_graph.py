"""The story graph: its schema, its edits, and its file."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bots.graph_strategies import graphs
from tests.support import size
from trysquare.bots.graph.edits import LargeDeletion, create, delete, move, rename
from trysquare.bots.graph.file import GraphChanged, load_graph, save_graph
from trysquare.bots.graph.lines import line_numbers
from trysquare.bots.graph.merging import merge
from trysquare.bots.graph.nodes import Graph, Node, all_stories, walk
from trysquare.bots.graph.schema import problems_of
from trysquare.core.errors import InvalidArguments, NotFound, ToolError
from trysquare.files.sealed_folder import SealedFolder

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


CHOOSE = ("Plan the week", "Choose recipes")


def names(graph: Graph) -> Counter[tuple[str, str]]:
    return Counter((node.kind.removeprefix("sub_"), node.name) for node in walk(graph) if node.kind != "graph")


def test_a_story_is_created_where_it_is_asked_for() -> None:
    made = create(kitchen(), CHOOSE, "story", {"name": "Cook takes a suggestion"}, position=1)
    below = made["epics"][0]["sub_epics"][0]["stories"]
    assert [story["name"] for story in below][1] == "Cook takes a suggestion"


def test_increments_follow_a_story_to_its_new_name() -> None:
    made = rename(kitchen(), (*CHOOSE, "Cook picks seven recipes"), "Cook picks recipes")
    assert made["increments"][0]["stories"] == ["Cook picks recipes", "Cook prints the list"]


def test_a_moved_epic_becomes_a_sub_epic_and_back() -> None:
    inside = move(kitchen(), ("Shop",), ("Plan the week",))
    assert [node.kind for node in walk(inside) if node.name == "Shop"] == ["sub_epic"]
    back = move(inside, ("Plan the week", "Shop"), ())
    assert names(back) == names(kitchen())


def test_a_node_cannot_be_moved_below_itself() -> None:
    with pytest.raises(InvalidArguments, match="below itself"):
        move(kitchen(), ("Plan the week",), CHOOSE)


def test_a_deleted_story_leaves_its_increments() -> None:
    made = delete(kitchen(), ("Shop", "Cook prints the list"))
    assert made["increments"][0]["stories"] == ["Cook picks seven recipes"]


def test_a_large_deletion_says_what_goes_and_needs_confirmation() -> None:
    with pytest.raises(LargeDeletion) as refused:
        delete(kitchen(), ("Plan the week",))
    assert refused.value.fields["count"] == 5
    assert "Plan the week > Choose recipes > Cook picks seven recipes" in refused.value.fields["removes"]
    assert not [n for n in walk(delete(kitchen(), ("Plan the week",), confirm=True)) if n.name == "Choose recipes"]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda g: create(g, CHOOSE, "story", {"name": "Cook prints the list"}), "two stories"),
        (lambda g: create(g, (), "epic", {"name": "Shop"}), "2 times"),
        (lambda g: create(g, CHOOSE, "story", {"name": " "}), "does not match"),
        (lambda g: create(g, CHOOSE, "epic", {"name": "x"}), "stands below graph"),
        (lambda g: rename(g, ("Shop", "Cook prints the list"), "Cook picks seven recipes"), "two stories"),
        (lambda g: rename(g, ("Shopp",), "x"), "no node `Shopp`"),
    ],
)
def test_an_edit_that_would_break_the_graph_is_refused_and_changes_nothing(edit: Any, said: str) -> None:
    graph = kitchen()
    with pytest.raises(ToolError, match=said):
        edit(graph)
    assert graph == kitchen()


def test_the_nearest_name_is_offered_for_one_that_is_not_there() -> None:
    with pytest.raises(NotFound) as missing:
        delete(kitchen(), ("Shop", "Cook print the list"))
    assert missing.value.instruction is not None
    assert "`Cook prints the list`" in missing.value.instruction


def test_an_increment_with_an_unknown_story_is_a_problem_with_its_place() -> None:
    graph = kitchen()
    graph["increments"][0]["stories"].append("Cook flies")
    assert [str(each) for each in problems_of(graph)] == [
        "/increments/0/stories/2: The increment `By hand` names the story `Cook flies`; the map has none."
    ]


@MANY
@given(graphs())
def test_every_drawn_graph_keeps_the_schema(graph: dict[str, Any]) -> None:
    assert problems_of(graph) == []


def addresses(graph: Graph, *kinds: str) -> list[Node]:
    return [node for node in walk(graph) if node.kind in kinds]


@MANY
@given(graphs(), st.data())
def test_edits_keep_the_schema_and_leave_the_given_graph_as_it_is(graph: dict[str, Any], data: st.DataObject) -> None:
    nodes = addresses(graph, "epic", "sub_epic", "story", "scenario", "criterion")
    if not nodes:
        return
    before = copy.deepcopy(graph)
    node = data.draw(st.sampled_from(nodes))
    assert problems_of(delete(graph, node.address, confirm=True)) == []
    assert problems_of(rename(graph, node.address, "An entirely new name")) == []
    assert graph == before


@MANY
@given(graphs(), st.data())
def test_a_move_loses_nothing_and_adds_nothing(graph: dict[str, Any], data: st.DataObject) -> None:
    movable = addresses(graph, "epic", "sub_epic", "story")
    if not movable:
        return
    node = data.draw(st.sampled_from(movable))
    targets = addresses(graph, "epic", "sub_epic") + ([] if node.kind == "story" else addresses(graph, "graph"))
    target = data.draw(st.sampled_from(targets))
    if target.address[: len(node.address)] == node.address:
        return
    moved = move(graph, node.address, target.address, position=data.draw(st.integers(0, 3)))
    assert names(moved) == names(graph)
    assert problems_of(moved) == []


@MANY
@given(graphs())
def test_a_merge_with_itself_changes_nothing(graph: dict[str, Any]) -> None:
    for replace in (False, True):
        merged = merge(graph, graph, replace=replace)
        assert merged.graph == graph
        assert (merged.added, merged.changed, merged.removed) == ((), (), ())


@MANY
@given(graphs(), graphs())
def test_a_merge_loses_no_node_unless_it_replaces(graph: dict[str, Any], other: dict[str, Any]) -> None:
    try:
        merged = merge(graph, other).graph
    except InvalidArguments:
        return  # the two name one story in two places
    known = {(node.kind, node.address) for node in walk(merged)}
    assert {(node.kind, node.address) for node in walk(graph) if node.kind not in ("step", "scenario")} <= known


def test_a_partial_graph_adds_details_and_keeps_the_rest() -> None:
    criterion = {"when": "a recipe is missing", "then": "the cook is told"}
    incoming: dict[str, Any] = {
        "epics": [
            {
                "name": "Plan the week",
                "sub_epics": [
                    {
                        "name": "Choose recipes",
                        "stories": [{"name": "Cook excludes an ingredient", "acceptance_criteria": [criterion]}],
                    }
                ],
            }
        ]
    }
    merged = merge(kitchen(), incoming)
    assert merged.added == (
        "criterion Plan the week > Choose recipes > Cook excludes an ingredient > a recipe is missing",
    )
    assert len(all_stories(merged.graph)) == 3


def test_a_replacing_merge_warns_before_it_removes_much() -> None:
    with pytest.raises(LargeDeletion, match="removes 8 nodes"):
        merge(kitchen(), {"epics": []}, replace=True)
    assert merge(kitchen(), {"epics": [], "increments": []}, replace=True, confirm=True).graph["epics"] == []


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
    with SealedFolder(tmp_path) as folder:
        first = save_graph(folder, "docs/graph.json", kitchen(), expected_digest=None)
        assert load_graph(folder, "docs/graph.json").graph == kitchen()
        save_graph(folder, "docs/graph.json", rename(kitchen(), ("Shop",), "Buy"), expected_digest=first.digest)
        with pytest.raises(GraphChanged):
            save_graph(folder, "docs/graph.json", kitchen(), expected_digest=first.digest)
        assert load_graph(folder, "docs/graph.json").graph["epics"][1]["name"] == "Buy"


def test_a_broken_graph_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n "epics": [\n  {"name": 3}\n ]\n}', encoding="utf-8")
    (tmp_path / "b.json").write_text('{\n "epics": [,]\n}', encoding="utf-8")
    with SealedFolder(tmp_path) as folder:
        with pytest.raises(InvalidArguments, match=r"a\.json is no story graph: line 3"):
            load_graph(folder, "a.json")
        with pytest.raises(InvalidArguments, match=r"b\.json:2: this is not JSON"):
            load_graph(folder, "b.json")

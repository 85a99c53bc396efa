"""Views: a story graph as templates see it, with the lists that a tree of any depth is flattened into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trysquare.bots.graph.nodes import Graph, Node, children, stories_of
from trysquare.core.types import JsonObject

_DEEPEST_HEADING = 6


def view_of(graph: Graph) -> JsonObject:
    """The values of a template: the graph's own, `outline` (every epic and sub-epic) and `stories` (every story)."""
    outline = _outline(graph)
    return {
        **graph,
        "increments": [_increment(each, index) for index, each in enumerate(in_priority(graph))],
        "outline": outline,
        "stories": [story for section in outline for story in section["stories"]],
    }


def in_priority(graph: Graph) -> list[Mapping[str, Any]]:
    """The increments in the order of their priorities; those without one come last."""
    return sorted(graph.get("increments") or (), key=lambda each: _order(each.get("priority")))


def in_order(stories: list[Node]) -> list[Node]:
    """Stories in the order in which they happen; those without a number come last."""
    return sorted(stories, key=lambda each: _order(each.value.get("sequential_order")))


def _order(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else float("inf")


def _increment(increment: Mapping[str, Any], index: int) -> JsonObject:
    return {**increment, "number": index + 1, "stories": list(increment.get("stories", ()))}


def _outline(graph: Graph) -> list[JsonObject]:
    top = Node(kind="graph", value=graph, pointer=(), address=())
    return [each for epic in children(top) for each in _sections(epic)]


def _sections(epic: Node) -> list[JsonObject]:
    depth = len(epic.address)
    stories = in_order(stories_of(epic))
    section: JsonObject = {
        **epic.value,
        "heading": "#" * min(_DEEPEST_HEADING, depth + 1),
        "depth": depth,
        "path": " > ".join(epic.address),
        "stories": [_story(story, index) for index, story in enumerate(stories)],
    }
    below = [each for child in children(epic) if child.kind == "sub_epic" for each in _sections(child)]
    return [section, *below]


def _story(story: Node, index: int) -> JsonObject:
    return {
        # Names that a story may lack must not be found further out.
        **dict.fromkeys(
            ("users", "acceptance_criteria", "scenarios", "test_file", "code_files", "connector", "outcome")
        ),
        **story.value,
        "scenarios": [
            {"test_method": None, "type": None, "steps": [], **each, "number": number + 1}
            for number, each in enumerate(story.value.get("scenarios") or ())
        ],
        "number": index + 1,
        "epic": " > ".join(story.address[:-1]),
    }

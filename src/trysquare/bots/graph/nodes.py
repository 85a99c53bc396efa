"""Nodes: the parts of a story graph, with where they stand in the document and among one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Graph: TypeAlias = Mapping[str, Any]
"""A story graph as JSON. Edits make a new one and leave the old one as it is."""

Kind: TypeAlias = Literal["graph", "epic", "sub_epic", "story", "increment", "criterion", "scenario", "step"]
Pointer: TypeAlias = tuple[str | int, ...]
Address: TypeAlias = tuple[str, ...]
"""A node by names from the top: `("Plan the week", "Choose recipes", "Cook picks seven recipes")`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One part of a graph."""

    kind: Kind
    value: Any
    pointer: Pointer
    address: Address

    @property
    def name(self) -> str:
        """What the node is called; of a criterion, its event."""
        return self.address[-1] if self.address else ""


def walk(graph: Graph) -> Iterator[Node]:
    """Every node in the order of the document, the graph itself first."""
    top = Node(kind="graph", value=graph, pointer=(), address=())
    yield top
    for epic in children(top):
        yield from _walk_epic(epic)
    yield from increments(graph)


def increments(graph: Graph) -> list[Node]:
    """The increments, in their order."""
    return _listed(Node(kind="graph", value=graph, pointer=(), address=()), "increments", "increment")


def children(node: Node) -> list[Node]:
    """The epics of a graph, or the sub-epics and stories of an epic, through its story groups."""
    if node.kind == "graph":
        return _listed(node, "epics", "epic")
    if node.kind not in ("epic", "sub_epic"):
        return []
    return [*_listed(node, "sub_epics", "sub_epic"), *stories_of(node)]


def stories_of(node: Node) -> list[Node]:
    """The stories directly below an epic, those in story groups too."""
    found = _listed(node, "stories", "story")
    for index, group in enumerate(node.value.get("story_groups", ())):
        for place, story in enumerate(group.get("stories", ())):
            pointer = (*node.pointer, "story_groups", index, "stories", place)
            found.append(Node(kind="story", value=story, pointer=pointer, address=(*node.address, _name(story))))
    return found


def all_stories(graph: Graph) -> list[Node]:
    """Every story of the map."""
    return [node for node in walk(graph) if node.kind == "story"]


def _walk_epic(epic: Node) -> Iterator[Node]:
    yield epic
    for child in children(epic):
        yield from _walk_epic(child) if child.kind == "sub_epic" else _walk_story(child)


def _walk_story(story: Node) -> Iterator[Node]:
    yield story
    yield from _listed(story, "acceptance_criteria", "criterion")
    for scenario in _listed(story, "scenarios", "scenario"):
        yield scenario
        for index, step in enumerate(scenario.value.get("steps", ())):
            pointer = (*scenario.pointer, "steps", index)
            yield Node(kind="step", value=step, pointer=pointer, address=(*scenario.address, str(step)))


def _listed(parent: Node, key: str, kind: Kind) -> list[Node]:
    return [
        Node(kind=kind, value=each, pointer=(*parent.pointer, key, index), address=(*parent.address, _name(each)))
        for index, each in enumerate(parent.value.get(key) or ())
    ]


def _name(value: Mapping[str, Any]) -> str:
    return str(value.get("name", value.get("when", "")))

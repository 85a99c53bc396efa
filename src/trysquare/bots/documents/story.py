"""The story graph as a document type: epics, stories and increments, with story maps and a merge that follows names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from trysquare.bots.documents.base import Chosen, DocumentType, Node
from trysquare.bots.documents.edits import Edits, Merged, Problem, with_problems
from trysquare.bots.graph import GRAPH_SCHEMA, Graph, problems_of, refuse_large, walk
from trysquare.bots.graph import Node as GraphNode
from trysquare.bots.rendering.merge import NodeMerge, merge_graph
from trysquare.bots.rendering.pages import story_map_html, story_map_svg
from trysquare.bots.rendering.template import Record, view_of
from trysquare.core.json import JsonObject, definition_ref

NODE_KINDS = ("graph", "epic", "sub_epic", "story", "increment", "criterion", "scenario", "step")
BUILDERS: Mapping[str, Callable[[Graph], str]] = {"story_map_svg": story_map_svg, "story_map_html": story_map_html}
_SEPARATOR = " > "
_SCOPE_KINDS = {"epic": "epic", "sub_epic": "epic", "story": "story", "increment": "increment"}
_TEXT: JsonObject = {"type": "string"}


@dataclass(frozen=True, kw_only=True)
class StoryGraph(DocumentType):
    """A story map with its stories' details."""

    targets: ClassVar[tuple[str, ...]] = NODE_KINDS
    builders: ClassVar[tuple[str, ...]] = tuple(BUILDERS)

    name: str = "story_graph"

    def problems(self, value: Any) -> Iterable[Problem]:
        return [(each.pointer, each.message) for each in problems_of(value)]

    def select(self, kind: str, value: Any) -> Iterable[Node]:
        nodes = (node for node in walk(value) if node.kind == kind)
        return [(node.pointer, node.value, _SEPARATOR.join(node.address)) for node in nodes]

    def choose(self, wanted: Mapping[str, tuple[str, ...]], value: Any) -> Chosen:
        """The nodes of a scope, and the stories of its increments."""
        nodes = list(walk(value))
        given = [(kind, name) for kind, names in wanted.items() for name in names]
        increments = [each for each in nodes if each.kind == "increment" and ("increment", each.name) in given]
        names = {*given, *(("story", str(name)) for each in increments for name in each.value.get("stories", ()))}
        selected = [each for each in nodes if (_SCOPE_KINDS.get(each.kind), each.name) in names]
        roots = [each.address for each in selected if each.kind != "increment"]
        stories = [
            each for each in nodes if each.kind == "story" and any(each.address[: len(root)] == root for root in roots)
        ]
        known = {(_SCOPE_KINDS[each.kind], each.name) for each in selected}
        return Chosen(
            paths=tuple(_SEPARATOR.join(each.address) for each in selected),
            files=tuple(dict.fromkeys(file for story in stories for file in _files_of(story))),
            unknown=tuple(f"{kind} `{name}`" for kind, name in given if (kind, name) not in known),
        )

    def value_schema(self) -> JsonObject:
        return GRAPH_SCHEMA

    def view(self, value: Any) -> JsonObject:
        return view_of(value)

    def view_schema(self) -> JsonObject:
        return _VIEW

    def build(self, builder: str, value: Any) -> str:
        return BUILDERS[builder](value)

    def merge(self, value: Any, edits: Edits, current: Record) -> Merged:
        made: JsonObject = copy.deepcopy(dict(value))
        nodes = {id(node.value): node for node in walk(made) if node.kind not in ("step", "graph")}
        merge = NodeMerge()
        merge_graph(made, edits.before, edits.after, merge)
        done = Merged(value=made, changes=tuple(merge.changes), conflicts=tuple(merge.conflicts))
        checked = with_problems(done, self.problems(made), value)
        if checked is done and not edits.confirmed:
            present = {id(node.value) for node in walk(made)}
            lost = [node for key, node in nodes.items() if key not in present]
            refuse_large("the edited file", lost, from_count=edits.confirm_from)
        return checked


def _files_of(story: GraphNode) -> list[str]:
    files = [story.value.get("test_file"), *(story.value.get("code_files") or ())]
    return [file for file in files if isinstance(file, str) and file]


def _view_schema() -> JsonObject:
    """The schema of a graph with what its view adds."""
    made: JsonObject = copy.deepcopy(GRAPH_SCHEMA)
    definitions, top = made["$defs"], made["properties"]
    number: JsonObject = {"type": "number"}
    definitions["scenario"]["properties"] |= {"number": number}
    definitions["story"]["properties"] |= {"number": number, "epic": _TEXT, "outcome": _TEXT}
    definitions["increment"]["properties"] |= {"number": number}
    section = {**definitions["epic"]["properties"], "heading": _TEXT, "depth": number, "path": _TEXT}
    definitions["section"] = {"type": "object", "properties": section}
    top |= {
        "outline": {"type": "array", "items": definition_ref("section")},
        "stories": {"type": "array", "items": definition_ref("story")},
    }
    return made


_VIEW = _view_schema()

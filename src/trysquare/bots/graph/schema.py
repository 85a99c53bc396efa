"""The schema of a story graph: what the document may hold, and what must be true of it beyond its shape.

A graph is open for keys that it does not know, so that a team can keep notes of its own in it; what it does know has
one meaning. Story names are unique in the whole graph because increments and rendered files refer to stories by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from trysquare.bots.graph.nodes import Graph, children, walk
from trysquare.core.types import JsonObject

_TEXT: JsonObject = {"type": "string"}
_NAME: JsonObject = {"type": "string", "minLength": 1, "maxLength": 300, "pattern": r"\S"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}


def _object(required: list[str], **properties: JsonObject) -> JsonObject:
    return {"type": "object", "required": required, "properties": properties}


def _list_of(definition: str) -> JsonObject:
    return {"type": "array", "items": {"$ref": f"#/$defs/{definition}"}}


_TABLE = _object(["columns", "rows"], name=_TEXT, columns=_TEXTS, rows={"type": "array", "items": {"type": "array"}})
_BELOW = {"stories": _list_of("story"), "story_groups": _list_of("story_group"), "sub_epics": _list_of("epic")}

GRAPH_SCHEMA: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Story graph",
    **_object(
        ["epics"],
        schema={"const": 1},
        product=_TEXT,
        goal=_TEXT,
        epics=_list_of("epic"),
        increments=_list_of("increment"),
    ),
    "$defs": {
        "epic": _object(["name"], name=_NAME, outcome=_TEXT, **_BELOW),
        "story_group": _object(["stories"], type={"enum": ["and", "or"]}, connector=_TEXT, stories=_list_of("story")),
        "story": _object(
            ["name"],
            name=_NAME,
            users=_TEXTS,
            story_type={"enum": ["user", "system", "technical"]},
            sequential_order={"type": "number"},
            connector={"enum": ["then", "and", "or"]},
            behavior=_TEXT,
            acceptance_criteria=_list_of("criterion"),
            scenarios=_list_of("scenario"),
            test_file=_TEXT,
            test_class=_TEXT,
            code_files=_TEXTS,
            context_source=_TEXTS,
        ),
        "criterion": _object(["when", "then"], when=_TEXT, then=_TEXT),
        "scenario": _object(
            ["name"],
            name=_NAME,
            type={"enum": ["main", "alternative", "error"]},
            steps=_TEXTS,
            examples={"type": "array", "items": _TABLE},
            test_method=_TEXT,
        ),
        "increment": _object(["name"], name=_NAME, outcome=_TEXT, priority={"type": "number"}, stories=_TEXTS),
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphProblem:
    """Something that a story graph may not be."""

    pointer: tuple[str | int, ...]
    """Where it is, key by key from the top of the document."""
    message: str

    def __str__(self) -> str:
        return f"/{'/'.join(str(piece) for piece in self.pointer)}: {self.message}"


def problems_of(graph: Any) -> list[GraphProblem]:
    """Everything that is wrong with a graph: its shape first, and if that holds, what refers to what."""
    found = [
        GraphProblem(pointer=tuple(error.absolute_path), message=error.message[:300])
        for error in schema_errors(GRAPH_SCHEMA, graph)
    ]
    return found or list(_broken_promises(graph))


def schema_errors(schema: JsonObject, value: Any) -> Iterable[Any]:
    """The errors of a JSON Schema check, in order of their place."""
    errors = _validator_class()(schema).iter_errors(value)
    return sorted(errors, key=lambda error: [str(piece) for piece in error.absolute_path])


def first_error(schema: JsonObject, value: Any) -> str | None:
    """What a JSON Schema has against a value, with its place, or None."""
    for error in schema_errors(schema, value):
        place = "/".join(str(piece) for piece in error.absolute_path)
        return f"{place}: {error.message}"[:200] if place else error.message[:200]
    return None


@cache
def _validator_class() -> Any:
    # Imported late: it takes longer than most commands do.
    from jsonschema import Draft202012Validator

    return Draft202012Validator


def _broken_promises(graph: Graph) -> Iterator[GraphProblem]:
    yield from _twins_among_siblings(graph)
    stories: dict[str, tuple[str | int, ...]] = {}
    for node in walk(graph):
        if node.kind == "story":
            if node.name in stories:
                yield GraphProblem(pointer=node.pointer, message=f"There are two stories named `{node.name}`.")
            stories[node.name] = node.pointer
    for index, increment in enumerate(graph.get("increments", ())):
        for place, name in enumerate(increment.get("stories", ())):
            if name not in stories:
                yield GraphProblem(
                    pointer=("increments", index, "stories", place),
                    message=f"The increment `{increment['name']}` names the story `{name}`; the map has none.",
                )


def _twins_among_siblings(graph: Graph) -> Iterator[GraphProblem]:
    yield from _twins([each["name"] for each in graph["epics"]], ("epics",))
    yield from _twins([each["name"] for each in graph.get("increments", ())], ("increments",))
    for node in walk(graph):
        if node.kind in ("epic", "sub_epic"):
            yield from _twins([child.name for child in children(node)], node.pointer)
        if node.kind == "story":
            scenarios = [each["name"] for each in node.value.get("scenarios", ())]
            yield from _twins(scenarios, (*node.pointer, "scenarios"))


def _twins(names: list[str], pointer: tuple[str | int, ...]) -> Iterator[GraphProblem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield GraphProblem(pointer=pointer, message=f"The name `{name}` stands here {count} times.")

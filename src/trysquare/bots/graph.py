"""Story graph: nodes, schema, invariants, and its file with line numbers."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from trysquare.core.errors import ErrorCode, NotFound, ToolError, require_extra
from trysquare.core.json import JsonObject, definition_ref
from trysquare.files.root import DirectoryRoot

Graph: TypeAlias = Mapping[str, Any]
"""A story graph as JSON; never changed in place."""

Kind: TypeAlias = Literal["graph", "epic", "sub_epic", "story", "increment", "criterion", "scenario", "step"]
Pointer: TypeAlias = tuple[str | int, ...]
Address: TypeAlias = tuple[str, ...]
"""Names from the top: `("Plan the week", "Choose recipes", "Cook picks seven recipes")`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    kind: Kind
    value: Any
    pointer: Pointer
    address: Address

    @property
    def name(self) -> str:
        return self.address[-1] if self.address else ""


def top_node(value: Graph, kind: Kind = "graph") -> Node:
    """The graph itself as a node, or an epic without its place."""
    return Node(kind=kind, value=value, pointer=(), address=())


def walk(graph: Graph) -> Iterator[Node]:
    """Every node in document order, the graph itself first."""
    top = top_node(graph)
    yield top
    for epic in children(top):
        yield from _walk_epic(epic)
    yield from _child_nodes(top, "increments", "increment")


def children(node: Node) -> list[Node]:
    """The epics of a graph, or the sub-epics and stories of an epic."""
    if node.kind == "graph":
        return _child_nodes(node, "epics", "epic")
    if node.kind not in ("epic", "sub_epic"):
        return []
    return [*_child_nodes(node, "sub_epics", "sub_epic"), *stories_of(node)]


def stories_of(node: Node) -> list[Node]:
    """The stories directly below an epic, including those in story groups."""
    found = _child_nodes(node, "stories", "story")
    for index, group in enumerate(node.value.get("story_groups", ())):
        inside = replace(node, value=group, pointer=(*node.pointer, "story_groups", index))
        found += _child_nodes(inside, "stories", "story")
    return found


def all_stories(graph: Graph) -> list[Node]:
    return [node for node in walk(graph) if node.kind == "story"]


def _walk_epic(epic: Node) -> Iterator[Node]:
    yield epic
    for child in children(epic):
        yield from _walk_epic(child) if child.kind == "sub_epic" else _walk_story(child)


def _walk_story(story: Node) -> Iterator[Node]:
    yield story
    yield from _child_nodes(story, "acceptance_criteria", "criterion")
    for scenario in _child_nodes(story, "scenarios", "scenario"):
        yield scenario
        for index, step in enumerate(scenario.value.get("steps", ())):
            pointer = (*scenario.pointer, "steps", index)
            yield Node(kind="step", value=step, pointer=pointer, address=(*scenario.address, str(step)))


def _child_nodes(parent: Node, key: str, kind: Kind) -> list[Node]:
    return [
        Node(kind=kind, value=each, pointer=(*parent.pointer, key, index), address=(*parent.address, _name(each)))
        for index, each in enumerate(parent.value.get(key) or ())
    ]


def _name(value: Mapping[str, Any]) -> str:
    return str(value.get("name", value.get("when", "")))


LARGE = 5
"""A deletion of this many nodes has to be confirmed."""


class GraphConflict(ToolError):
    """A change that would lose something of the graph or of its files."""

    default_code = ErrorCode.STATE_CONFLICT


def refuse_large(what: str, lost: list[Node], *, from_count: int = LARGE) -> None:
    """Refuse an unconfirmed deletion of many nodes."""
    if len(lost) < from_count:
        return
    counts = Counter(each.kind for each in lost)
    kinds = ", ".join(f"{kind.replace('_', '-')}: {count}" for kind, count in counts.items())
    raise GraphConflict(
        f"This removes {len(lost)} nodes with `{what}` ({kinds}).",
        instruction="Show the user what is removed, and repeat the call with the deletion confirmed.",
        fields={"removes": [" > ".join(each.address) for each in lost[:20]], "count": len(lost)},
    )


# Unknown keys are allowed, so that a team can keep its own notes in a graph. Story names are unique in the whole graph
# because increments and rendered files refer to stories by name.
_TEXT: JsonObject = {"type": "string"}
_NAME: JsonObject = {"type": "string", "minLength": 1, "maxLength": 300, "pattern": r"\S"}
_TEXTS: JsonObject = {"type": "array", "items": _TEXT}


def _object(required: list[str], **properties: JsonObject) -> JsonObject:
    return {"type": "object", "required": required, "properties": properties}


def _list_of(definition: str) -> JsonObject:
    return {"type": "array", "items": definition_ref(definition)}


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
    """A violation of the schema or an invariant."""

    pointer: Pointer
    message: str

    def __str__(self) -> str:
        return f"/{'/'.join(str(piece) for piece in self.pointer)}: {self.message}"


def problems_of(graph: Any) -> list[GraphProblem]:
    """Schema errors, or else broken references and duplicate names."""
    found = [
        GraphProblem(pointer=tuple(error.absolute_path), message=error.message[:300])
        for error in _schema_errors(GRAPH_SCHEMA, graph)
    ]
    return found or list(_broken_invariants(graph))


def _schema_errors(schema: JsonObject, value: Any) -> list[Any]:
    # Imported late: the import takes longer than most commands.
    require_extra("bots", "jsonschema", feature="Validating a story graph", code=ErrorCode.CONFIG_INVALID)
    from jsonschema import Draft202012Validator

    validator: Any = Draft202012Validator(schema)
    return sorted(validator.iter_errors(value), key=lambda error: [str(piece) for piece in error.absolute_path])


def first_error(schema: JsonObject, value: Any) -> str | None:
    """The first schema error with its path, or None."""
    for error in _schema_errors(schema, value)[:1]:
        path = "/".join(str(piece) for piece in error.absolute_path)
        return f"{path}: {error.message}"[:200] if path else error.message[:200]
    return None


def _broken_invariants(graph: Graph) -> Iterator[GraphProblem]:
    yield from _duplicate_siblings(graph)
    stories: dict[str, Pointer] = {}
    for node in walk(graph):
        if node.kind == "story":
            if node.name in stories:
                yield GraphProblem(pointer=node.pointer, message=f"There are two stories named `{node.name}`.")
            stories[node.name] = node.pointer
    for index, increment in enumerate(graph.get("increments", ())):
        for number, name in enumerate(increment.get("stories", ())):
            if name not in stories:
                pointer = ("increments", index, "stories", number)
                message = f"The increment `{increment['name']}` has an unknown story `{name}`."
                yield GraphProblem(pointer=pointer, message=message)


def _duplicate_siblings(graph: Graph) -> Iterator[GraphProblem]:
    yield from _duplicates([each["name"] for each in graph["epics"]], ("epics",))
    yield from _duplicates([each["name"] for each in graph.get("increments", ())], ("increments",))
    for node in walk(graph):
        if node.kind in ("epic", "sub_epic"):
            yield from _duplicates([child.name for child in children(node)], node.pointer)
        if node.kind == "story":
            scenarios = [each["name"] for each in node.value.get("scenarios", ())]
            yield from _duplicates(scenarios, (*node.pointer, "scenarios"))


def _duplicates(names: list[str], pointer: Pointer) -> Iterator[GraphProblem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield GraphProblem(pointer=pointer, message=f"The name `{name}` is used {count} times.")


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def line_numbers(text: str) -> Mapping[Pointer, int]:
    """The line of every value in a valid JSON text, by its pointer."""
    found: dict[Pointer, int] = {(): 1}
    path: list[str | int] = []
    expects_key: list[bool] = []
    line, end = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", end, token.start())
        end = token.start()
        word = token.group()
        if word in "{[":
            expects_key.append(word == "{")
            path.append("" if word == "{" else 0)
            if word == "[":
                found[tuple(path)] = _next_line(text, token.end(), line)
        elif word in "}]":
            expects_key.pop()
            path.pop()
        elif word == ",":
            if isinstance(last := path[-1], int):
                path[-1] = last + 1
                found[tuple(path)] = _next_line(text, token.end(), line)
            else:
                expects_key[-1] = True
        elif word == ":":
            expects_key[-1] = False
        elif expects_key and expects_key[-1] and isinstance(path[-1], str):
            path[-1] = json.loads(word)
            found[tuple(path)] = line
    return found


def _next_line(text: str, start: int, line: int) -> int:
    rest = re.compile(r"\s*").match(text, start)
    return line + (text.count("\n", start, rest.end()) if rest else 0)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def text_or_none(folder: DirectoryRoot, path: str) -> str | None:
    """The text of a file, None without one."""
    try:
        return folder.read_text(path)
    except NotFound:
        return None

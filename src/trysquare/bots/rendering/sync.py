"""Rendering of project files, and synchronization of their edits."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trysquare.bots.definition.model import RenderConfig
from trysquare.bots.graph import (
    LARGE,
    Graph,
    GraphConflict,
    all_stories,
    digest_of,
    load_graph,
    problems_of,
    refuse_large,
    save_graph,
    text_or_none,
    walk,
)
from trysquare.bots.rendering.merge import (
    NodeMerge,
    as_number,
    match_items,
    merge_outline,
    name_of,
    records,
    same_order,
    texts,
)
from trysquare.bots.rendering.pages import story_map_html, story_map_svg
from trysquare.bots.rendering.template import Record, as_line, read_back, render_template, view_of
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.files.root import DirectoryRoot


@dataclass(frozen=True, kw_only=True, slots=True)
class Synchronization:
    graph: Graph
    changes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def synchronize(
    graph: Graph,
    template: str,
    edited: str,
    *,
    rendered: str | None = None,
    confirm_deletion: bool = False,
    confirm_from: int = LARGE,
) -> Synchronization:
    """Merge the edits of a rendered text into the graph. Without `rendered`, the graph counts as unchanged since then.

    An edit is merged unless the graph changed at the same location; that is a conflict, and the graph stays.
    """
    basis = rendered if rendered is not None else render_template(template, view_of(graph))
    if edited == basis:
        return Synchronization(graph=graph)
    before, after = read_back(template, basis), read_back(template, edited)
    made: JsonObject = copy.deepcopy(dict(graph))
    nodes = {id(node.value): node for node in walk(made) if node.kind not in ("step", "graph")}
    merge = NodeMerge()
    known = {text for _, text in before.unread}
    merge.conflicts += [f"line {at}: `{text}` was not recognized." for at, text in after.unread if text not in known]
    _merge_all(made, before.record, after.record, merge)
    problems = problems_of(made)
    if problems:
        invalid = tuple(f"The edits cannot be merged: {each.message}" for each in problems)
        return Synchronization(graph=graph, conflicts=(*merge.conflicts, *invalid))
    if not confirm_deletion:
        present = {id(node.value) for node in walk(made)}
        lost = [node for key, node in nodes.items() if key not in present]
        refuse_large("the edited file", lost, from_count=confirm_from)
    return Synchronization(graph=made, changes=tuple(merge.changes), conflicts=tuple(merge.conflicts))


def _merge_all(graph: JsonObject, before: Record, after: Record, merge: NodeMerge) -> None:
    merge.merge(graph, before, after, "the product")
    renamed: dict[str, str] = {}
    if "outline" in before or "outline" in after:
        renamed |= merge_outline(graph, records(before, "outline"), records(after, "outline"), merge)
    elif "stories" in before or "stories" in after:
        renamed |= _merge_stories(graph, records(before, "stories"), records(after, "stories"), merge)
    _follow_names(graph, renamed)
    if "increments" in before or "increments" in after:
        _merge_increments(graph, records(before, "increments"), records(after, "increments"), merge)


def _merge_stories(graph: JsonObject, before: list[Record], after: list[Record], merge: NodeMerge) -> dict[str, str]:
    """Merge edits within stories. A flat list cannot add or remove stories."""
    nodes = {as_line(node.name): node.value for node in all_stories(graph)}
    pairs = match_items(before, after, name_of)
    renamed: dict[str, str] = {}
    for record, index in zip(after, pairs.before_of, strict=True):
        name = name_of(record)
        if index is None:
            merge.conflicts.append(f"`{name}` is new; add it to the story map instead.")
            continue
        old = name_of(before[index])
        if old not in nodes:
            if record != before[index]:
                merge.conflicts.append(f"`{name}` is no longer in the graph.")
            continue
        full = str(nodes[old]["name"])
        merge.merge(nodes[old], before[index], record, old)
        if nodes[old]["name"] != full:
            renamed[full] = name
    for index in pairs.removed:
        merge.conflicts.append(f"`{name_of(before[index])}` is not removed; remove it in the story map.")
    return renamed


def _follow_names(graph: JsonObject, renamed: dict[str, str]) -> None:
    left = {node.name for node in all_stories(graph)}
    for increment in graph.get("increments") or ():
        if "stories" in increment:
            names = [renamed.get(name, name) for name in increment["stories"]]
            increment["stories"] = [name for name in names if name in left]


def _merge_increments(graph: JsonObject, before: list[Record], after: list[Record], merge: NodeMerge) -> None:
    pairs = match_items(before, after, name_of)
    nodes: list[JsonObject] = list(graph.get("increments") or ())
    known = {each["name"]: each for each in nodes}
    made = merge.merge_list(nodes, before, after, key="name", needed=("name",), where="increments")
    # Rendered names have single spaces.
    stories = {as_line(node.name): node.name for node in all_stories(graph)}
    now = {as_line(each["name"]): each for each in made}
    for record, index in zip(after, pairs.before_of, strict=True):
        node = now.get(name_of(record))
        if node is None:
            continue
        old = before[index] if index is not None else {}
        wanted = texts(record, "stories")
        unknown = [name for name in wanted if name not in stories and name not in texts(old, "stories")]
        merge.conflicts += [f"{node['name']}: unknown story `{name}`." for name in unknown]
        found = [name for name in wanted if name in stories]
        shown = [name for name in texts(old, "stories") if name in stories]
        merge.merge_texts(node, "stories", shown, found, str(node["name"]))
        if found != shown:
            node["stories"] = [stories.get(name, name) for name in node["stories"]]
    numbers_edited = any(
        index is not None and record.get("priority") != before[index].get("priority")
        for record, index in zip(after, pairs.before_of, strict=True)
    )
    if not same_order(pairs) and not numbers_edited and known:
        for number, node in enumerate(made, start=1):
            node["priority"] = as_number(str(number))
    graph["increments"] = made


BUILDERS: Mapping[str, Callable[[Graph], str]] = {"story_map_svg": story_map_svg, "story_map_html": story_map_html}
_COPIES = ".trysquare/rendered"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    path: str
    digest: str
    changed: bool


def render(config: RenderConfig, graph: Graph) -> str:
    if config.builder is not None:
        return BUILDERS[config.builder](graph)
    return render_template(config.template_text or "", view_of(graph))


def render_to(folder: DirectoryRoot, config: RenderConfig, *, overwrite: bool = False) -> Rendered:
    """Write a rendered file, and a copy that later edits are compared with."""
    copied = copy_path(config.output)
    before, copy = text_or_none(folder, config.output), text_or_none(folder, copied)
    if not overwrite and before is not None and copy is not None and before != copy:
        raise GraphConflict(
            f"`{config.output}` was edited since it was rendered, and the edits are not in the graph.",
            instruction="Synchronize the file first, or render it with `overwrite` to discard the edits.",
        )
    text = render(config, load_graph(folder, config.input).graph)
    if text != before:
        folder.write_bytes(config.output, text.encode("utf-8", "replace"))
    if config.builder is None and text != copy:
        folder.write_bytes(copied, text.encode("utf-8", "replace"))
    return Rendered(path=config.output, digest=digest_of(text), changed=text != before)


def synchronize_from(folder: DirectoryRoot, config: RenderConfig, *, confirm_deletion: bool = False) -> Synchronization:
    """Merge the edits of a rendered file into its graph."""
    if config.template_text is None:
        raise InvalidArguments(f"`{config.output}` is an image; edit the graph or a rendered text instead.")
    file = load_graph(folder, config.input)
    edited = folder.read_text(config.output)
    rendered = text_or_none(folder, copy_path(config.output))
    done = synchronize(
        file.graph,
        config.template_text,
        edited,
        rendered=rendered,
        confirm_deletion=confirm_deletion,
        # Without the copy, a removed node looks like one that was added to the graph later.
        confirm_from=1 if rendered is None else LARGE,
    )
    if done.changes:
        save_graph(folder, config.input, done.graph, expected_digest=file.digest)
        # Later edits are compared with this version.
        folder.write_bytes(copy_path(config.output), edited.encode())
    return done


def copy_path(output: str) -> str:
    return f"{_COPIES}/{output}"

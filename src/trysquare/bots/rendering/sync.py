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
    digest_of,
    load_graph,
    problems_of,
    refuse_large,
    save_graph,
    text_or_none,
    walk,
)
from trysquare.bots.rendering.merge import NodeMerge, merge_graph
from trysquare.bots.rendering.pages import story_map_html, story_map_svg
from trysquare.bots.rendering.template import read_back, render_template, view_of
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
    (before, unread), (after, new) = read_back(template, basis), read_back(template, edited)
    made: JsonObject = copy.deepcopy(dict(graph))
    nodes = {id(node.value): node for node in walk(made) if node.kind not in ("step", "graph")}
    merge = NodeMerge()
    known = {text for _, text in unread}
    merge.conflicts += [f"line {at}: `{text}` was not recognized." for at, text in new if text not in known]
    merge_graph(made, before, after, merge)
    problems = problems_of(made)
    if problems:
        invalid = tuple(f"The edits cannot be merged: {each.message}" for each in problems)
        return Synchronization(graph=graph, conflicts=(*merge.conflicts, *invalid))
    if not confirm_deletion:
        present = {id(node.value) for node in walk(made)}
        lost = [node for key, node in nodes.items() if key not in present]
        refuse_large("the edited file", lost, from_count=confirm_from)
    return Synchronization(graph=made, changes=tuple(merge.changes), conflicts=tuple(merge.conflicts))


BUILDERS: Mapping[str, Callable[[Graph], str]] = {"story_map_svg": story_map_svg, "story_map_html": story_map_html}
_COPIES = ".trysquare/rendered"


def render(config: RenderConfig, graph: Graph) -> str:
    if config.builder is not None:
        return BUILDERS[config.builder](graph)
    return render_template(config.template_text or "", view_of(graph))


def render_to(folder: DirectoryRoot, config: RenderConfig, *, overwrite: bool = False) -> JsonObject:
    """Write a rendered file, and a copy that later edits are compared with; returns what was written."""
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
    return {"path": config.output, "changed": text != before, "digest": digest_of(text)[:12]}


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

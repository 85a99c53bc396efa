"""The rendered files of a project: made from a graph, and read back into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trysquare.bots.definition import RenderConfig
from trysquare.bots.graph.edits import LARGE
from trysquare.bots.graph.file import digest_of, load_graph, save_graph
from trysquare.bots.graph.nodes import Graph
from trysquare.bots.rendering.page import story_map_html
from trysquare.bots.rendering.picture import story_map_svg
from trysquare.bots.rendering.synchronizing import synchronize
from trysquare.bots.rendering.template import render_template
from trysquare.bots.rendering.views import view_of
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.files.sealed_folder import SealedFolder

BUILDERS: Mapping[str, Callable[[Graph], str]] = {"story_map_svg": story_map_svg, "story_map_html": story_map_html}
_COPIES = ".trysquare/rendered"


class EditsNotCarried(ToolError):
    """A rendered file that somebody edited; rendering it again would lose the edits."""

    default_code = ErrorCode.STATE_CONFLICT


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A file that was rendered."""

    path: str
    digest: str
    changed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Synchronized:
    """A graph that took over the edits of a rendered file, or none of them."""

    path: str
    changes: tuple[str, ...]
    conflicts: tuple[str, ...]
    written: bool
    digest: str


def render(config: RenderConfig, graph: Graph) -> str:
    """The text of a rendered file."""
    if config.builder is not None:
        return BUILDERS[config.builder](graph)
    return render_template(config.template_text or "", view_of(graph))


def render_to(folder: SealedFolder, config: RenderConfig, *, overwrite: bool = False) -> Rendered:
    """Write a rendered file, and a copy by which later edits of it are told from changes of the graph."""
    if not overwrite and edited_since(folder, config):
        raise EditsNotCarried(
            f"`{config.output}` was edited since it was rendered, and the edits are not in the graph.",
            instruction="Synchronize the file first, or render it again with `overwrite` to give the edits up.",
        )
    text = render(config, load_graph(folder, config.input).graph)
    before = _text_of(folder, config.output)
    if text != before:
        folder.write_bytes(config.output, text.encode("utf-8", "replace"))
    if config.builder is None and text != _text_of(folder, _copy_of(config)):
        folder.write_bytes(_copy_of(config), text.encode("utf-8", "replace"))
    return Rendered(path=config.output, digest=digest_of(text), changed=text != before)


def synchronize_from(folder: SealedFolder, config: RenderConfig, *, confirm_deletion: bool = False) -> Synchronized:
    """Carry the edits of a rendered file back into its graph."""
    if config.template_text is None:
        raise InvalidArguments(f"`{config.output}` is a picture; edit the graph or a rendered text instead.")
    file = load_graph(folder, config.input)
    edited = folder.read_text(config.output)
    rendered = _text_of(folder, _copy_of(config))
    done = synchronize(
        file.graph,
        config.template_text,
        edited,
        rendered=rendered,
        confirm_deletion=confirm_deletion,
        # Without the copy, what somebody removed looks like what the graph got later.
        confirm_from=1 if rendered is None else LARGE,
    )
    saved = file
    if done.changes:
        saved = save_graph(folder, config.input, done.graph, expected_digest=file.digest)
        # From now on, only what is edited after this counts.
        folder.write_bytes(_copy_of(config), edited.encode())
    return Synchronized(
        path=config.input,
        changes=done.changes,
        conflicts=done.conflicts,
        written=bool(done.changes),
        digest=saved.digest,
    )


def edited_since(folder: SealedFolder, config: RenderConfig) -> bool:
    """Whether the rendered file has edits that rendering it anew would overwrite."""
    text, copy = _text_of(folder, config.output), _text_of(folder, _copy_of(config))
    return text is not None and copy is not None and text != copy


def _copy_of(config: RenderConfig) -> str:
    return copy_path(config.output)


def copy_path(output: str) -> str:
    """Where the copy of a rendered file lies."""
    return f"{_COPIES}/{output}"


def _text_of(folder: SealedFolder, path: str) -> str | None:
    try:
        return folder.read_text(path)
    except NotFound:
        return None

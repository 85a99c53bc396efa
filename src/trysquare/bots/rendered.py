"""Rendered files of a project: pages of documents, and their edits carried back."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, cast

from trysquare.bots.definition.model import RenderConfig
from trysquare.bots.documents.base import Document, DocumentType
from trysquare.bots.documents.edits import Edits, Merged, with_problems
from trysquare.bots.documents.paths import select_path
from trysquare.bots.documents.store import MANY, expand, load_document, save_document, stem_in
from trysquare.bots.documents.story import StoryGraph
from trysquare.bots.graph import LARGE, digest_of, text_or_none
from trysquare.bots.rendering.mustache import render_template
from trysquare.bots.rendering.template import read_back
from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.core.json import JsonObject
from trysquare.files.root import DirectoryRoot

_COPIES = ".trysquare/rendered"
_HTML = (".html", ".htm")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One file that a render config writes, with the values that its template sees."""

    config: RenderConfig
    output: str
    scopes: tuple[Any, ...]
    document: Document | None = None
    """The one document that it shows; None for a page about many."""
    item: tuple[str | int, ...] = ()
    """The place in the document of the item that it shows."""

    def text(self) -> str:
        config = self.config
        if config.builder is not None and self.document is not None:
            return config.type.build(config.builder, self.document.value)
        return render_template(config.template_text or "", *self.scopes, html=self.output.endswith(_HTML))

    @property
    def is_carried(self) -> bool:
        """Whether its edits can be carried back at all."""
        return self.config.template_text is not None and self.document is not None and not self.output.endswith(_HTML)


def pages_of(folder: DirectoryRoot, config: RenderConfig) -> list[Page]:
    """The pages of a render config, from the present documents; an invalid or missing document is refused."""
    paths = expand(folder, config.input)
    if not paths:
        raise NotFound(
            f"no file matches {config.input} yet.", instruction="Write one first, with the action build_knowledge."
        )
    documents = [load_document(folder, path, config.type) for path in paths]
    if MANY in config.input and MANY not in config.output and config.each is None:
        listed = [{**config.type.view(each.value), **_named(each, config)} for each in documents]
        return [Page(config=config, output=config.output, scopes=({"documents": listed},))]
    found = [page for each in documents for page in _pages_of_one(each, config)]
    _require_distinct(found)
    return found


def _named(document: Document, config: RenderConfig) -> JsonObject:
    return {"file": document.path, "stem": stem_in(document.path, config.input)}


def _pages_of_one(document: Document, config: RenderConfig) -> Iterator[Page]:
    view = config.type.view(document.value)
    output = config.output
    if MANY in config.input:
        view = {**view, **_named(document, config)}
        output = output.replace(MANY, view["stem"])
    if config.each is None:
        yield Page(config=config, output=output, scopes=(view,), document=document)
        return
    for number, (pointer, item, _) in enumerate(select_path(config.each, view), start=1):
        own: JsonObject = cast(JsonObject, item) if isinstance(item, dict) else {"value": item}
        scopes = (view, {"number": number, **own})
        yield Page(config=config, output=_output(output, scopes), scopes=scopes, document=document, item=pointer)


def _output(pattern: str, scopes: tuple[Any, ...]) -> str:
    """The path of one item's page; a value of the item names a file, never a folder."""
    name = PurePosixPath(pattern).name
    made = render_template(name, *scopes).strip()
    if not made.replace(".", "") or any(each in made for each in "/\\\0") or made.startswith("."):
        raise InvalidArguments(f"`{made[:80]}` cannot be the name of a file (from `{name}`).")
    return str(PurePosixPath(pattern).parent / made)


def _require_distinct(pages: list[Page]) -> None:
    taken = set[str]()
    for page in pages:
        if page.output in taken:
            raise InvalidArguments(f"Two items would both be rendered to {page.output}; name the file by what differs.")
        taken.add(page.output)


def render_to(folder: DirectoryRoot, config: RenderConfig, *, overwrite: bool = False) -> list[JsonObject]:
    """Write the rendered files, each with a copy that later edits are compared with; returns what was written."""
    return [_write(folder, page, overwrite=overwrite) for page in pages_of(folder, config)]


def _write(folder: DirectoryRoot, page: Page, *, overwrite: bool) -> JsonObject:
    output = page.output
    before, copied = text_or_none(folder, output), text_or_none(folder, copy_path(output))
    if not overwrite and before is not None and copied is not None and before != copied:
        message = f"`{output}` was edited since it was rendered, and the edits are not in the document."
        return {"path": output, "problem": f"{message} Synchronize it first, or send `overwrite` to discard the edits."}
    text = page.text()
    if text != before:
        folder.write_bytes(output, text.encode("utf-8", "replace"))
    if page.config.builder is None and text != copied:
        folder.write_bytes(copy_path(output), text.encode("utf-8", "replace"))
    return {"path": output, "changed": text != before, "digest": digest_of(text)[:12]}


def synchronize_from(
    folder: DirectoryRoot, config: RenderConfig, *, confirm_deletion: bool = False
) -> list[tuple[str, Merged]]:
    """Merge the edits of the rendered files into their documents; the path of each file, and what came of it."""
    if config.template_text is None:
        raise InvalidArguments(f"`{config.output}` is an image; edit the document or a rendered text instead.")
    done: list[tuple[str, Merged]] = []
    for number in range(len(pages_of(folder, config))):
        # Read anew for each page: the one before may have changed the document of this one.
        pages = pages_of(folder, config)
        if number < len(pages):
            done.append((pages[number].output, _synchronize(folder, pages[number], confirmed=confirm_deletion)))
    return done


def _synchronize(folder: DirectoryRoot, page: Page, *, confirmed: bool) -> Merged:
    document, copied = page.document, copy_path(page.output)
    if document is None or not page.is_carried:
        return Merged(value=None, conflicts=(f"{page.output} cannot be read back; edit its documents instead.",))
    edited, rendered = folder.read_text(page.output), text_or_none(folder, copied)
    done = merge_page(
        page,
        edited,
        rendered=rendered,
        confirm_deletion=confirmed,
        # Without the copy, a removed item looks like one that was added to the document later.
        confirm_from=1 if rendered is None else LARGE,
    )
    if done.changes:
        save_document(folder, document, page.config.type, done.value)
        # Later edits are compared with this version.
        folder.write_bytes(copied, edited.encode())
    return done


def merge_page(
    page: Page, edited: str, *, rendered: str | None = None, confirm_deletion: bool = False, confirm_from: int = LARGE
) -> Merged:
    """Merge the edits of a page into its document. Without `rendered`, the document counts as unchanged since then.

    An edit is merged unless the document changed at the same location; that is a conflict, and the document stays.
    """
    assert page.document is not None
    template, value, kind = page.config.template_text or "", page.document.value, page.config.type
    present = page.text()
    basis = rendered if rendered is not None else present
    if edited == basis:
        return Merged(value=value)
    (before, unread), (after, new) = read_back(template, basis), read_back(template, edited)
    known = {text for _, text in unread}
    lost = tuple(f"line {at}: `{text}` was not recognized." for at, text in new if text not in known)
    edits = Edits(before=before, after=after, confirmed=confirm_deletion, confirm_from=confirm_from)
    made = _merge_item(kind, value, page.item, edits, read_back(template, present)[0])
    made = replace(made, conflicts=(*lost, *made.conflicts))
    return made if made.value is value else with_problems(made, kind.problems(made.value), value)


def _merge_item(
    kind: DocumentType, value: Any, at: tuple[str | int, ...], edits: Edits, current: dict[str, Any]
) -> Merged:
    if not at or not isinstance(value, dict):
        return kind.merge(value, edits, current)
    whole: JsonObject = copy.deepcopy(cast(JsonObject, value))
    holder: Any = whole
    for piece in at[:-1]:
        holder = holder[piece]
    made = kind.merge(holder[at[-1]], edits, current)
    holder[at[-1]] = made.value
    return replace(made, value=whole) if made.changes else replace(made, value=value)


def synchronize(value: Any, template: str, edited: str, *, kind: DocumentType | None = None, **options: Any) -> Merged:
    """Merge the edits of a text that a template rendered into the value that it shows."""
    kind = StoryGraph() if kind is None else kind
    config = RenderConfig(name="page", file="", input="", output="", template_text=template, type=kind)
    document = Document(path="", text="", value=value, read_lines=dict)
    return merge_page(Page(config=config, output="", scopes=(kind.view(value),), document=document), edited, **options)


def copy_path(output: str) -> str:
    return f"{_COPIES}/{output}"

"""Middleware that cuts long results into pages, and the tool that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from trysquare.core.cache import TooLargeToKeep
from trysquare.core.content import Content, ResourceContents, ResourceLink, Text
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.core.metadata import ALL_PROFILES, PAGE_READER
from trysquare.core.output import RESULT
from trysquare.core.resources import ResourceTemplate
from trysquare.core.result import Result, dump_json, jsonable, read_json
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool, tool
from trysquare.middleware.base import READ_MORE, Layer
from trysquare.middleware.json_pages import Page, Path, paginate, pointer

_MARK = "trysquare.pages"


def fits(result: Result[Any], limit: int) -> bool:
    """Whether a result's text has at most so many characters."""
    if result.relayed is not None:
        return len(result.relayed) <= limit
    value = result.value
    if not (result.fields or result.content or result.raw) and (value is None or isinstance(value, str)):
        return len(value or "") + len(result.message or "") + len(result.error or "") <= limit
    size = len(result.message or "") + len(result.error or "") + len(result.raw or b"")
    size += sum(_length(part) for part in (value, *result.fields.values()))
    return size + sum(len(_text_in(piece) or "") for piece in result.content) <= limit


def paged(result: Result[Any], limit: int, tool: str) -> tuple[StoredPages, Result[Any]]:
    """Cut a result into pages; returns them and the first one with everything that is not text."""
    result = result.opened()
    document = _document(result)
    # The head is short, since a model seldom needs the rest; a page leaves space for the envelope around it.
    pages = paginate(document, head=max(1, limit // 8), page=max(1, limit * 3 // 4))
    main = _longest(document)
    texts_of: dict[str, JsonObject | None] = {
        str(index): {"uri": piece.uri, "mime_type": piece.mime_type}
        for index, piece in enumerate(result.content)
        if isinstance(piece, ResourceContents) and piece.text is not None
    }
    is_wrapped = bool(result.fields) or not isinstance(document.get("value"), dict)
    total = _counts(_at(document, main))
    stored = StoredPages(tool=tool, pages=pages, main=main, total=total, is_wrapped=is_wrapped, texts=texts_of)
    texts = stored.result(1)
    other = tuple(piece for piece in result.content if _text_in(piece) is None)
    first = replace(
        result,
        value=texts.value,
        raw=None,
        structured=None,
        message=texts.message,
        error=pages[0].part.get("error"),
        fields={name: part for name, part in texts.fields.items() if name != "error_message"},
        content=(*texts.content, *other),
    )
    return stored, first


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPages:
    """The pages of one result, and what is reported with each."""

    tool: str
    pages: list[Page]
    main: Path
    """The part that made the result long; the counts are about it."""
    total: JsonObject
    is_wrapped: bool
    """Whether the value stands under `result` in the structured content."""
    texts: Mapping[str, JsonObject | None]
    """For each text of the content: the URI it is embedded from, or None for plain text."""

    def result(self, number: int) -> Result[Any]:
        part = self.pages[number - 1].part
        fields: JsonObject = dict(part.get("fields", {}))
        if "error" in part:
            fields["error_message"] = part["error"]
        return Result(
            success=True,
            value=part.get("value"),
            message=part.get("message"),
            fields=fields,
            content=tuple(self._content(index, text) for index, text in part.get("content", {}).items()),
        )

    def describe(self, number: int) -> JsonObject:
        """The number of a page, and how much of how much it shows."""
        page = self.pages[number - 1]
        about: JsonObject = {"number": number, "of": len(self.pages), "part": self._pointer(self.main)}
        about |= {"shown": _counts(_at(page.part, self.main)), "total": self.total}
        unfinished = self._pointer(page.continues or ())
        return {**about, "continues": unfinished} if unfinished else about

    def _pointer(self, path: Path) -> str:
        """A path in the structured content, where a tool's own fields and the entries of an object are at the top."""
        if path[:1] == ("fields",) or (path[:1] == ("value",) and not self.is_wrapped):
            path = path[1:]
        return pointer((RESULT, *path[1:]) if path[:1] == ("value",) else path)

    def text(self, number: int) -> tuple[str, str]:
        """A page as a resource: plain text where the result is one, else JSON."""
        part = self.pages[number - 1].part
        if list(part) == ["value"] and isinstance(part["value"], str):
            return part["value"], "text/plain"
        return dump_json(part), "application/json"

    def link(self, address: str, handle: str) -> ResourceLink:
        """The link to the pages, for clients that read resources."""
        return ResourceLink(
            uri=f"{address}{handle}",
            name="long_answer",
            description=f"The whole answer in {len(self.pages)} pages; add .2 to .{len(self.pages)} for the others.",
        )

    def to_json(self) -> JsonObject:
        pages = [{"part": page.part, "continues": page.continues and list(page.continues)} for page in self.pages]
        about = {"tool": self.tool, "total": self.total, "is_wrapped": self.is_wrapped, "texts": self.texts}
        return {"kind": _MARK, **about, "pages": pages, "main": list(self.main)}

    @classmethod
    def from_json(cls, stored: Any) -> StoredPages | None:
        """From a stored value; None if it is something else."""
        own = as_object(stored)
        if own.get("kind") != _MARK:
            return None
        pages = [
            Page(part=page["part"], continues=None if page["continues"] is None else tuple(page["continues"]))
            for page in own["pages"]
        ]
        about = {name: own[name] for name in ("tool", "total", "is_wrapped", "texts")}
        return cls(pages=pages, main=tuple(own["main"]), **about)

    def _content(self, index: str, text: str) -> Content:
        about = self.texts.get(index)
        return Text(text=text) if about is None else ResourceContents(text=text, **about)


def _document(result: Result[Any]) -> JsonObject:
    """The parts of a result that can be cut, under fixed names."""
    value = result.value if result.raw is None or result.value is not None else read_json(result.raw)
    texts = {str(index): text for index, piece in enumerate(result.content) if (text := _text_in(piece)) is not None}
    document: JsonObject = {"message": result.message, "error": result.error, "value": value}
    document |= {"fields": dict(result.fields) or None, "content": texts or None}
    return {name: jsonable(part) for name, part in document.items() if part is not None}


def _text_in(piece: Content) -> str | None:
    return piece.text if isinstance(piece, (Text, ResourceContents)) else None


def _longest(document: JsonObject) -> Path:
    """The path of the part that makes the document long: down the objects for as long as one entry is most of them."""
    path: Path = ()
    here: Any = document
    while isinstance(here, dict) and here:
        entries = cast(JsonObject, here)
        name = max(entries, key=lambda key: _length(entries[key]))
        if path and path != ("fields",) and 2 * _length(entries[name]) < _length(entries):
            break
        path, here = (*path, name), entries[name]
    return path


def _at(document: JsonObject, path: Path) -> Any:
    here: Any = document
    for step in path:
        here = cast(JsonObject, here).get(cast(str, step)) if isinstance(here, dict) else None
    return here


def _length(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return len(value)
    if isinstance(value, (bool, int, float)):
        return 8
    try:
        return len(to_json(value, by_alias=True, fallback=str, inf_nan_mode="strings").decode())
    except (PydanticSerializationError, ValueError):
        return len(dump_json(jsonable(value)))


def _counts(value: Any) -> JsonObject:
    """Characters and lines of a text, items of a list, entries of an object."""
    if isinstance(value, str):
        return {"characters": len(value), "lines": len(value.splitlines())}
    counts: JsonObject = {"characters": _length(value)}
    if isinstance(value, list):
        return {"items": len(cast(list[Any], value)), **counts}
    return {"entries": len(cast(JsonObject, value)), **counts} if isinstance(value, dict) else counts


ADDRESS = "trysquare://results/"
LIFETIME = 3600.0


def paginate_results(tool: Tool, *, reader: str = READ_MORE, lifetime: float = LIFETIME) -> Tool:
    """Cut results over the tool's `result_limit` into pages, which the tool `reader` reads.

    The same pages are resources: `trysquare://results/HANDLE` is the first, `trysquare://results/HANDLE.2` the second.
    Binary content stays whole.
    """
    limit = tool.metadata.result_limit
    if limit is None or not tool.may_be_paged:
        return tool
    inner = tool.call

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        try:
            result = await inner(arguments, context)
        except ToolError as error:
            if fits(result := Result.from_error(error), limit):
                raise
        if fits(result, limit):
            return result
        return await _first_page(result, limit, lifetime, context, tool, reader)

    return tool.wrapped(call)


async def _first_page(
    result: Result[Any], limit: int, lifetime: float, context: CallContext, tool: Tool, reader: str
) -> Result[Any]:
    pages, first = paged(result, limit, tool.name)
    try:
        handle = await run_in_thread(
            lambda: context.handles.put(pages.to_json(), principal=context.principal.subject, ttl=lifetime)
        )
    except TooLargeToKeep as error:
        return _typed(_only_page(first, pages, error), result, tool)
    except ToolError as error:
        # The tool has run and may not be run again: better a long result than a lost one.
        return replace(result, warnings=(*result.warnings, f"The result is long and could not be paged: {error}"))
    linked = replace(first, content=(*first.content, pages.link(ADDRESS, handle)))
    return _typed(_with_next(linked, pages, 1, handle, reader), result, tool)


def _typed(page: Result[Any], whole: Result[Any], tool: Tool) -> Result[Any]:
    """The first page of a tool with an output schema: a part that fits the schema, or else the whole value."""
    if whole.structured is None or tool.output is None or page.page is None:
        return page
    value = jsonable(page.value)
    part: JsonObject = {RESULT: value} if tool.output.wraps else as_object(value)
    # Beside the part, for clients that show a model nothing else of the answer.
    following = {"next": page.next} if "next" not in part and page.next is not None else {}
    if (following or "next" not in part) and tool.output.validator.fits({**part, **following}):
        return replace(page, structured={**part, **following})
    return replace(page, structured=whole.structured, page={**page.page, "structured": "whole"})


def _only_page(first: Result[Any], pages: StoredPages, error: TooLargeToKeep) -> Result[Any]:
    """The first page of a result whose other pages are too large to be stored."""
    warning = f"Only page 1 of {len(pages.pages)} is available. {error.message}"
    instruction = "Ask for less in one call: the other pages cannot be fetched."
    return replace(_described(first, pages.describe(1), instruction), warnings=(*first.warnings, warning))


def _with_next(result: Result[Any], pages: StoredPages, number: int, handle: str, reader: str) -> Result[Any]:
    """The page with its description and the call for the next one."""
    page = pages.describe(number)
    if number == len(pages.pages):
        return _described(result, page)
    cursor = f"{handle}.{number + 1}"
    text = f"This is page {number} of {len(pages.pages)}. If you need more, send the call in `next`."
    following: JsonObject = {"tool": reader, "arguments": {"cursor": cursor}}
    if result.next is not None:
        # The tool's own next call stays; the one for the next page stands beside it.
        text = f"This is page {number} of {len(pages.pages)}. If you need more, call `{reader}` with cursor `{cursor}`."
    described = _described(result, {**page, "cursor": cursor}, text)
    return described if result.next is not None else replace(described, next=following)


def _described(result: Result[Any], page: JsonObject, instruction: str | None = None) -> Result[Any]:
    joined = " ".join(filter(None, [result.instruction, instruction])) or None
    return replace(result, page=page, instruction=joined)


async def _stored_page(cursor: str, context: CallContext) -> tuple[StoredPages, int, str]:
    """The pages of a cursor, the number of the one that it names, and their handle."""
    handle, dot, digits = cursor.strip().removeprefix(ADDRESS).partition(".")
    if not handle or (dot and not (digits.isascii() and digits.isdigit() and len(digits) < 10)):
        raise InvalidArguments(
            "Unknown cursor.", instruction="Copy it from the `next` call of a long answer; without one, call the tool."
        )
    stored = await run_in_thread(lambda: context.handles.get(handle, principal=context.principal.subject))
    pages = StoredPages.from_json(stored)
    if pages is None:
        raise NotFound(f"Handle `{handle}` is not a long result.", code=ErrorCode.HANDLE_NOT_FOUND)
    number = int(digits) if dot else 1
    if not 1 <= number <= len(pages.pages):
        raise InvalidArguments(
            f"Unknown page {number}: the result has pages 1 to {len(pages.pages)}.",
            instruction="Copy the cursor from the `next` call of a page.",
        )
    return pages, number, handle


def page_reader(name: str = READ_MORE) -> Tool:
    """The tool that reads on in long answers."""

    async def read_more(cursor: str, context: CallContext) -> Result[Any]:
        """Next page of a long answer: send the cursor that it gave."""
        pages, number, handle = await _stored_page(cursor, context)
        return _with_next(pages.result(number), pages, number, handle, name)

    return tool(
        read_more, name=name, toolset="catalog", category=PAGE_READER, profiles=ALL_PROFILES | {"search"},
        result_limit=None, read_only=True, idempotent=True, open_world=False,
    )  # fmt: skip


async def _read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
    pages, number, _ = await _stored_page(values.get("handle") or uri, context)
    text, mime_type = pages.text(number)
    return (ResourceContents(uri=uri, mime_type=mime_type, text=text),)


RESULTS = ResourceTemplate(
    uri_template=ADDRESS + "{handle}",
    name="long_answer",
    title="Pages of a long answer",
    description="A long answer page by page: HANDLE is the first page, HANDLE.2 the second, and so on.",
    read=_read,
)
"""The pages of long results as resources."""

MIDDLEWARE = Layer(
    order=40,
    internal=True,
    wrap=lambda tool, config: paginate_results(tool, reader=config.page_reader),
    tool=page_reader,
    templates=(RESULTS,),
)

"""Middleware that cuts long results into pages, with a cursor for the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

from pydantic_core import PydanticSerializationError, to_json

from trysquare.core.cache import TooLargeToKeep
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.core.redaction import redact
from trysquare.core.resources import ResourceTemplate
from trysquare.core.result import Content, ResourceContents, ResourceLink, Result, Text, dump_json, jsonable, read_json
from trysquare.core.schema.errors import WRAPPER_KEYS, unwrap_arguments
from trysquare.core.signature import Arguments
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.middleware.base import Layer
from trysquare.middleware.json_pages import Page, Path, paginate, pointer

CURSOR: JsonObject = {"type": "string", "description": "Next page of a long answer: the cursor that it gave"}


class PagedArguments:
    """The arguments of a tool, or a cursor."""

    def __init__(self, inner: Arguments) -> None:
        self._inner = inner

    @cached_property
    def cursor_name(self) -> str:
        """The name of the argument: `cursor`, or another where the tool has one of its own."""
        own = self._inner.wire.get("properties", {})
        return "cursor" if "cursor" not in own else "page_cursor"

    @cached_property
    def wire(self) -> JsonObject:
        wire = self._inner.wire
        return {**wire, "properties": {**wire.get("properties", {}), self.cursor_name: CURSOR}}

    @property
    def exact(self) -> JsonObject:
        exact = self._inner.exact
        if "oneOf" not in exact:
            return self.wire
        alone: JsonObject = {"type": "object", "properties": {self.cursor_name: CURSOR}}
        alone |= {"required": [self.cursor_name], "additionalProperties": False}
        return {**exact, "oneOf": [*exact["oneOf"], alone]}

    def parse(self, tool: str, raw: JsonObject) -> Any:
        return self._inner.parse(tool, self.without_cursor(raw))

    def cursor_in(self, raw: JsonObject) -> Any:
        """The cursor of a call, also where a model nested it one level too deep; None for an ordinary call."""
        if self.cursor_name in raw:
            return raw[self.cursor_name]
        if len(raw) != 1 or next(iter(raw)) not in WRAPPER_KEYS:
            return None
        return unwrap_arguments(raw, self.wire["properties"]).get(self.cursor_name)

    def without_cursor(self, raw: JsonObject) -> JsonObject:
        """The arguments for the tool itself: some clients send every optional argument as null."""
        if self.cursor_name not in raw:
            return raw
        return {name: value for name, value in raw.items() if name != self.cursor_name}

    def required_in(self, raw: JsonObject) -> JsonObject:
        """The call's required arguments: a client that validates calls needs them with the cursor too."""
        required: list[str] = self._inner.wire.get("required", [])
        return {name: raw[name] for name in required if name in raw}


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
    stored = StoredPages(tool=tool, pages=pages, main=main, total=_counts(_at(document, main)), texts=texts_of)
    texts = stored.result(1)
    other = tuple(piece for piece in result.content if _text_in(piece) is None)
    first = replace(
        result,
        value=texts.value,
        raw=None,
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
        about: JsonObject = {"number": number, "of": len(self.pages), "part": pointer(_in_envelope(self.main))}
        about |= {"shown": _counts(_at(page.part, self.main)), "total": self.total}
        unfinished = pointer(_in_envelope(page.continues or ()))
        return {**about, "continues": unfinished} if unfinished else about

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
        own = {"tool": self.tool, "pages": pages, "main": list(self.main), "total": self.total, "texts": self.texts}
        return {"kind": _MARK, **own}

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
        return cls(tool=own["tool"], pages=pages, main=tuple(own["main"]), total=own["total"], texts=own["texts"])

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


def _in_envelope(path: Path) -> Path:
    """A path in the envelope, where a tool's own fields are at the top."""
    return path[1:] if path[:1] == ("fields",) else path


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
_MAX_REPEATED = 1000
"""Characters of required arguments that are repeated in the call for the next page."""


def paginate_results(tool: Tool, *, lifetime: float = LIFETIME) -> Tool:
    """Cut results over the tool's `result_limit` into pages, and add the argument `cursor` to its schema.

    A call with a cursor returns that page and does not run the tool. The same pages are resources:
    `trysquare://results/HANDLE` is the first, `trysquare://results/HANDLE.2` the second. Binary content stays whole.
    """
    limit = tool.metadata.result_limit
    if limit is None:
        return tool
    inner, arguments_kind = tool.call, PagedArguments(tool.arguments)

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        if (cursor := arguments_kind.cursor_in(arguments)) is not None:
            pages, number = await _stored_page(cursor, context, tool.name)
            repeated = _Repeated(tool.name, arguments_kind, arguments)
            return _with_next(pages.result(number), pages, number, cursor.partition(".")[0], repeated)
        try:
            result = await inner(arguments_kind.without_cursor(arguments), context)
        except ToolError as error:
            if fits(result := Result.from_error(error), limit):
                raise
        if fits(result, limit):
            return result
        return await _first_page(result, limit, lifetime, context, _Repeated(tool.name, arguments_kind, arguments))

    return tool.wrapped(call, arguments=arguments_kind)


class _Repeated(NamedTuple):
    """The part of a call that the call for the next page repeats."""

    tool: str
    kind: PagedArguments
    arguments: JsonObject

    def next_call(self, cursor: str) -> JsonObject:
        required = redact(self.kind.required_in(self.arguments), self.kind.wire)
        if required and len(dump_json(required)) > _MAX_REPEATED:
            required = {}
        return {"tool": self.tool, "arguments": {**required, self.kind.cursor_name: cursor}}


async def _first_page(
    result: Result[Any], limit: int, lifetime: float, context: CallContext, repeated: _Repeated
) -> Result[Any]:
    pages, first = paged(result, limit, repeated.tool)
    try:
        handle = await run_in_thread(
            lambda: context.handles.put(pages.to_json(), principal=context.principal.subject, ttl=lifetime)
        )
    except TooLargeToKeep as error:
        return _only_page(first, pages, error)
    except ToolError as error:
        # The tool has run and may not be run again: better a long result than a lost one.
        return replace(result, warnings=(*result.warnings, f"The result is long and could not be paged: {error}"))
    return _with_next(replace(first, content=(*first.content, pages.link(ADDRESS, handle))), pages, 1, handle, repeated)


def _only_page(first: Result[Any], pages: StoredPages, error: TooLargeToKeep) -> Result[Any]:
    """The first page of a result whose other pages are too large to be stored."""
    warning = f"Only page 1 of {len(pages.pages)} is available. {error.message}"
    instruction = "Ask for less in one call: the other pages cannot be fetched."
    return replace(_described(first, pages.describe(1), instruction), warnings=(*first.warnings, warning))


def _with_next(result: Result[Any], pages: StoredPages, number: int, handle: str, repeated: _Repeated) -> Result[Any]:
    """The page with its description and the call for the next one."""
    page = pages.describe(number)
    if number == len(pages.pages):
        return _described(result, page)
    cursor = f"{handle}.{number + 1}"
    text = f"This is page {number} of {len(pages.pages)}; if you need more, call again with the cursor in `page`."
    following = result.next or repeated.next_call(cursor)
    return replace(_described(result, {**page, "cursor": cursor}, text), next=following)


def _described(result: Result[Any], page: JsonObject, instruction: str | None = None) -> Result[Any]:
    joined = " ".join(filter(None, [result.instruction, instruction])) or None
    return replace(result, fields={**result.fields, "page": page}, instruction=joined)


async def _stored_page(cursor: Any, context: CallContext, tool: str | None = None) -> tuple[StoredPages, int]:
    handle, dot, digits = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    if not handle or (dot and not (digits.isascii() and digits.isdigit() and len(digits) < 10)):
        raise InvalidArguments(
            "Unknown cursor.",
            instruction="Copy it from `page.cursor` of a previous result, or leave it out to run the tool.",
        )
    stored = await run_in_thread(lambda: context.handles.get(handle, principal=context.principal.subject))
    pages = StoredPages.from_json(stored)
    if pages is None:
        raise NotFound(f"Handle `{handle}` is not a long result.", code=ErrorCode.HANDLE_NOT_FOUND)
    number = int(digits) if dot else 1
    if tool is not None and pages.tool != tool:
        raise InvalidArguments(
            f"This cursor belongs to a result of `{pages.tool}`.", instruction="Send it to that tool."
        )
    if not 1 <= number <= len(pages.pages):
        raise InvalidArguments(
            f"Unknown page {number}: the result has pages 1 to {len(pages.pages)}.",
            instruction="Copy the cursor from `page.cursor`.",
        )
    return pages, number


async def _read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
    pages, number = await _stored_page(values.get("handle") or uri.removeprefix(ADDRESS), context)
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
    wrap=lambda tool, config: paginate_results(tool),
    describe=lambda tool, config: (
        tool if tool.metadata.result_limit is None else replace(tool, arguments=PagedArguments(tool.arguments))
    ),
    templates=(RESULTS,),
)

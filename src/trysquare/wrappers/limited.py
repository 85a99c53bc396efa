"""limited: a long answer becomes a short head, counts, and pages for the rest. Nothing is lost.

A call with the `cursor` that an answer gave returns the next page and does not run the tool. The same pages can be
read as resources: `trysquare://results/HANDLE` is the first, `trysquare://results/HANDLE.2` the second. Pictures,
sound and other binary content are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.handles import TooLargeToKeep
from trysquare.core.resource import ResourceTemplate
from trysquare.core.result import Result, dump_json
from trysquare.core.schema import Arguments
from trysquare.core.secrets import masked
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject
from trysquare.wrappers.paged_arguments import PagedArguments
from trysquare.wrappers.paged_result import KeptPages, fits, paged

ADDRESS = "trysquare://results/"
LIFETIME = 3600.0
_MAX_REPEATED = 1000
"""Characters of required arguments that are repeated in the call for the next page."""


def limited(tool: Tool, *, lifetime: float = LIFETIME) -> Tool:
    """Hold the tool's answers to its `result_limit`, and give its schema the argument to page with."""
    limit = tool.metadata.result_limit
    if limit is None:
        return tool
    inner, arguments_kind = tool.call, PagedArguments(tool.arguments)

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        if (cursor := arguments_kind.cursor_in(arguments)) is not None:
            kept, number = await _kept_page(cursor, context)
            _check_page(kept, number, tool.name)
            repeated = _Repeated(tool.name, arguments_kind, arguments)
            return _with_way_on(kept.result(number), kept, number, cursor.partition(".")[0], repeated)
        try:
            result = await inner(arguments_kind.without_cursor(arguments), context)
        except ToolError as error:
            if fits(result := Result.from_error(error), limit):
                raise
        if fits(result, limit):
            return result
        return await _first_page(result, limit, lifetime, context, _Repeated(tool.name, arguments_kind, arguments))

    return tool.wrapped(call, arguments=arguments_kind)


def paged_arguments(tool: Tool) -> Arguments:
    """The arguments that a limited tool lists: its own and the cursor."""
    if tool.metadata.result_limit is None:
        return tool.arguments
    return PagedArguments(tool.arguments)


class _Repeated:
    """What the call for the next page repeats of this one."""

    __slots__ = ("_arguments", "_kind", "tool")

    def __init__(self, tool: str, kind: PagedArguments, arguments: JsonObject) -> None:
        self.tool = tool
        self._kind = kind
        self._arguments = arguments

    def next_call(self, cursor: str) -> JsonObject:
        """The call that returns the page of a cursor."""
        required = masked(self._kind.required_in(self._arguments), self._kind.wire)
        if required and len(dump_json(required)) > _MAX_REPEATED:
            required = {}
        return {"tool": self.tool, "arguments": {**required, self._kind.cursor_name: cursor}}


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
        # The tool has run and may not be run again: better a long answer than a lost one.
        return replace(result, warnings=(*result.warnings, f"The answer is long and could not be paged: {error}"))
    return _with_way_on(
        replace(first, content=(*first.content, pages.link(ADDRESS, handle))), pages, 1, handle, repeated
    )


def _only_page(first: Result[Any], pages: KeptPages, error: TooLargeToKeep) -> Result[Any]:
    """The first page of an answer whose other pages are too large to be kept."""
    warning = f"This is all that can be shown of an answer of {len(pages.pages)} pages. {error.message}"
    way_out = "Ask for less in one call: the other pages cannot be fetched."
    return replace(
        first,
        warnings=(*first.warnings, warning),
        fields={**first.fields, "page": pages.told(1)},
        instruction=f"{first.instruction} {way_out}" if first.instruction else way_out,
    )


def _with_way_on(result: Result[Any], pages: KeptPages, number: int, handle: str, repeated: _Repeated) -> Result[Any]:
    """The page with what was shown of how much, and the call for the next one."""
    told = pages.told(number)
    if number == len(pages.pages):
        return replace(result, fields={**result.fields, "page": told})
    following = repeated.next_call(f"{handle}.{number + 1}")
    told |= {"cursor": f"{handle}.{number + 1}"}
    way_on = f"This is page {number} of {len(pages.pages)}; if you need more, call again with the cursor in `page`."
    return replace(
        result,
        fields={**result.fields, "page": told},
        next=result.next or following,
        instruction=f"{result.instruction} {way_on}" if result.instruction else way_on,
    )


async def _kept_page(cursor: Any, context: CallContext) -> tuple[KeptPages, int]:
    handle, dot, number = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    if not handle or (dot and not (number.isascii() and number.isdigit() and len(number) < 10)):
        raise InvalidArguments(
            "The cursor is not one that an answer gave.",
            instruction="Copy the cursor from `page` as it is, or leave it out to run the tool.",
        )
    kept = await run_in_thread(lambda: context.handles.get(handle, principal=context.principal.subject))
    pages = KeptPages.from_json(kept)
    if pages is None:
        raise NotFound(f"Handle `{handle}` is not a long answer.", code=ErrorCode.HANDLE_NOT_FOUND)
    return pages, int(number) if dot else 1


def _check_page(pages: KeptPages, number: int, tool: str | None) -> None:
    if tool is not None and pages.tool != tool:
        raise InvalidArguments(
            f"This cursor belongs to an answer of `{pages.tool}`.", instruction="Send it to the tool that gave it."
        )
    if not 1 <= number <= len(pages.pages):
        raise InvalidArguments(
            f"The answer has pages 1 to {len(pages.pages)}; there is no page {number}.",
            instruction="Copy the cursor from `page` as it is.",
        )


async def _read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
    pages, number = await _kept_page(values.get("handle") or uri.removeprefix(ADDRESS), context)
    _check_page(pages, number, None)
    text, mime_type = pages.text(number)
    return (ResourceContents(uri=uri, mime_type=mime_type, text=text),)


RESULTS = ResourceTemplate(
    uri_template=ADDRESS + "{handle}",
    name="long_answer",
    title="Pages of a long answer",
    description="A long answer page by page: HANDLE is the first page, HANDLE.2 the second, and so on.",
    read=_read,
)
"""Where the pages of long answers are read as resources."""

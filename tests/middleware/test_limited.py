"""limited: long answers become pages from which nothing is missing."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel

from trysquare import (
    CallContext,
    ErrorCode,
    Image,
    ResourceContents,
    Result,
    StaticToolset,
    Text,
    Tool,
    ToolError,
    tool,
)
from trysquare.core.cache import MemoryHandles
from trysquare.middleware.pagination import RESULTS, page_reader, paginate_results
from trysquare.testing import call, make_context


def answering(value: Any, *, limit: int | None = 400, name: str = "look") -> Tool:
    async def look() -> Any:
        return value

    return paginate_results(tool(look, name=name, result_limit=limit))


async def all_pages(made: Tool, context: CallContext) -> list[Result[Any]]:
    """The first answer and every page after it, by the calls that the answers propose."""
    pages = [await call(made, made.name, context=context)]
    while cursor := (pages[-1].page or {}).get("cursor"):
        assert pages[-1].next == {"tool": "read_more", "arguments": {"cursor": cursor}}
        pages.append(await read_on(cursor, context))
    return pages


async def read_on(cursor: Any, context: CallContext) -> Result[Any]:
    return await call(page_reader(), "read_more", {"cursor": cursor}, context=context)


async def first_cursor(made: Tool, context: CallContext) -> str:
    return ((await call(made, made.name, context=context)).page or {})["cursor"]


async def read(uri: str, context: CallContext) -> ResourceContents:
    found = StaticToolset(templates=[RESULTS]).find_resource(uri)
    assert found is not None
    [contents] = await found.read(uri, RESULTS.match(uri) or {}, context)
    return contents


async def test_a_short_answer_passes_untouched() -> None:
    result = Result.ok("short", message="as it is")
    assert await call(answering(result), "look") is result


async def test_a_long_answer_of_another_server_is_read_and_paged() -> None:
    short, long = (b'{"content":[{"type":"text","text":"%b"}]}' % (b"x" * size) for size in (10, 1000))
    assert (await call(answering(Result.relay(short)), "look")).relayed is not None
    first = await call(answering(Result.relay(long)), "look")
    assert first.relayed is None
    assert (first.page or {})["total"] == {"characters": 1000, "lines": 1}


async def test_a_long_text_becomes_a_head_counts_and_a_way_on() -> None:
    text = "".join(f"line {number}\n" for number in range(200))
    result = await call(answering(text), "look")
    handle = (result.page or {})["cursor"].partition(".")[0]
    envelope = json.loads(result.to_json_str().replace(handle, "HANDLE"))
    assert envelope.pop("instruction")
    assert envelope == snapshot(
        {
            "success": True,
            "value": """\
line 0
line 1
line 2
line 3
line 4
line 5
line 6
""",
            "next": {"tool": "read_more", "arguments": {"cursor": "HANDLE.2"}},
            "page": {
                "number": 1,
                "of": 7,
                "part": "/result",
                "shown": {"characters": 49, "lines": 7},
                "total": {"characters": 1690, "lines": 200},
                "cursor": "HANDLE.2",
            },
        }
    )
    assert result.content[0].uri == f"trysquare://results/{handle}"  # type: ignore[union-attr]


@given(st.text(min_size=401, max_size=6000))
@settings(max_examples=30)
async def test_pages_of_a_text_are_exactly_the_text(text: str) -> None:
    pages = await all_pages(answering(text), make_context())
    assert "".join(str(page.value) for page in pages) == text


@given(st.lists(st.integers() | st.text(max_size=80), min_size=60, max_size=300))
@settings(max_examples=30)
async def test_pages_of_a_list_hold_every_item_once(items: list[Any]) -> None:
    is_long = len(json.dumps(items, ensure_ascii=False, separators=(",", ":"))) > 450
    answer = Result.ok(items) if is_long else Result.ok([*items, "x" * 100] * 5)
    pages = await all_pages(answering(answer), make_context())
    shown = [(page.page or {})["shown"]["items"] for page in pages]
    assert [item for page in pages for item in page.value or []] == answer.value
    assert sum(shown) == (pages[0].page or {})["total"]["items"]


async def test_the_tool_runs_once_however_many_pages_are_read() -> None:
    runs: list[int] = []

    async def look() -> str:
        runs.append(1)
        return "x" * 5000

    pages = await all_pages(paginate_results(tool(look, result_limit=400)), make_context())
    assert (len(pages) > 10, len(runs)) == (True, 1)


async def test_pages_can_be_read_as_resources() -> None:
    context, text = make_context(), "".join(f"line {number}\n" for number in range(300))
    first = await call(answering(text), "look", context=context)
    handle, pages = (first.page or {})["cursor"].partition(".")[0], (first.page or {})["of"]
    addresses = [f"trysquare://results/{handle}", *(f"trysquare://results/{handle}.{n}" for n in range(2, pages + 1))]
    contents = [await read(address, context) for address in addresses]
    assert "".join(one.text or "" for one in contents) == text
    assert {one.mime_type for one in contents} == {"text/plain"}


async def test_a_rooms_own_fields_keep_their_places_on_every_page() -> None:
    result = Result.ok(fields={"output": "z" * 2000, "status": "done"})
    first, second, *_ = await all_pages(answering(result), make_context())
    assert (first.fields["status"], (first.page or {})["part"]) == ("done", "/output")
    assert (set(second.fields["output"]), (second.page or {})["continues"]) == ({"z"}, "/output")


async def test_a_long_error_is_paged_too_and_stays_a_failure() -> None:
    async def fail() -> None:
        raise ToolError("e" * 3000, code=ErrorCode.STATE_CONFLICT, instruction="Look.")

    first, *rest = await all_pages(paginate_results(tool(fail, result_limit=400)), make_context())
    assert (first.success, first.code) == (False, ErrorCode.STATE_CONFLICT)
    assert (first.error or "") + "".join(page.fields["error_message"] for page in rest) == "e" * 3000


async def test_texts_beside_the_value_are_paged_and_pictures_left_alone() -> None:
    picture = Image(data="A" * 9000, mime_type="image/png")
    embedded = ResourceContents(uri="file:///a", mime_type="text/x-log", text="r" * 1500)
    result = Result.ok("v", content=(Text(text="t" * 1500), picture, embedded))
    first, *rest = await all_pages(answering(result), make_context())
    assert picture in first.content
    pieces = [piece for page in (first, *rest) for piece in page.content]
    assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == "t" * 1500
    logs = [piece for piece in pieces if isinstance(piece, ResourceContents)]
    assert "".join(piece.text or "" for piece in logs) == "r" * 1500
    assert {(piece.uri, piece.mime_type) for piece in logs} == {("file:///a", "text/x-log")}


async def test_a_picture_alone_never_makes_an_answer_long() -> None:
    result = Result.ok(content=(Image(data="A" * 9000, mime_type="image/png"),))
    assert await call(answering(result), "look") is result


async def test_raw_json_is_read_only_when_it_is_too_long() -> None:
    raw = json.dumps({"rows": list(range(500))}).encode()
    pages = await all_pages(answering(Result(success=True, raw=raw)), make_context())
    assert [row for page in pages for row in (page.value or {})["rows"]] == list(range(500))
    short: Result[Any] = Result(success=True, raw=b"[1]")
    assert await call(answering(short), "look") is short


async def test_a_tools_own_proposal_is_not_overwritten() -> None:
    own: dict[str, Any] = {"tool": "other", "arguments": {}}
    result = await call(answering(Result.ok("x" * 2000, next=own, instruction="Read it.")), "look")
    assert result.next == own
    assert (result.instruction or "").startswith("Read it. ")
    assert "page 1 of" in str(result.instruction)


async def test_no_limit_leaves_the_answer_and_the_schema_as_they_are() -> None:
    made = answering("x" * 100_000, limit=None)
    assert (await call(made, "look")).value == "x" * 100_000
    assert made.input_schema["properties"] == {}


async def test_the_schema_is_the_authors_own() -> None:
    async def plain(path: str, cursor: int = 0) -> str:
        return path

    assert paginate_results(tool(plain)).input_schema == tool(plain).input_schema


async def test_what_cannot_be_long_is_not_paged() -> None:
    async def count() -> int:
        return 3

    made = tool(count)
    assert paginate_results(made) is made
    assert not made.may_be_paged


@pytest.mark.parametrize("cursor", ["", "nonsense.x", ".2", "a.-1", "a." + "9" * 30, 7, ["a"], {"b": 1}])
async def test_a_cursor_that_no_answer_gave_is_refused_clearly(cursor: Any) -> None:
    result = await read_on(cursor, make_context())
    assert result.code in (ErrorCode.VALIDATION_INVALID_PARAM, ErrorCode.HANDLE_NOT_FOUND)
    assert result.instruction


async def test_a_page_past_the_last_is_refused_with_the_range() -> None:
    context = make_context()
    handle = (await first_cursor(answering("x" * 2000), context)).partition(".")[0]
    assert "pages 1 to" in ((await read_on(f"{handle}.99", context)).error or "")


async def test_the_address_of_a_page_is_as_good_as_its_cursor() -> None:
    context = make_context()
    cursor = await first_cursor(answering("x" * 2000), context)
    assert ((await read_on(f"trysquare://results/{cursor}", context)).page or {})["number"] == 2


async def test_somebody_elses_cursor_does_not_exist() -> None:
    handles = MemoryHandles()
    mine = CallContext(principal=make_context(principal="ada").principal, handles=handles)
    theirs = CallContext(principal=make_context(principal="eve").principal, handles=handles)
    cursor = await first_cursor(answering("x" * 2000), mine)
    assert (await read_on(cursor, theirs)).code == ErrorCode.HANDLE_NOT_FOUND
    with pytest.raises(ToolError):
        await read(f"trysquare://results/{cursor}", theirs)


async def test_a_cursor_ends_with_its_lifetime() -> None:
    now = [0.0]
    context = CallContext(handles=MemoryHandles(clock=lambda: now[0]))
    cursor = await first_cursor(answering("x" * 2000), context)
    now[0] = 3601.0
    assert (await read_on(cursor, context)).code == ErrorCode.HANDLE_NOT_FOUND


class Row(BaseModel):
    number: int
    text: str


class Report(BaseModel):
    title: str
    rows: list[Row]


async def test_a_page_of_a_typed_value_fits_the_output_schema() -> None:
    async def rows() -> list[Row]:
        return [Row(number=number, text="row") for number in range(200)]

    made = paginate_results(tool(rows, result_limit=400))
    first = await call(made, "rows")
    jsonschema.validate(first.structured, made.output_schema or {})
    assert first.structured is not None
    assert first.structured["next"] == first.next
    assert len(first.structured["result"]) == (first.page or {})["shown"]["items"]


async def test_a_typed_value_of_which_no_part_fits_is_structured_content_as_a_whole() -> None:
    async def report() -> Report:
        return Report(title="t" * 2000, rows=[Row(number=1, text="r" * 900)])

    made = paginate_results(tool(report, result_limit=400))
    first = await call(made, "report")
    assert first.structured == (await report()).model_dump()
    assert (first.page or {})["structured"] == "whole"


class FullHandles(MemoryHandles):
    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        raise ToolError("the disk is full", code=ErrorCode.STATE_UNAVAILABLE)


async def test_an_answer_that_cannot_be_kept_is_sent_whole_and_says_so() -> None:
    result = await call(answering("x" * 2000), "look", context=CallContext(handles=FullHandles()))
    assert (result.value, result.warnings) == (
        "x" * 2000,
        ("The result is long and could not be paged: the disk is full",),
    )

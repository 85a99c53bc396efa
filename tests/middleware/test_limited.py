"""limited: long answers become pages from which nothing is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

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
    Toolset,
    tool,
)
from trysquare.core.cache import MemoryHandles
from trysquare.middleware.pagination import RESULTS, paginate_results
from trysquare.testing import call, make_context


def answering(value: Any, *, limit: int | None = 400, name: str = "look") -> Tool:
    async def look() -> Any:
        return value

    return paginate_results(tool(look, name=name, result_limit=limit))


async def all_pages(made: Tool, context: CallContext) -> list[Result[Any]]:
    """The first answer and every page after it, by the calls that the answers propose."""
    pages = [await call(made, made.name, context=context)]
    while cursor := pages[-1].fields.get("page", {}).get("cursor"):
        assert pages[-1].next == {"tool": made.name, "arguments": {"cursor": cursor}}
        pages.append(await call(made, made.name, cursor=cursor, context=context))
    return pages


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
    assert first.fields["page"]["total"] == {"characters": 1000, "lines": 1}


async def test_a_long_text_becomes_a_head_counts_and_a_way_on() -> None:
    text = "".join(f"line {number}\n" for number in range(200))
    result = await call(answering(text), "look")
    handle = result.fields["page"]["cursor"].partition(".")[0]
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
            "next": {"tool": "look", "arguments": {"cursor": "HANDLE.2"}},
            "page": {
                "number": 1,
                "of": 7,
                "part": "/value",
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
    shown = [page.fields["page"]["shown"]["items"] for page in pages]
    assert [item for page in pages for item in page.value or []] == answer.value
    assert sum(shown) == pages[0].fields["page"]["total"]["items"]


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
    handle, pages = first.fields["page"]["cursor"].partition(".")[0], first.fields["page"]["of"]
    addresses = [f"trysquare://results/{handle}", *(f"trysquare://results/{handle}.{n}" for n in range(2, pages + 1))]
    contents = [await read(address, context) for address in addresses]
    assert "".join(one.text or "" for one in contents) == text
    assert {one.mime_type for one in contents} == {"text/plain"}


async def test_a_rooms_own_fields_keep_their_places_on_every_page() -> None:
    result = Result.ok(fields={"output": "z" * 2000, "status": "done"})
    first, second, *_ = await all_pages(answering(result), make_context())
    assert (first.fields["status"], first.fields["page"]["part"]) == ("done", "/output")
    assert (set(second.fields["output"]), second.fields["page"]["continues"]) == ({"z"}, "/output")


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


async def required(path: str, cursor: int = 0) -> str:
    return path * 1000


async def test_the_schema_gains_an_optional_cursor() -> None:
    async def plain(path: str) -> str:
        return path

    schema = paginate_results(tool(plain)).input_schema
    assert schema["properties"]["cursor"]["type"] == "string"
    assert schema["properties"]["cursor"]["description"]
    assert (schema["required"], schema["additionalProperties"]) == (["path"], False)


async def test_a_tool_with_a_cursor_of_its_own_gets_another_name_for_ours() -> None:
    made = paginate_results(tool(required, result_limit=400))
    assert list(made.input_schema["properties"]) == ["path", "cursor", "page_cursor"]
    first = await call(made, "required", path="ab")
    assert list((first.next or {})["arguments"]) == ["path", "page_cursor"]


async def test_a_call_that_nests_its_cursor_is_understood() -> None:
    context, made = make_context(), answering("x" * 2000)
    first = await call(made, "look", context=context)
    second = await call(made, "look", args={"cursor": first.fields["page"]["cursor"]}, context=context)
    assert second.fields["page"]["number"] == 2


async def test_an_absent_cursor_may_be_sent_as_null() -> None:
    assert (await call(answering("short"), "look", cursor=None)).value == "short"


@pytest.mark.parametrize("cursor", ["", "nonsense.x", ".2", "a.-1", "a." + "9" * 30, 7, ["a"], {"b": 1}])
async def test_a_cursor_that_no_answer_gave_is_refused_clearly(cursor: Any) -> None:
    result = await call(answering("x" * 2000), "look", cursor=cursor)
    assert result.code in (ErrorCode.VALIDATION_INVALID_PARAM, ErrorCode.HANDLE_NOT_FOUND)
    assert result.instruction


async def test_a_page_past_the_last_is_refused_with_the_range() -> None:
    context, made = make_context(), answering("x" * 2000)
    handle = (await call(made, "look", context=context)).fields["page"]["cursor"].partition(".")[0]
    result = await call(made, "look", cursor=f"{handle}.99", context=context)
    assert "pages 1 to" in (result.error or "")


async def test_somebody_elses_cursor_does_not_exist() -> None:
    handles = MemoryHandles()
    mine = CallContext(principal=make_context(principal="ada").principal, handles=handles)
    theirs = CallContext(principal=make_context(principal="eve").principal, handles=handles)
    made = answering("x" * 2000)
    cursor = (await call(made, "look", context=mine)).fields["page"]["cursor"]
    assert (await call(made, "look", cursor=cursor, context=theirs)).code == ErrorCode.HANDLE_NOT_FOUND
    with pytest.raises(ToolError):
        await read(f"trysquare://results/{cursor}", theirs)


async def test_a_cursor_ends_with_its_lifetime() -> None:
    now = [0.0]
    context = CallContext(handles=MemoryHandles(clock=lambda: now[0]))
    made = answering("x" * 2000)
    cursor = (await call(made, "look", context=context)).fields["page"]["cursor"]
    now[0] = 3601.0
    assert (await call(made, "look", cursor=cursor, context=context)).code == ErrorCode.HANDLE_NOT_FOUND


async def test_a_cursor_belongs_to_its_tool() -> None:
    context = make_context()
    toolset: Toolset = StaticToolset([answering("x" * 2000), answering("y" * 2000, name="other")])
    cursor = (await call(toolset, "look", context=context)).fields["page"]["cursor"]
    result = await call(toolset, "other", cursor=cursor, context=context)
    assert "`look`" in (result.error or "")


class FullHandles(MemoryHandles):
    def put(self, value: Any, *, principal: str, ttl: float = 3600.0) -> str:
        raise ToolError("the disk is full", code=ErrorCode.STATE_UNAVAILABLE)


async def test_an_answer_that_cannot_be_kept_is_sent_whole_and_says_so() -> None:
    result = await call(answering("x" * 2000), "look", context=CallContext(handles=FullHandles()))
    assert (result.value, result.warnings) == (
        "x" * 2000,
        ("The result is long and could not be paged: the disk is full",),
    )

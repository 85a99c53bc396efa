"""Results on the wire: text, structured content, guidance, and the pieces beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from mcp_types.methods import serialize_server_result

from tests.support import about
from trysquare import Audio, ErrorCode, Image, ResourceContents, ResourceLink, Result, Text, ToolError
from trysquare.server.convert import block_to_wire, contents_to_wire, result_to_wire


def test_a_success_is_sent_as_text_as_structured_content_and_with_guidance() -> None:
    result = Result.ok({"sum": 3}, message="Added.", instruction="Show it.", warnings=("slow",))
    assert result_to_wire(result) == snapshot(
        {
            "resultType": "complete",
            "content": [
                {
                    "type": "text",
                    "text": """\
Added.
{"sum":3}
Warning: slow
Instruction: Show it.\
""",
                }
            ],
            "structuredContent": {
                "sum": 3,
                "message": "Added.",
                "instruction": "Show it.",
                "warnings": ["slow"],
            },
            "_meta": {"trysquare/result": {"message": "Added.", "instruction": "Show it.", "warnings": ["slow"]}},
        }
    )


def test_a_failure_says_that_it_is_one() -> None:
    error = ToolError("No.", code=ErrorCode.STATE_CONFLICT, next={"tool": "retry", "arguments": {}})
    wire = result_to_wire(Result[Any].from_error(error))
    assert wire["isError"] is True
    assert "structuredContent" not in wire
    assert about(wire) == {
        "code": "STATE_CONFLICT",
        "error_type": "state_conflict",
        "next": {"tool": "retry", "arguments": {}},
    }
    assert 'Next: {"tool":"retry","arguments":{}}' in wire["content"][0]["text"]


def test_raw_json_arrives_as_the_value() -> None:
    wire = result_to_wire(Result(success=True, raw=b'{"a": [1, 2.50, "\\u00e9"]}'))
    assert wire["structuredContent"] == {"a": [1, 2.5, "é"]}


def test_a_result_of_pieces_alone_has_no_empty_text_before_them() -> None:
    wire = result_to_wire(Result.ok(content=(Image(data="aGk=", mime_type="image/png"),)))
    assert [block["type"] for block in wire["content"]] == ["image"]


def test_a_result_without_anything_says_that_it_is_done() -> None:
    assert result_to_wire(Result.ok())["content"] == [{"type": "text", "text": "Done. The tool returned no value."}]


def test_pieces_stand_after_the_text() -> None:
    wire = result_to_wire(Result.ok("seen", content=(Text(text="more"),)))
    assert [block["text"] for block in wire["content"]] == ["seen", "more"]


def test_what_a_result_notes_for_programs_travels_as_meta() -> None:
    wire = result_to_wire(Result(success=True, value=1, meta={"example.com/trace": "abc"}))
    assert wire["_meta"] == {"example.com/trace": "abc"}


@pytest.mark.parametrize(
    ("content", "wire"),
    [
        (Text(text="t"), {"type": "text", "text": "t"}),
        (Image(data="d", mime_type="image/png"), {"type": "image", "data": "d", "mimeType": "image/png"}),
        (Audio(data="d", mime_type="audio/wav"), {"type": "audio", "data": "d", "mimeType": "audio/wav"}),
        (
            ResourceLink(uri="a:b", name="n", mime_type="text/plain", description="d"),
            {"type": "resource_link", "uri": "a:b", "name": "n", "mimeType": "text/plain", "description": "d"},
        ),
        (
            ResourceContents(uri="a:b", mime_type="text/plain", text="t"),
            {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "t"}},
        ),
    ],
)
def test_each_piece_has_its_block(content: Any, wire: dict[str, Any]) -> None:
    assert block_to_wire(content) == wire


def test_contents_are_text_or_bytes() -> None:
    assert contents_to_wire(ResourceContents(uri="a:b", blob="aGk=")) == {"uri": "a:b", "blob": "aGk="}
    assert contents_to_wire(ResourceContents(uri="a:b")) == {"uri": "a:b", "text": ""}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)


@given(anything, st.text(st.characters()), st.booleans())
def test_any_result_is_one_that_the_protocol_takes(value: Any, text: str, success: bool) -> None:
    result = Result[Any].ok(value, message=text, fields={"note": value}) if success else Result[Any].failure(text)
    wire = result_to_wire(result)
    json.dumps(wire, allow_nan=False).encode()
    for version in ("2025-11-25", "2026-07-28"):
        sent = serialize_server_result("tools/call", version, wire)
        assert sent.get("isError", False) is not success

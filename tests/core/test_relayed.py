"""Relayed: another server's answer for callers that do not speak MCP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trysquare import Audio, Image, ResourceContents, ResourceLink, Result


def relay(answer: Any, *, is_error: bool = False) -> Result[Any]:
    return Result.relay(json.dumps(answer).encode(), is_error=is_error)


def test_the_text_of_another_server_is_the_value() -> None:
    result = relay({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]})
    assert result.to_json() == {"success": True, "value": "one\ntwo"}
    assert result.to_text() == "one\ntwo"


def test_structured_content_is_the_value_and_a_text_that_only_repeats_it_is_left_out() -> None:
    repeated = {"type": "text", "text": '{ "sum": 3 }'}
    assert relay({"content": [repeated], "structuredContent": {"sum": 3}}).to_json() == {
        "success": True,
        "value": {"sum": 3},
    }
    said = {"type": "text", "text": "It is three."}
    assert relay({"content": [said], "structuredContent": {"sum": 3}}).to_json() == {
        "success": True,
        "value": {"sum": 3},
        "message": "It is three.",
    }


def test_a_failure_of_another_server_is_a_failure_with_its_text() -> None:
    result = relay({"content": [{"type": "text", "text": "No such file."}], "isError": True}, is_error=True)
    assert not result.success
    assert result.to_json() == {
        "success": False,
        "error": {"code": "TOOL_FAILED", "message": "No such file."},
        "error_type": "tool_failed",
    }
    assert "without a message" in relay({"content": []}, is_error=True).to_text()


def test_pieces_that_are_no_text_become_ours() -> None:
    blocks = [
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "a:b", "name": "n"},
        {"type": "resource", "resource": {"uri": "a:c", "text": "t"}},
        {"type": "resource", "resource": {"uri": "a:d", "blob": "aGk=", "mimeType": "image/png"}},
    ]
    assert relay({"content": blocks}).opened().content == (
        Image(data="aGk=", mime_type="image/png"),
        Audio(data="aGk=", mime_type="audio/wav"),
        ResourceLink(uri="a:b", name="n"),
        ResourceContents(uri="a:c", text="t"),
        ResourceContents(uri="a:d", blob="aGk=", mime_type="image/png"),
    )


@pytest.mark.parametrize("content", [None, 3, "text", [None, 3, {"type": "new"}, {"type": "resource"}, {}]])
def test_content_that_is_not_as_the_protocol_has_it_does_no_harm(content: Any) -> None:
    assert relay({"content": content}).to_json() == {"success": True}


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"\xff"])
def test_what_cannot_be_read_is_shown_as_text(body: bytes) -> None:
    assert Result.relay(body).to_json()["value"] == body.decode(errors="replace")


def test_a_result_of_our_own_opens_as_itself() -> None:
    result = Result.ok(1)
    assert result.opened() is result

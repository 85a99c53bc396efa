"""First calls: what is begun early is beyond doubt, and everything else is left to the server."""

from __future__ import annotations

from typing import Any

import pytest

from trysquare.serve.first_calls import FirstCall, cancelled_by, plain_call


def request(params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def test_a_plain_call_is_read() -> None:
    meta = {"progressToken": 1, "own/name": {"any": "thing"}}
    assert plain_call(request({"name": "a"})) == FirstCall(7, "a", {}, {})
    found = plain_call(request({"name": "a", "arguments": {"b": 1}, "_meta": meta}))
    assert found == FirstCall(7, "a", {"b": 1}, meta)


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"name": 1},
        {"name": "a", "arguments": []},
        {"name": "a", "arguments": None},
        {"name": "a", "task": {}},
        {"name": "a", "_meta": []},
        {"name": "a", "_meta": {"progressToken": True}},
        {"name": "a", "_meta": {"progressToken": 1.5}},
        {"name": "a", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
    ],
)
def test_a_call_that_has_to_be_looked_at_is_left_to_the_server(params: Any) -> None:
    assert plain_call(request(params)) is None


@pytest.mark.parametrize(
    ("line", "cancelled"),
    [
        (b'{"method": "notifications/cancelled", "params": {"requestId": 3}}', 3),
        (b'{"method": "notifications/cancelled", "params": {"requestId": "x"}}', "x"),
        (b'{"method": "notifications/cancelled", "params": []}', None),
        (b'{"method": "notifications/cancelled"', None),
        (b'{"method": "notifications/initialized"}', None),
    ],
)
def test_what_is_taken_back_is_known(line: bytes, cancelled: str | int | None) -> None:
    assert cancelled_by(line) == cancelled

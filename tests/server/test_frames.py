"""Any line is a message or gets an answer, and what we send is one line of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from trysquare.server.codec import FrameError, decode_frame, encode_frame

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_get_an_answer(line: bytes) -> None:
    try:
        decode_frame(line)
    except FrameError as error:
        answer = json.loads(encode_frame(error.answer))
    else:
        return
    assert answer["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST)


@given(
    st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), json_values)
    | json_values
)
def test_any_json_is_a_message_or_gets_an_answer(value: Any) -> None:
    try:
        decode_frame(json.dumps(value).encode())
    except FrameError as error:
        json.loads(encode_frame(error.answer))


@given(st.integers() | st.text(), st.text(), st.dictionaries(st.text(), json_values, max_size=4))
def test_a_request_is_read_as_the_sdk_reads_it(request_id: int | str, method: str, params: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()
    assert decode_frame(line) == jsonrpc_message_adapter.validate_json(line)


@given(st.integers() | st.text(), st.dictionaries(st.text(), json_values, max_size=4))
def test_what_is_written_is_one_line_that_reads_back_the_same(request_id: int | str, result: dict[str, Any]) -> None:
    line = encode_frame(JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": request_id, "result": result}


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        (b"{", PARSE_ERROR, "not JSON"),
        (b"\xff\xfe{}", PARSE_ERROR, "not UTF-8: byte 0"),
        (b"[" * 100_000, PARSE_ERROR, "nested too deeply"),
        (b"[1" + b"0" * 5000 + b"]", PARSE_ERROR, "too long"),
        (b"[]", INVALID_REQUEST, "a batch"),
        (b"3", INVALID_REQUEST, "one JSON object"),
        (b"{}", INVALID_REQUEST, "needs a `method`"),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID_REQUEST, "`jsonrpc`"),
        (b'{"jsonrpc":"2.0","id":1,"method":3}', INVALID_REQUEST, "`method`"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', INVALID_REQUEST, "`params`"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, "`id`"),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', INVALID_REQUEST, "`id`"),
    ],
)
def test_a_bad_line_is_answered_with_what_is_wrong(line: bytes, code: int, told: str) -> None:
    with pytest.raises(FrameError) as caught:
        decode_frame(line)
    assert caught.value.answer.error.code == code
    assert told in caught.value.answer.error.message
    json.loads(encode_frame(caught.value.answer))


def test_the_answer_to_a_bad_request_carries_its_id() -> None:
    with pytest.raises(FrameError) as caught:
        decode_frame(b'{"jsonrpc":"2.0","id":"seven","method":3}')
    assert caught.value.answer.id == "seven"


def test_half_characters_in_arguments_are_kept_for_the_tool_to_judge() -> None:
    message = decode_frame(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":"\\ud800"}}}')
    assert isinstance(message, JSONRPCRequest)
    assert message.params == {"arguments": {"a": "\ud800"}}


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, float("nan"), float("inf"), object()])
def test_what_has_no_json_is_still_sent_as_a_line(value: object) -> None:
    line = encode_frame(JSONRPCNotification(jsonrpc="2.0", method="m", params={"value": value}))
    assert json.loads(line, parse_constant=_refuse)["method"] == "m"


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")

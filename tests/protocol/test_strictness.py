"""Any line is a message or gets an error response, and what is written is one line of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCRequest, jsonrpc_message_adapter
from msgspec import UNSET

from trysquare.protocol import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolParams,
    Params,
    RpcError,
    decode,
    decode_any,
    decode_part,
    decoder_of,
    encode_error,
    encode_notification,
    encode_result,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
small_integers = st.integers(min_value=-(2**62), max_value=2**62)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_get_an_error(line: bytes) -> None:
    try:
        decode(line)
    except RpcError as error:
        answer = json.loads(encode_error(error, error.request_id))
    else:
        return
    assert answer["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST)


@given(
    st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), json_values)
    | json_values
)
def test_any_json_is_a_message_or_gets_an_error(value: Any) -> None:
    try:
        message = decode(json.dumps(value).encode())
        decode_part(decoder_of(Params).decode, message.params)
    except RpcError as error:
        json.loads(encode_error(error, error.request_id))


@given(small_integers | st.text(), st.text(), st.dictionaries(st.text(), json_values, max_size=4))
def test_a_request_is_read_as_the_sdk_reads_it(request_id: int | str, method: str, params: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()
    theirs = jsonrpc_message_adapter.validate_json(line)
    ours = decode(line)
    assert isinstance(theirs, JSONRPCRequest)
    assert (ours.id, ours.method, decode_any(ours.params)) == (theirs.id, theirs.method, theirs.params)


@given(small_integers | st.text(), st.dictionaries(st.text(), json_values, max_size=4))
def test_what_is_written_is_one_line_that_reads_back_the_same(request_id: int | str, result: dict[str, Any]) -> None:
    line = encode_result(request_id, result)
    assert b"\n" not in line
    assert json.loads(line) == {"jsonrpc": "2.0", "id": request_id, "result": result}


@pytest.mark.parametrize(
    ("line", "code", "field"),
    [
        (b"{", PARSE_ERROR, ""),
        (b"\xff\xfe{}", PARSE_ERROR, ""),
        (b"[" * 100_000, PARSE_ERROR, ""),
        (b"[1" + b"0" * 5000 + b"]", PARSE_ERROR, ""),
        (b"[]", INVALID_REQUEST, "batch"),
        (b"3", INVALID_REQUEST, "object"),
        (b"{}", INVALID_REQUEST, "jsonrpc"),
        (b'{"jsonrpc":"2.0"}', INVALID_REQUEST, "method"),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID_REQUEST, "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":1,"method":3}', INVALID_REQUEST, "method"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, "id"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, "id"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, "id"),
        (b'{"jsonrpc":"2.0","method":"tools/list"}', INVALID_REQUEST, "id"),
    ],
)
def test_a_bad_line_gets_an_error_that_names_the_field(line: bytes, code: int, field: str) -> None:
    with pytest.raises(RpcError) as caught:
        decode(line)
    assert caught.value.code == code
    assert field in caught.value.message


def test_the_error_of_a_bad_request_has_its_id() -> None:
    with pytest.raises(RpcError) as caught:
        decode(b'{"jsonrpc":"2.0","id":"seven","method":3}')
    assert caught.value.request_id == "seven"


@pytest.mark.parametrize("given_id", ['"\\ud800"', "1" + "0" * 30, "true", "1.5", "{}"])
def test_an_id_that_cannot_be_sent_back_is_left_out(given_id: str) -> None:
    with pytest.raises(RpcError) as caught:
        decode(b'{"jsonrpc":"2.0","id":%b,"method":3}' % given_id.encode())
    assert caught.value.request_id is None


def test_lone_surrogates_in_arguments_are_replaced() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"t","arguments":{"a":"\\ud800"}}}')
    params: CallToolParams = decode_part(decoder_of(CallToolParams).decode, message.params)
    assert params.arguments == {"a": "\ufffd"}


@pytest.mark.parametrize("params", ["[]", "3", '"x"', "true"])
def test_parameters_that_are_not_an_object_are_invalid(params: str) -> None:
    with pytest.raises(RpcError) as caught:
        decode(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%b}' % params.encode())
    assert (caught.value.code, caught.value.request_id) == (INVALID_REQUEST, 1)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":"x"}',
        b'{"jsonrpc":"2.0","id":1,"error":{}}',
    ],
)
def test_a_response_without_an_id_or_of_another_shape_is_invalid(line: bytes) -> None:
    with pytest.raises(RpcError) as caught:
        decode(line)
    assert (caught.value.code, caught.value.request_id) == (INVALID_REQUEST, None)


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig", "latin-1"])
def test_only_utf_8_without_a_byte_order_mark_is_read(codec: str) -> None:
    with pytest.raises(RpcError) as caught:
        decode('{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"ü"}}'.encode(codec))
    assert caught.value.code == PARSE_ERROR


def test_absent_and_null_parameters_are_empty() -> None:
    for line in (b'{"jsonrpc":"2.0","id":1,"method":"m"}', b'{"jsonrpc":"2.0","id":1,"method":"m","params":null}'):
        assert decode_part(decoder_of(Params).decode, decode(line).params) == Params()


def test_a_notification_has_no_id() -> None:
    assert decode(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').id is UNSET


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, float("nan"), float("inf"), 10**40, object()])
def test_what_has_no_json_is_still_sent_as_a_line(value: object) -> None:
    line = encode_notification("m", {"value": value})
    assert json.loads(line, parse_constant=_refuse)["method"] == "m"


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")

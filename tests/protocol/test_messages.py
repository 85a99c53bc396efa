"""What one side writes the other reads as it was meant."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.protocol import messages

ids = st.integers(-(2**62), 2**62) | st.text()
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, max_size=4)


@given(ids, st.text(), objects)
def test_a_request_is_read_as_it_was_written(request_id: int | str, method: str, params: dict[str, Any]) -> None:
    encoded = messages.encode(params)
    for line in (
        messages.encode_request(request_id, method, params),
        messages.encode_request(request_id, method, encoded),
    ):
        found = messages.decode(line)
        assert (found.id, found.method, bytes(found.params)) == (request_id, method, encoded)


@given(st.text(), st.none() | objects)
def test_a_notification_is_read_as_it_was_written(name: str, params: dict[str, Any] | None) -> None:
    found = messages.decode(messages.encode_notification(f"notifications/{name}", params))
    assert (found.id, found.method) == (msgspec.UNSET, f"notifications/{name}")
    assert messages.decode_any(found.params) == params


@given(ids, objects)
def test_a_result_is_read_as_it_was_written(request_id: int | str, result: dict[str, Any]) -> None:
    encoded = messages.encode(result)
    for line in (messages.encode_result(request_id, result), messages.encode_result(request_id, encoded)):
        found = messages.decode(line)
        assert (found.id, bytes(found.result)) == (request_id, encoded)


@given(st.none() | ids, st.integers(-(2**31), 2**31), st.text(), values)
def test_an_error_is_read_as_it_was_written(request_id: int | str | None, code: int, message: str, data: Any) -> None:
    line = messages.encode_error(messages.RpcError(code, message, data), request_id)
    assert json.loads(line)["id"] == request_id
    found = messages.error_of(messages.decode(line))
    assert (found.code, found.message, found.data) == (code, message, data)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (b"5", messages.INTERNAL_ERROR, "The response has neither a result nor a valid error."),
        (b"", messages.INTERNAL_ERROR, "The response has neither a result nor a valid error."),
        (b"{}", messages.INTERNAL_ERROR, ""),
        (b'{"code":"x","message":3}', messages.INTERNAL_ERROR, ""),
        (b'{"code":true,"message":"m"}', messages.INTERNAL_ERROR, "m"),
        (b'{"code":-32601,"message":"m","more":1}', messages.METHOD_NOT_FOUND, "m"),
    ],
)
def test_an_error_that_does_not_fit_is_still_one(error: bytes, code: int, message: str) -> None:
    found = messages.read_error(messages.decode_any(error))
    assert (found.code, found.message) == (code, message)


@given(st.lists(objects, min_size=1, max_size=4))
def test_a_batch_is_taken_apart_without_reading_its_messages(parts: list[dict[str, Any]]) -> None:
    found = messages.decode_batch(b" " + messages.encode(parts))
    assert found is not None
    assert [messages.decode_any(part) for part in found] == parts


def test_what_is_not_a_list_is_not_a_batch() -> None:
    assert messages.decode_batch(b'{"jsonrpc":"2.0"}') is None
    with pytest.raises(messages.RpcError) as caught:
        messages.decode_batch(b"[{")
    assert caught.value.code == messages.PARSE_ERROR


@pytest.mark.parametrize("size", [0, 1001])
def test_a_batch_is_neither_empty_nor_endless(size: int) -> None:
    with pytest.raises(messages.RpcError) as caught:
        messages.decode_batch(messages.encode([{}] * size))
    assert caught.value.code == messages.INVALID_REQUEST


@pytest.mark.parametrize("given_id", [1.0, 1.5, "a", 7])
def test_an_id_goes_back_as_it_came(given_id: float | str) -> None:
    assert json.loads(messages.encode_result(given_id, {}))["id"] == given_id


def test_a_member_of_a_part_is_found_where_there_is_one() -> None:
    assert messages.member(b'{"a":{"b":1}}', "a") == {"b": 1}
    assert [messages.member(raw, "a") for raw in (b"", b"3", b"{", b"{}", b'["a"]')] == [None] * 5

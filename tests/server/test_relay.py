"""Relayed answers on the wire: another server's result with our label, and nothing else changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.support import about
from trysquare import Result, ToolError
from trysquare.server.convert import relayed_to_wire, result_to_wire

LABEL = {"trysquare/origin": {"server": "files", "tool": "read"}}


def test_what_the_other_server_sent_stays_as_it_was_written() -> None:
    body = b'{"content":[{"type":"text","text":"\\u00e9 1.50"}],"structuredContent":{"big":12345678901234567890}}'
    assert json.loads(relayed_to_wire(body, LABEL, modern=True)) == snapshot(
        {
            "content": [{"type": "text", "text": "é 1.50"}],
            "structuredContent": {"big": 12345678901234567890},
            "_meta": {"trysquare/origin": {"server": "files", "tool": "read"}},
            "resultType": "complete",
        }
    )


def test_the_label_is_added_to_the_metadata_of_the_other_server() -> None:
    body = b'{"_meta":{"example.com/a":1,"trysquare/origin":"forged"},"content":[]}'
    assert json.loads(relayed_to_wire(body, LABEL, modern=False)) == {
        "_meta": {"example.com/a": 1, **LABEL},
        "content": [],
    }


def test_a_note_that_is_no_object_gives_way_to_the_label() -> None:
    assert json.loads(relayed_to_wire(b'{"_meta":[1],"content":[]}', LABEL, modern=False))["_meta"] == LABEL


def test_the_handshake_era_gets_nothing_that_only_the_new_era_knows() -> None:
    body = b'{"resultType":"complete","content":[],"structuredContent":[1,2]}'
    assert json.loads(relayed_to_wire(body, {}, modern=False)) == {"content": []}
    assert json.loads(relayed_to_wire(body, {}, modern=True))["structuredContent"] == [1, 2]


def test_an_answer_without_content_gets_an_empty_one() -> None:
    assert json.loads(relayed_to_wire(b"{}", {}, modern=False)) == {"content": []}


@pytest.mark.parametrize(
    "body",
    [b"", b"[1]", b"null", b'{"a":', b'{"a":1} {"b":2}', b'{"a":"\xff"}', b'{"\xff":1}', b'{"a":NaN}', b'{"a":"\xc3'],
)
def test_what_is_no_json_object_in_utf8_never_gets_into_the_stream(body: bytes) -> None:
    with pytest.raises(ToolError, match="Cannot relay"):
        relayed_to_wire(body, LABEL, modern=True)
    wire = result_to_wire(Result.relay(body))
    assert wire["isError"] is True
    assert about(wire)["code"] == "TOOL_FAILED"


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), anything, max_size=4), st.booleans(), st.sampled_from([None, 1]))
def test_any_answer_passes_on_one_line_with_nothing_lost(
    answer: dict[str, Any], modern: bool, indent: int | None
) -> None:
    body = json.dumps(answer, ensure_ascii=False, indent=indent).encode()
    sent = relayed_to_wire(body, LABEL, modern=modern)
    assert b"\n" not in sent
    assert b"\r" not in sent
    told = json.loads(sent)
    for name in ("_meta", "resultType", "content", "structuredContent"):
        answer.pop(name, None)
        told.pop(name, None)
    assert told == answer

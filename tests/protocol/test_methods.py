"""Methods, their parameters and content blocks, compared with the tables and models of the official SDK."""

from __future__ import annotations

from typing import Any

import mcp_types
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods as sdk
from mcp_types import version as sdk_version
from pydantic import BaseModel, ValidationError

from trysquare.protocol import content, envelope, messages, methods, versions

EXTENSIONS = {"skills/list", "skills/get", "tasks/get", "tasks/update", "tasks/cancel"}
ENVELOPE = {versions.VERSION_KEY: versions.LATEST_STATELESS, versions.CAPABILITIES_KEY: {}}


def has(method: methods.Method, version: str) -> bool:
    return method.stateless if versions.is_stateless(version) else method.handshake


def test_the_versions_are_those_of_the_sdk() -> None:
    assert tuple(versions.VERSIONS) == sdk_version.KNOWN_PROTOCOL_VERSIONS
    assert versions.HANDSHAKE_VERSIONS == sdk_version.HANDSHAKE_PROTOCOL_VERSIONS
    assert versions.STATELESS_VERSIONS == sdk_version.MODERN_PROTOCOL_VERSIONS


@pytest.mark.parametrize("requested", [*versions.VERSIONS, "2024-10-07", "zzz", ""])
def test_a_handshake_is_answered_with_a_version_that_has_one(requested: str) -> None:
    answered = versions.negotiated(requested)
    assert answered == (requested if requested in versions.HANDSHAKE_VERSIONS else "2025-11-25")


@pytest.mark.parametrize("version", versions.VERSIONS)
def test_each_version_has_the_methods_that_the_sdk_has(version: str) -> None:
    ours = {name for name, method in methods.CLIENT_REQUESTS.items() if has(method, version)}
    assert ours - EXTENSIONS == {name for name, other in sdk.CLIENT_REQUESTS if other == version}
    asked = {name for name, method in methods.SERVER_REQUESTS.items() if has(method, version)}
    # Later versions ask inside of a result; earlier ones did not have every question.
    assert {name for name, other in sdk.SERVER_REQUESTS if other == version} <= asked


def test_results_that_may_ask_and_that_may_be_cached_are_those_of_the_sdk() -> None:
    known = {name: method for name, method in methods.CLIENT_REQUESTS.items() if name not in EXTENSIONS}
    assert {name for name, method in known.items() if method.may_ask} == sdk.INPUT_REQUIRED_METHODS
    assert {name for name, method in known.items() if method.cached} == sdk.CACHEABLE_METHODS


_any = st.sampled_from([None, True, 3, 1.5, "x", "", [], {}, {"a": 1}, ["x"], {"a": "x"}])
_VALID: dict[str, list[Any]] = {
    "name": ["x"],
    "uri": ["file:///x"],
    "protocolVersion": ["2025-11-25"],
    "capabilities": [{}],
    "level": ["info", "emergency"],
    "ref": [{"type": "ref/prompt", "name": "p"}, {"type": "ref/resource", "uri": "u"}],
    "argument": [{"name": "a", "value": "b"}],
    "context": [{"arguments": {"a": "b"}}, {"arguments": None}],
    "clientInfo": [{"name": "a", "version": "1"}],
    "notifications": [{"toolsListChanged": True}, {"resourceSubscriptions": ["a"]}],
}
_NEARLY: dict[str, list[Any]] = {
    "level": ["loud"],
    "ref": [{"type": "ref/prompt"}, {"type": "ref/resource", "name": "p"}, {"type": "other", "name": "p"}],
    "argument": [{"name": "a"}, {"name": "a", "value": 1}],
    "context": [{"arguments": {"a": 1}}],
    "clientInfo": [{"name": "a"}, {"name": "a", "version": 1}],
    "notifications": [{"toolsListChanged": "x"}],
}
_MET_LATER = {"inputResponses", "requestState"}
"""Read where they are used: earlier versions have no such members, and answers are checked by what was asked."""


def _value_of(member: str) -> st.SearchStrategy[Any]:
    valid = st.sampled_from(_VALID.get(member, [{}, "x"]))
    return st.one_of(valid, valid, valid, st.sampled_from(_NEARLY.get(member, [None])), _any)


def _accepts(method: str, version: str, params: dict[str, Any]) -> bool:
    try:
        sdk.validate_client_request(method, version, params)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("name", sorted(methods.CLIENT_REQUESTS.keys() - EXTENSIONS))
@given(data=st.data())
def test_parameters_are_accepted_where_the_sdk_accepts_them(name: str, version: str, data: st.DataObject) -> None:
    method = methods.CLIENT_REQUESTS[name]
    if not has(method, version):
        assert (name, version) not in sdk.CLIENT_REQUESTS
        return
    members = [one for one in method.params.__struct_encode_fields__ if one not in {"_meta", *_MET_LATER}]
    params: dict[str, Any] = {one: data.draw(_value_of(one)) for one in members if data.draw(st.integers(0, 4))}
    if versions.is_stateless(version):
        params["_meta"] = ENVELOPE
    decode = methods.decoder_of(method.params).decode
    raw = msgspec.Raw(messages.encode(params))
    if _accepts(name, version, params):
        messages.decode_part(decode, raw)
    else:
        with pytest.raises(messages.RpcError) as caught:
            messages.decode_part(decode, raw)
        assert caught.value.code == messages.INVALID_PARAMS


def test_an_error_names_the_place_in_the_words_of_the_protocol() -> None:
    raw = msgspec.Raw(b'{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":1}}')
    with pytest.raises(messages.RpcError, match=r"`params.argument.value`"):
        messages.decode_part(methods.decoder_of(methods.CompleteParams).decode, raw)


_BLOCKS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "text": (mcp_types.TextContent, {"text": "x"}),
    "image": (mcp_types.ImageContent, {"data": "eA==", "mimeType": "image/png"}),
    "audio": (mcp_types.AudioContent, {"data": "eA==", "mimeType": "audio/wav"}),
    "resource_link": (
        mcp_types.ResourceLink,
        {"uri": "file:///x", "name": "x", "title": "X", "size": 3, "icons": [{"src": "x", "theme": "dark"}]},
    ),
    "resource": (mcp_types.EmbeddedResource, {"resource": {"uri": "file:///x", "mimeType": "text/plain", "text": "x"}}),
}
_MORE: dict[str, Any] = {
    "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026"},
    "_meta": {"a": 1},
}
_REPLACEMENTS: list[Any] = [
    None, True, 3, 1.5, "x", [], {}, ["x"], {"a": 1}, {"audience": ["nobody"]}, {"priority": 1.5}, {"priority": -1},
    {"priority": 1}, [{"src": 1}], [{"src": "x", "theme": "dim"}], [{"sizes": ["1x1"]}], {"uri": "u"},
    {"uri": "u", "text": 1}, {"uri": "u", "blob": "eA=="}, {"text": "x"}, {"uri": "u", "text": "x", "_meta": 1},
]  # fmt: skip


@pytest.mark.parametrize("kind", _BLOCKS)
def test_content_is_accepted_where_the_sdk_accepts_it(kind: str) -> None:
    model, members = _BLOCKS[kind]
    whole = {"type": kind, **members, **_MORE, "unknown": 1}
    variants = [whole, *({**whole, name: value} for name in whole for value in _REPLACEMENTS if name != "type")]
    variants += [{name: part for name, part in whole.items() if name != left_out} for left_out in whole]
    for block in variants:
        assert _is_content(block) == ("type" in block and _is_valid(model, block)), block


def _is_content(block: dict[str, Any]) -> bool:
    try:
        msgspec.json.decode(messages.encode(block), type=content.ContentBlock)
    except messages.UNREADABLE:
        return False
    return True


def _is_valid(model: type[BaseModel], block: dict[str, Any]) -> bool:
    try:
        model.model_validate_json(messages.encode(block), strict=True)
    except ValidationError:
        return False
    return True


def test_a_sampling_request_is_read_as_a_whole() -> None:
    found = msgspec.convert(
        {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "One."}},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]},
            ],
            "maxTokens": 7,
            "modelPreferences": {"hints": [{"name": "small"}], "costPriority": 1},
        },
        methods.CreateMessageParams,
    )
    assert isinstance(found.messages[0].content, content.TextBlock)
    assert found.model_preferences is not None
    assert found.model_preferences.cost_priority == 1.0


def test_progress_and_cancellation_are_read_as_they_are_written() -> None:
    done = methods.progress_params("t", 1.0, None, "half")
    assert done == {"progressToken": "t", "progress": 1.0, "message": "half"}
    read = msgspec.convert(methods.progress_params(3, 1.0, 2.0, None), methods.ProgressParams)
    assert (read.progress_token, read.progress, read.total, read.message) == (3, 1.0, 2.0, None)
    assert methods.cancelled_id(msgspec.Raw(messages.encode(methods.cancelled_params(7, "gone")))) == 7
    assert [envelope.progress_token({"progressToken": token}) for token in (1, "a", True, 1.5, None)] == [
        1,
        "a",
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("elicitation", "forms", "urls"),
    [({}, True, False), ({"form": {}}, True, False), ({"url": {}}, False, True), ({"form": {}, "url": {}}, True, True),
     (None, False, False), (True, False, False)],
)  # fmt: skip
def test_what_a_client_can_be_asked(elicitation: object, forms: bool, urls: bool) -> None:
    assert (versions.takes_forms(elicitation), versions.takes_urls(elicitation)) == (forms, urls)

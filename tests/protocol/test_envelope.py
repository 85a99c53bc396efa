"""The envelope of 2026-07-28, compared with the SDK: header values, mirrored arguments, checks of a request."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound as sdk

from trysquare.protocol import envelope, messages, versions

text = st.text(st.characters(exclude_categories=["Cs"])) | st.text(st.sampled_from("=?base64?=aGk \t\n"), max_size=20)


@given(text)
def test_a_text_survives_as_a_header_value(value: str) -> None:
    encoded = envelope.encode_header(value)
    assert encoded.isascii()
    assert encoded == encoded.strip()
    assert envelope.decode_header(encoded) == value


@given(text)
def test_header_values_pass_to_the_sdk_and_back(value: str) -> None:
    assert sdk.decode_header_value(envelope.encode_header(value)) == value
    assert envelope.decode_header(sdk.encode_header_value(value)) == value


@given(
    st.text(st.characters(max_codepoint=127), max_size=40)
    | st.from_regex(r"=\?base64\?[A-Za-z0-9+/=]{0,12}\?=", fullmatch=True)
)
def test_a_header_value_means_what_it_means_to_the_sdk(value: str) -> None:
    assert envelope.decode_header(value) == sdk.decode_header_value(value)


@pytest.mark.parametrize(
    "value", ["=?base64?é?=", "=?base64?a?=", "=?base64?aGl=?=", "=?base64?/w==?=", "=?base64?a b=?="]
)
def test_malformed_base64_means_nothing(value: str) -> None:
    assert envelope.decode_header(value) is None


def test_half_a_character_is_sent_and_never_matches() -> None:
    assert envelope.decode_header(envelope.encode_header("\ud83d")) is None
    assert envelope.decode_header(None) is None


_names = st.sampled_from(["a", "b", "type", "properties", "items"])
_tokens = st.sampled_from(["Region", "region", "Tenant-Id", "bad token", "", 5, None, "ü"])
_types = st.sampled_from(["string", "integer", "boolean", "number", "object", None, ["string"], 3])
_NESTED = ("items", "not", "if", "then", "contentSchema", "additionalProperties")
_LISTED = ("allOf", "anyOf", "prefixItems", "items")
_NAMED = ("$defs", "patternProperties", "dependentSchemas")


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    by_name = st.dictionaries(_names, inner, max_size=3)
    keywords = {"properties": by_name, envelope.ANNOTATION: _tokens, "type": _types, "default": inner}
    keywords |= dict.fromkeys(_NESTED, inner) | dict.fromkeys(_NAMED, by_name)
    keywords |= dict.fromkeys(_LISTED, st.lists(inner, max_size=2))
    return st.fixed_dictionaries({}, optional=keywords)


_leaf = st.fixed_dictionaries({"type": _types}, optional={envelope.ANNOTATION: _tokens}) | st.sampled_from(
    [None, True, 3, "x", []]
)
_plain = st.dictionaries(
    _names,
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "boolean", "number"])},
        optional={envelope.ANNOTATION: st.sampled_from(["Region", "Tenant", "Flag", "REGION"])},
    ),
    max_size=3,
)
schemas = (
    st.recursive(_leaf, _around, max_leaves=8)
    | _plain.map(lambda parts: {"type": "object", "properties": parts})
    | _plain.map(lambda parts: {"properties": {"a": {"type": "object", "properties": parts}}})
)
_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.none(), max_size=1)
)
arguments = st.dictionaries(_names, _scalars | st.dictionaries(_names, _scalars, max_size=3), max_size=4)


@given(schemas)
def test_annotations_are_valid_where_the_sdk_finds_them_valid(schema: Any) -> None:
    found = {one.path: one.token for one in envelope.mirrored_arguments(schema)}
    assert found == _mirrored_by_the_sdk(schema)


def _mirrored_by_the_sdk(schema: Any) -> dict[tuple[str, ...], str]:
    """By the path of each argument; none if an annotation is invalid, since clients drop such a tool."""
    return sdk.x_mcp_header_map(schema) if sdk.find_invalid_x_mcp_header(schema) is None else {}


@given(schemas, arguments)
def test_arguments_are_mirrored_as_the_sdk_mirrors_them(schema: Any, given_arguments: dict[str, Any]) -> None:
    wanted = envelope.mirrored_arguments(schema)
    headers = envelope.mirror_headers(wanted, given_arguments)
    assert {name: sdk.decode_header_value(value) for name, value in headers.items()} == {
        name: sdk.decode_header_value(value)
        for name, value in sdk.mcp_param_headers({one.path: one.token for one in wanted}, given_arguments).items()
    }
    envelope.require_mirrored(wanted, given_arguments, _lower(headers))


_WRITTEN = [
    "1",
    "1.0",
    "1.",
    "01",
    "-0",
    "1e0",
    "2.5",
    "true",
    "True",
    "x",
    "",
    "=?base64?eA==?=",
    "=?base64?x?=",
    None,
]
_VALUES: list[Any] = [1, 1.0, 0, -0.0, 2.5, 10**30, True, False, "1", "1.0", "x", "", " ", None, [1], {}, float("inf")]


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_a_header_agrees_with_its_argument_where_the_sdk_says_so(kind: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": kind, envelope.ANNOTATION: "Region"}}}
    wanted = envelope.mirrored_arguments(schema)
    for value, written in product(_VALUES, [*_WRITTEN, *(envelope.encode_header(str(value)) for value in _VALUES)]):
        headers = {} if written is None else {"mcp-param-region": written}
        expected = sdk.validate_mcp_param_headers(schema, {"a": value}, headers)
        assert _refusal(wanted, {"a": value}, headers) == (None if expected is None else expected.code), (
            value,
            written,
        )


def _refusal(wanted: envelope.MirroredArguments, found: Any, headers: dict[str, str]) -> int | None:
    try:
        envelope.require_mirrored(wanted, found, headers)
    except messages.RpcError as error:
        return error.code
    return None


_KEYWORDS = (
    *_NESTED,
    *_LISTED,
    *_NAMED,
    "properties",
    "default",
    "enum",
    "const",
    "examples",
    "unknown",
    "else",
    "oneOf",
)


@pytest.mark.parametrize("keyword", sorted(set(_KEYWORDS)))
def test_an_annotation_is_found_where_the_sdk_finds_it(keyword: str) -> None:
    one = {"type": "string", envelope.ANNOTATION: "Region"}
    for value in (
        one,
        [one],
        [[one]],
        {"a": one},
        {"a": [one]},
        [{"properties": {"a": one}}],
        {"a": {"properties": {"b": one}}},
    ):
        schema = {"properties": {"valid": {"type": "integer", envelope.ANNOTATION: "Tenant"}}, keyword: value}
        found = {one.path: one.token for one in envelope.mirrored_arguments(schema)}
        assert found == _mirrored_by_the_sdk(schema), value


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


META = {versions.VERSION_KEY: versions.LATEST_STATELESS, versions.CAPABILITIES_KEY: {}}
_metas = st.sampled_from(
    [
        None,
        [],
        {},
        META,
        {**META, versions.VERSION_KEY: None},
        {**META, versions.VERSION_KEY: 3},
        {**META, versions.VERSION_KEY: "2099-01-01"},
        {versions.VERSION_KEY: versions.LATEST_STATELESS},
        {versions.CAPABILITIES_KEY: {}},
    ]
)
_sent = st.fixed_dictionaries(
    {},
    optional={
        envelope.VERSION_HEADER: st.sampled_from([versions.LATEST_STATELESS, "2099-01-01", "2025-11-25"]),
        envelope.METHOD_HEADER: st.sampled_from(["tools/call", "tools/list"]),
        envelope.NAME_HEADER: st.sampled_from(["echo", "=?base64?ZWNobw==?=", "other"]),
    },
)


@given(
    _metas,
    st.none() | _sent | st.just(envelope.request_headers(versions.LATEST_STATELESS, "tools/call", "echo")),
    st.sampled_from(["echo", None]),
)
def test_a_request_fails_the_check_that_it_fails_at_the_sdk(
    meta: Any, headers: dict[str, str] | None, name: str | None
) -> None:
    body = {"method": "tools/call", "params": {"_meta": meta, "name": name}}
    expected = sdk.classify_inbound_request(body, headers=headers)
    refused = None
    try:
        version = envelope.envelope_version(meta)
        if headers is not None:
            envelope.require_headers(headers, version, "tools/call", name)
        envelope.require_version(version)
    except messages.RpcError as error:
        refused = error
    if isinstance(expected, sdk.InboundLadderRejection):
        assert refused is not None
        assert (refused.code, refused.data) == (expected.code, expected.data)
    else:
        assert refused is None


@given(st.sampled_from(sorted(sdk.NAME_BEARING_METHODS)) | st.just("tools/list"), text.filter(bool))
def test_the_headers_of_a_request_repeat_it(method: str, name: str) -> None:
    headers = envelope.request_headers(versions.LATEST_STATELESS, method, name)
    is_named = method in sdk.NAME_BEARING_METHODS
    assert (envelope.NAME_HEADER in headers) == is_named
    envelope.require_headers(headers, versions.LATEST_STATELESS, method, name if is_named else None)


def test_an_enveloped_request_is_recognized_by_its_version() -> None:
    assert envelope.is_enveloped(META)
    assert not any(envelope.is_enveloped(meta) for meta in (None, [], {}, {versions.CAPABILITIES_KEY: {}}))

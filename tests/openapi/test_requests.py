"""Requests: where each argument goes, as a real server receives it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.content.web_server import Answered, Asked, answer_json, web_server
from trysquare import Client, ErrorCode, ToolError, from_openapi
from trysquare.store import SystemSecrets

SPEC: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}}


def spec(path: str, operation: dict[str, Any], method: str = "get", **more: Any) -> dict[str, Any]:
    return {**SPEC, "paths": {path: {method: {"operationId": "ask", **operation}}}, **more}


def parameter(name: str, location: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    schema = {"array": {"type": "array", "items": {"type": "string"}}}.get(kind, {"type": kind})
    return {"name": name, "in": location, "schema": schema, **more}


async def sent(document: dict[str, Any], arguments: dict[str, Any], answer: Any = None, **options: Any) -> Asked:
    """What the server received for one call."""
    async with web_server(answer or (lambda asked: answer_json({"ok": True}))) as server:
        toolset = from_openapi(document, base_url=f"{server.url}/v1/", **options)
        async with Client(toolset) as client:
            await client.call_tool("ask", arguments)
        return server.requests[-1]


@pytest.mark.parametrize(
    ("given", "value", "target"),
    [
        (parameter("q", "query"), "a b&c/ü", "/v1/x?q=a%20b%26c%2F%C3%BC"),
        (parameter("q", "query", "boolean"), True, "/v1/x?q=true"),
        (parameter("q", "query", "array"), ["a", "b"], "/v1/x?q=a&q=b"),
        (parameter("q", "query", "array", explode=False), ["a", "b"], "/v1/x?q=a,b"),
        (parameter("q", "query", "array", explode=False, style="pipeDelimited"), ["a", "b"], "/v1/x?q=a%7Cb"),
        (parameter("q", "query", "object", style="deepObject"), {"a": 1, "b": {"c": [2]}}, "/v1/x?q[a]=1&q[b][c][]=2"),
        (parameter("q", "query", "object"), {"a": 1, "b": 2}, "/v1/x?a=1&b=2"),
        (parameter("q", "query", allowReserved=True), "a/b:c", "/v1/x?q=a/b:c"),
    ],
)
async def test_query_parameters_have_their_style(given: dict[str, Any], value: Any, target: str) -> None:
    name = given["name"]
    if given["schema"] == {"type": "object"}:
        given["schema"] = {"type": "object", "additionalProperties": True}
    asked = await sent(spec("/x", {"parameters": [given]}), {name: value})
    assert asked.target == target


@pytest.mark.parametrize(
    ("more", "value", "target"),
    [
        ({}, "a/b?c", "/v1/x/a%2Fb%3Fc"),
        ({"style": "label"}, "a", "/v1/x/.a"),
        ({"style": "matrix"}, "a", "/v1/x/;id=a"),
    ],
)
async def test_a_path_parameter_stays_in_its_place(more: dict[str, Any], value: Any, target: str) -> None:
    given = spec("/x/{id}", {"parameters": [parameter("id", "path", required=True, **more)]})
    assert (await sent(given, {"id": value})).target == target


@pytest.mark.parametrize("value", ["..", ".", ""])
async def test_a_path_parameter_cannot_lead_to_another_path(value: str) -> None:
    given = spec("/x/{id}", {"parameters": [parameter("id", "path", required=True)]})
    with pytest.raises(ToolError) as refused:
        await sent(given, {"id": value})
    assert refused.value.code == ErrorCode.VALIDATION_INVALID_PARAM


async def test_headers_and_cookies_are_sent_and_cannot_be_broken_out_of() -> None:
    given = spec("/x", {"parameters": [parameter("X-Trace", "header"), parameter("sid", "cookie")]})
    asked = await sent(given, {"X_Trace": "t 1", "sid": "a;b"})
    assert asked.headers["x-trace"] == "t 1"
    assert asked.headers["cookie"] == "sid=a%3Bb"
    with pytest.raises(ToolError) as refused:
        await sent(given, {"X_Trace": "a\r\nAuthorization: x"})
    assert refused.value.code == ErrorCode.VALIDATION_INVALID_PARAM


OBJECT = {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {}}}}


@pytest.mark.parametrize(
    ("media_type", "schema", "arguments", "expected"),
    [
        ("application/json", OBJECT, {"name": "a"}, b'{"name": "a"}'),
        ("application/json", {"type": "array", "items": {"type": "integer"}}, {"body": [1, 2]}, b"[1, 2]"),
        ("application/merge-patch+json", OBJECT, {"name": "ü"}, '{"name": "ü"}'.encode()),
        ("application/x-www-form-urlencoded", OBJECT, {"name": "a b", "tags": ["x", "y"]}, b"name=a+b&tags=x&tags=y"),
        ("text/plain", {"type": "string"}, {"body": "hello"}, b"hello"),
        ("application/octet-stream", {}, {"body": "aGk="}, b"hi"),
    ],
)
async def test_bodies_have_their_media_type(
    media_type: str, schema: dict[str, Any], arguments: dict[str, Any], expected: bytes
) -> None:
    operation = {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}
    asked = await sent(spec("/x", operation, "post"), arguments)
    assert asked.body == expected
    assert asked.headers["content-type"] == media_type


async def test_files_are_sent_as_parts_of_a_form() -> None:
    schema = {
        "type": "object",
        "properties": {"file": {"type": "string", "format": "binary"}, "n": {"type": "integer"}},
    }
    operation = {"requestBody": {"content": {"multipart/form-data": {"schema": schema}}}}
    asked = await sent(spec("/x", operation, "post"), {"file": "aGk=", "n": 3})
    assert asked.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="file"; filename="file"' in asked.body
    assert b"\r\n\r\nhi\r\n" in asked.body
    assert b"\r\n\r\n3\r\n" in asked.body


async def test_json_text_is_read_where_an_object_has_no_names() -> None:
    schema = {
        "type": "object",
        "properties": {"labels": {"type": "object", "additionalProperties": {"type": "integer"}}},
    }
    operation = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    for given in ('{"a": 1}', {"a": 1}):
        asked = await sent(spec("/x", operation, "post"), {"labels": given})
        assert json.loads(asked.body) == {"labels": {"a": 1}}


SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "inQuery": {"type": "apiKey", "in": "query", "name": "key"},
    "login": {"type": "http", "scheme": "basic"},
    "token": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
}


@pytest.mark.parametrize(
    ("scheme", "header", "value"),
    [
        ("key", "x-key", "s3:cret"),
        ("login", "authorization", "Basic czM6Y3JldA=="),
        ("token", "authorization", "Bearer s3:cret"),
        ("oauth", "authorization", "Bearer s3:cret"),
    ],
)
async def test_each_scheme_signs_in_its_own_way(scheme: str, header: str, value: str) -> None:
    given = spec("/x", {"security": [{scheme: []}]}, components={"securitySchemes": SCHEMES})
    assert (await sent(given, {}, auth={scheme: "s3:cret"})).headers[header] == value


async def test_a_secret_comes_from_the_environment_and_is_missed_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = spec("/x", {"security": [{"inQuery": []}]}, components={"securitySchemes": SCHEMES})
    with pytest.raises(ToolError) as refused:
        await sent(given, {})
    assert refused.value.code == ErrorCode.CONFIG_INVALID
    assert "OPENAPI_IN_QUERY" in str(refused.value.instruction)
    monkeypatch.setenv("OPENAPI_IN_QUERY", "a&b")
    assert (await sent(given, {})).target == "/v1/x?key=a%26b"


async def test_a_secret_comes_from_the_keyring_or_from_a_store_of_the_users_own() -> None:
    given = spec("/x", {"security": [{"inQuery": []}]}, components={"securitySchemes": SCHEMES})
    SystemSecrets().write("OPENAPI_IN_QUERY", "kept")
    assert (await sent(given, {})).target == "/v1/x?key=kept"
    assert (await sent(given, {}, secrets={"OPENAPI_IN_QUERY": "own"}.get)).target == "/v1/x?key=own"


async def test_an_operation_that_may_be_called_without_a_sign_in_is() -> None:
    given = spec("/x", {"security": [{"key": []}, {}]}, components={"securitySchemes": SCHEMES})
    assert "x-key" not in (await sent(given, {})).headers
    assert (await sent(given, {}, auth={"key": "k"})).headers["x-key"] == "k"


async def test_a_redirect_to_another_origin_gets_no_secret() -> None:
    async with web_server(lambda asked: answer_json({})) as other:
        elsewhere = Answered(status=302, headers={"Location": f"{other.url}/steal"})
        given = spec("/x", {"security": [{"key": []}]}, components={"securitySchemes": SCHEMES})
        with pytest.raises(ToolError):
            await sent(given, {}, lambda asked: elsewhere, auth={"key": "k"})
        assert other.requests == []


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9", "http://localhost:9", "http://169.254.169.254", "http://[::1]"]
)
async def test_a_private_address_of_a_document_is_refused(address: str) -> None:
    toolset = from_openapi(spec("/x", {}, servers=[{"url": address}]))
    async with Client(toolset) as client:
        with pytest.raises(ToolError) as refused:
            await client.call_tool("ask", {})
    assert refused.value.code == ErrorCode.FETCH_NOT_ALLOWED

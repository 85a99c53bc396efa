"""An API as tools: answers, errors, a FastAPI application in this process, and the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

from tests.content.web_server import Answered, Asked, answer_json, web_server
from trysquare import Client, ErrorCode, Image, ToolError, from_fastapi, from_openapi
from trysquare.cli.main import main

PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")


class Item(BaseModel):
    name: str
    price: float
    labels: dict[str, int] = {}


def shop() -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        app.state.open = True
        yield
        app.state.open = False

    app = FastAPI(title="Shop", version="2", lifespan=lifespan)

    @app.get("/items/{item_id}")
    def read_item(item_id: int, verbose: bool = False) -> dict[str, Any]:
        if item_id != 1:
            raise HTTPException(404, "no such item")
        return {"name": "Tea", "verbose": verbose, "open": app.state.open}

    @app.post("/items", status_code=201)
    def create_item(item: Item, x_trace: Annotated[str, Header()] = "") -> dict[str, Any]:
        return {"item": item.model_dump(), "trace": x_trace}

    return app


async def test_an_application_is_called_in_process_with_its_lifespan() -> None:
    app = shop()
    async with Client(from_fastapi(app)) as client:
        found = await client.call_tool("read_item", {"item_id": 1, "verbose": True})
        assert found.data == {"name": "Tea", "verbose": True, "open": True}
        made = await client.call_tool("create_item", {"name": "Mug", "price": 2, "labels": '{"a": 1}', "x_trace": "t"})
        assert made.data == {"item": {"name": "Mug", "price": 2.0, "labels": {"a": 1}}, "trace": "t"}
    assert app.state.open is False


async def test_a_wrong_argument_comes_back_with_the_corrected_call() -> None:
    async with Client(from_fastapi(shop())) as client:
        with pytest.raises(ToolError) as refused:
            await client.call_tool("read_item", {"item": 1})
        assert refused.value.code == ErrorCode.VALIDATION_UNKNOWN_PARAM
        assert refused.value.next == {"tool": "read_item", "arguments": {"item_id": 1}}


@pytest.mark.parametrize(
    ("answered", "code"),
    [
        (answer_json({"detail": "no such item"}, 404), ErrorCode.UPSTREAM_REFUSED),
        (answer_json({"error": {"message": "no"}}, 403), ErrorCode.PERMISSION_DENIED),
        (Answered(status=429, headers={"Retry-After": "7"}), ErrorCode.UPSTREAM_UNAVAILABLE),
        (Answered(status=500, body=b"<html>", headers={"Content-Type": "text/html"}), ErrorCode.UPSTREAM_UNAVAILABLE),
        (None, ErrorCode.UPSTREAM_LOST),
        (Answered(body=b"x" * 10_000_001), ErrorCode.UPSTREAM_MALFORMED),
    ],
)
async def test_what_the_api_refuses_has_a_code_and_says_what_to_do(answered: Answered | None, code: ErrorCode) -> None:
    with pytest.raises(ToolError) as refused:
        await _answer_of(answered)
    assert refused.value.code == code
    assert refused.value.instruction


async def test_an_api_that_does_not_run_is_unavailable() -> None:
    async with web_server(lambda asked: None) as server:
        url = server.url
    async with Client(from_openapi(_spec(), base_url=url)) as client:
        with pytest.raises(ToolError) as refused:
            await client.call_tool("get_x", {})
    assert refused.value.code == ErrorCode.UPSTREAM_UNAVAILABLE


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        (answer_json([1, 2]), [1, 2]),
        (Answered(body=b"plain", headers={"Content-Type": "text/plain"}), "plain"),
        (Answered(body=b"not json", headers={"Content-Type": "application/json"}), "not json"),
    ],
)
async def test_answers_are_values_and_texts(answered: Answered, expected: Any) -> None:
    found = await _answer_of(answered)
    assert found.data == expected or found.text == expected


async def test_pictures_are_content_and_an_empty_answer_is_a_success() -> None:
    picture = await _answer_of(Answered(body=PIXEL, headers={"Content-Type": "image/png"}))
    assert isinstance(picture.content[0], Image)
    empty = await _answer_of(Answered(status=204))
    assert empty.is_error is False


def _spec() -> dict[str, Any]:
    return {"openapi": "3.0.0", "info": {"title": "Shop", "version": "1"}, "paths": {"/x": {"get": {}}}}


async def _answer_of(answered: Answered | None) -> Any:
    async with (
        web_server(lambda asked: answered) as server,
        Client(from_openapi(_spec(), base_url=server.url)) as client,
    ):
        return await client.call_tool("get_x", {})


async def test_a_method_that_asks_needs_a_human() -> None:
    given = {**_spec(), "paths": {"/x/{id}": {"delete": {}}}}
    async with web_server(lambda asked: answer_json({})) as server:
        toolset = from_openapi(given, base_url=server.url, consent=["DELETE"])
        async with Client(toolset) as client:
            with pytest.raises(ToolError) as refused:
                await client.call_tool("delete_x_by_id", {"id": "1"})
        assert refused.value.code == ErrorCode.CONSENT_REQUIRED
        assert server.requests == []


def test_a_document_is_a_source_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "api.json"
    file.write_text(json.dumps(_spec()), encoding="utf-8")
    assert main(["list", str(file), "--json"]) == 0
    assert "get_x" in {tool["name"] for tool in json.loads(capsys.readouterr().out)["tools"]}


def test_the_address_of_the_api_must_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "api.json"
    file.write_text(json.dumps(_spec()), encoding="utf-8")
    assert main(["list", str(file), "--openapi-url", "example.org"]) != 0
    assert "--openapi-url" in capsys.readouterr().err


def recorded(asked: Asked) -> Answered:
    return answer_json({"path": asked.path, "key": asked.headers.get("x-key")})


async def test_an_api_stands_behind_the_gateway(tmp_path: Path) -> None:
    spec = {**_spec(), "security": [{"key": []}]}
    spec["components"] = {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}}
    (tmp_path / "api.json").write_text(json.dumps(spec), encoding="utf-8")
    async with web_server(recorded) as server:
        entry = {"openapi": "api.json", "url": server.url, "env": {"OPENAPI_KEY": "s3"}}
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"shop": entry}}), encoding="utf-8")
        command = [sys.executable, "-m", "trysquare", "serve", "--gateway", str(file)]
        async with Client.stdio(command, cwd=tmp_path) as client:
            assert (await client.list_tools())[0].name == "mcp_shop"
            found = await client.call_tool("mcp_shop", {"action": "execute", "tool_name": "get_x"})
    assert found.data == {"path": "/x", "key": "s3"}

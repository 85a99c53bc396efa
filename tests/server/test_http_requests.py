"""Odd requests over HTTP: headers twice, paths, methods, weights, origins, batches, and mounted applications."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.server.clients import MODERN_META, served_http
from tests.server.raw_http import (
    RawConnection,
    Response,
    connected,
    head_of,
    modern,
    usual_fields,
    whole_request,
)
from tests.server.sample import WORD, declared
from tests.server.test_http_streams import Session, Steps, call, cancelled
from trysquare import CallContext, Result, StaticToolset, tool
from trysquare.server import HttpOptions, OAuthOptions, ServeOptions, StaticTokens, http_app

PAGE = "https://app.example"


@asynccontextmanager
async def connection(toolset: Any = None, **options: Any) -> AsyncGenerator[RawConnection]:
    async with (
        served_http(toolset or declared.toolset(), None, HttpOptions(**options)) as base,
        connected(base) as client,
    ):
        yield client


async def listed(client: RawConnection, *more: tuple[str, str], without: str = "") -> Response:
    """The response to `tools/list` with more headers, and without one of the usual."""
    fields = [(name, value) for name, value in usual_fields() if name.lower() != without]
    await client.send(whole_request([*fields, *more], modern("tools/list")))
    return await client.response()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Host", ("127.0.0.1", "127.0.0.1")),
        ("Host", ("127.0.0.1", "evil.example")),
        ("Origin", ("http://localhost:1", "http://localhost:1")),
        ("Authorization", ("Bearer right", "Bearer right")),
        ("Authorization", ("Bearer right", "Bearer wrong")),
        ("Content-Type", ("application/json", "text/plain")),
        ("Mcp-Session-Id", ("a", "b")),
        ("Last-Event-ID", ("1_1", "1_2")),
        ("MCP-Protocol-Version", ("2026-07-28", "2026-07-28")),
        ("MCP-Protocol-Version", ("2026-07-28", "2025-11-25")),
        ("MCP-Protocol-Version", ("2025-11-25", "2025-11-25")),
        ("Mcp-Method", ("tools/list", "tools/call")),
        ("Mcp-Name", ("a", "b")),
        ("Mcp-Param-Region", ("a", "b")),
    ],
)
async def test_a_header_that_two_readers_could_take_for_two_values_is_refused(
    name: str, values: tuple[str, str]
) -> None:
    authorized = [] if name == "Authorization" else [("Authorization", "Bearer right")]
    async with connection(verifier=StaticTokens(["right"])) as client:
        more = [*authorized, *((name, value) for value in values)]
        assert (await listed(client, *more, without=name.lower())).status == 400
        assert (await listed(client, ("Authorization", "Bearer right"))).status == 200


async def test_lists_may_come_in_several_headers() -> None:
    async with connection() as client:
        both = [("Accept", "application/json"), ("Accept", "text/event-stream")]
        assert (await listed(client, *both, without="accept")).status == 200


@pytest.mark.parametrize("name", ["add", "add ", "add\t ", " add", "=?base64?YWRk?= "])
async def test_blanks_around_a_header_are_no_part_of_it(name: str) -> None:
    body = modern("tools/call", name="add", arguments={"a": 1, "b": 2})
    async with connection() as client:
        await client.send(whole_request(usual_fields("tools/call", name), body))
        assert (await client.response()).json["result"]["structuredContent"]["result"] == 3


@pytest.mark.parametrize("name", ["add\xa0", "add\x85", "ad d", "ADD", "=?base64?YWRk?= x"])
async def test_other_characters_are(name: str) -> None:
    body = modern("tools/call", name="add", arguments={"a": 1, "b": 2})
    async with connection() as client:
        await client.send(whole_request(usual_fields("tools/call", name), body))
        assert (await client.response()).json["error"]["code"] == -32020


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json, text/event-stream", 200),
        ("*/*", 200),
        ("application/*, text/*;q=0.1", 200),
        ("APPLICATION/JSON;q=1, Text/Event-Stream ; q=0.5", 200),
        ("application/json, text/event-stream;q=0.001", 200),
        ("application/json, text/event-stream;q=0", 406),
        ("application/json;q=0.000, */*", 406),
        ("application/json, text/*;q=0, */*", 406),
        ("*/*;q=0", 406),
        ("application/json", 406),
        ("", 406),
        (";;,,", 406),
    ],
)
async def test_what_a_client_accepts_is_read_with_its_weights(accept: str, status: int) -> None:
    async with connection() as client:
        assert (await listed(client, ("Accept", accept), without="accept")).status == status


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "TRACE"])
async def test_other_methods_are_refused_with_those_that_are_not(method: str) -> None:
    async with connection() as client:
        await client.send(head_of(usual_fields(), method))
        modern_era = await client.head()
        assert (modern_era.status, modern_era.headers["allow"]) == (405, "POST")
    async with connection() as client:
        await client.send(head_of([("Host", "127.0.0.1")], method))
        handshake = await client.head()
        assert (handshake.status, handshake.headers["allow"]) == (405, "GET, POST, DELETE")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/mcp", 200),
        ("/%6dcp", 200),
        ("/mcp?x=%ff&y", 200),
        ("http://127.0.0.1/mcp", 200),
        ("/mcp/", 200),
        ("//mcp", 404),
        ("/mcp%2f", 200),
        ("/mcp/x", 404),
        ("/%ff", 404),
        ("/", 404),
        ("/..;/mcp", 404),
    ],
)
async def test_only_its_own_path_leads_to_the_endpoint(path: str, status: int) -> None:
    body = modern("tools/list")
    async with connection() as client:
        head = head_of([*usual_fields(), ("Content-Length", str(len(body)))], path=path)
        await client.send(head + body)
        assert (await client.response()).status == status


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
async def test_the_health_check_is_read_and_nothing_else(method: str) -> None:
    async with connection(verifier=StaticTokens(["right"])) as client:
        await client.send(head_of([("Host", "some.balancer")], method, "/healthz"))
        answer = await client.head()
        assert answer.status == (200 if method in ("GET", "HEAD") else 405)
        if method == "HEAD":
            assert await client.reader.read(0) == b""
        elif method == "GET":
            length = int(answer.headers["content-length"])
            assert json.loads(await client.reader.readexactly(length))["status"] == "ok"
        else:
            assert answer.headers["allow"] == "GET, HEAD"


async def test_a_page_of_an_allowed_origin_may_read_responses_in_every_form() -> None:
    origin = ("Origin", PAGE)
    async with connection(allowed_origins=(f"{PAGE}/",)) as client:
        plain = await listed(client, origin)
        body = modern("tools/call", name="steps", arguments={})
        named = json.loads(body)
        named["params"]["_meta"]["progressToken"] = 1
        await client.send(whole_request([*usual_fields("tools/call", "steps"), origin], json.dumps(named).encode()))
        events = await client.response()
        await client.send(whole_request([*usual_fields("tools/call", "no"), origin], modern("tools/list")))
        refused = await client.response()
    assert plain.headers["content-type"] == "application/json"
    assert events.headers["content-type"] == "text/event-stream"
    assert refused.status == 400
    for response in (plain, events, refused):
        assert response.headers["access-control-allow-origin"] == PAGE
        assert response.headers["vary"] == "Origin"
        assert "Mcp-Session-Id" in response.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        ("authorization,mcp-method", "authorization,mcp-method"),
        ("x-a , x-b", "x-a , x-b"),
        ("", "*"),
        ("x-a; y", "*"),
        ("x\xe9", "*"),
        ("a" + "\x0b" + "b", "*"),
    ],
)
async def test_a_browser_that_asks_first_is_answered_with_names_only(wanted: str, allowed: str) -> None:
    asked = [("Host", "127.0.0.1"), ("Origin", PAGE), ("Access-Control-Request-Method", "POST")]
    async with connection(allowed_origins=(PAGE,), verifier=StaticTokens(["t"])) as client:
        await client.send(head_of([*asked, ("Access-Control-Request-Headers", wanted)], "OPTIONS"))
        answer = await client.response()
        if answer.status == 400:
            assert answer.headers["content-type"].startswith("text/plain"), "the parser of requests refused it"
            return
        assert (answer.status, answer.headers["access-control-allow-headers"]) == (200, allowed)
        assert answer.headers["access-control-allow-methods"] == "GET, POST, DELETE"


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("Host", "localhost:8000", 200),
        ("Host", "localhost:\xb2", 421),
        ("Host", "localhost:", 421),
        ("Host", "localhost:80@evil.example", 421),
        ("Host", "", 421),
        ("Origin", "http://localhost:\xb9", 403),
        ("Origin", "http://localhost:5173", 200),
        ("Origin", "\xff", 403),
    ],
)
async def test_a_host_and_an_origin_are_what_is_allowed_with_a_port_at_most(name: str, value: str, status: int) -> None:
    async with connection() as client:
        assert (await listed(client, (name, value), without=name.lower())).status == status


@asynccontextmanager
async def mounted(**options: Any) -> AsyncGenerator[httpx2.AsyncClient]:
    """The application below a prefix of another one, which does not run its lifespan."""
    app = http_app(declared.toolset(), ServeOptions(name="mounted"), HttpOptions(**options))
    outer = Starlette(routes=[Mount("/api/v1", app)])
    transport = httpx2.ASGITransport(app=outer)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:80/api/v1") as client:
        yield client
    app.close()


async def test_an_application_can_be_mounted_below_a_prefix_without_a_lifespan() -> None:
    fields = dict(usual_fields("tools/call", "add"))
    body = modern("tools/call", name="add", arguments={"a": 1, "b": 2})
    async with mounted() as client:
        called = await client.post("/mcp", content=body, headers=fields)
        elsewhere = await client.post("/mcpx", content=body, headers=fields)
        health = await client.get("/healthz", headers={"Host": "some.balancer"})
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        accept = {"Accept": "application/json, text/event-stream"}
        opened = await client.post(
            "/mcp", json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}, headers=accept
        )
        session = {**accept, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        pinged = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=session)
    assert called.json()["result"]["structuredContent"]["result"] == 3
    assert (elsewhere.status_code, health.status_code, pinged.json()["result"]) == (404, 200, {})


async def test_a_batch_of_the_version_that_has_them_is_answered_with_an_event_for_each() -> None:
    async with served_http(Steps().toolset) as base:
        session = await Session(base, "2025-03-26").open()
        answer = await session.post(
            [
                call("add", 1, {"a": 1, "b": 2}),
                {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
                3,
                {"jsonrpc": "2.0", "id": 4, "method": 3},
                {"jsonrpc": "2.0", "id": 5, "method": "no/such"},
                call("add", 1, {"a": 1, "b": 2}),
            ]
        )
        quiet = await session.post([cancelled(9)])
    assert (quiet.status, quiet.body) == (202, b"")
    events = [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: {")]
    codes = [(event["id"], event.get("error", {}).get("code")) for event in events]
    assert sorted(codes, key=str) == [(1, -32600), (1, None), (4, -32600), (5, -32601), (None, -32600)]


@pytest.mark.parametrize("batch", [[], [{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * 1001, [1] * 1001])
async def test_a_batch_without_messages_or_with_too_many_is_refused(batch: list[Any]) -> None:
    async with served_http(Steps().toolset) as base:
        session = await Session(base, "2025-03-26").open()
        answer = await session.post(batch)
    assert (answer.status, answer.json["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_versions_without_batches_refuse_them(version: str) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with served_http(Steps().toolset) as base:
        session = Session(base, version)
        if version != "2026-07-28":
            await session.open()
        answer = await session.post([ping])
    assert (answer.status, answer.json["error"]["code"]) == (400, -32600)


async def test_one_request_of_a_batch_can_be_taken_back_and_the_others_are_answered() -> None:
    steps = Steps()
    async with served_http(steps.toolset) as base:
        session = await Session(base, "2025-03-26").open()
        steps.report(1)
        async with connected(base) as client:
            batch = [call("work", 1), call("add", 2, {"a": 1, "b": 2})]
            await client.send(whole_request(session.fields(), json.dumps(batch).encode()))
            await client.head()
            events = [json.loads((await client.event())[1]) for _ in range(2)]
            assert {event.get("id") for event in events} == {None, 2}
            await session.post(cancelled(1))
            assert await client.chunk() == b""
        assert steps.stopped.is_set()


async def test_an_unknown_profile_refuses_a_batch_too() -> None:
    async with served_http(Steps().toolset) as base, connected(base) as client:
        session = await Session(base, "2025-03-26").open()
        body = json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]).encode()
        head = head_of([*session.fields(), ("Content-Length", str(len(body)))], path="/mcp?profile=nope")
        await client.send(head + body)
        assert (await client.response()).status == 400


async def test_a_token_that_cannot_be_read_is_refused_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    header = base64.urlsafe_b64encode(b'{"alg":"RS256","x":' + b"[" * 5000 + b"]" * 5000 + b"}").decode().rstrip("=")
    oauth = OAuthOptions(issuer="https://login.example", resource="http://127.0.0.1/mcp")
    async with connection(oauth=oauth) as client:
        for token in (f"{header}.e30.c2ln", "\xff.\xff.\xff", "..", "a.b.c", "e30.e30.e30"):
            assert (await listed(client, ("Authorization", f"Bearer {token}"))).status == 401
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_state_with_arguments_that_cannot_be_written_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def ask(context: CallContext, value: Any = None) -> Result[Any]:
        """Ask."""
        return Result.ok((await context.ask("A word?", WORD)).content)

    def retried(value: str, state: str) -> bytes:
        params = f'"name":"ask","arguments":{{"value":{value}}},"requestState":{json.dumps(state)}'
        meta = json.dumps(MODERN_META)
        return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params},"_meta":{meta}}}}}'.encode()

    async with connection(StaticToolset([tool(ask)])) as client:
        fields = usual_fields("tools/call", "ask")
        await client.send(whole_request(fields, modern("tools/call", name="ask", arguments={})))
        state = (await client.response()).json["result"]["requestState"]
        for depth in range(900, 1000):
            await client.send(whole_request(fields, retried("[" * depth + "]" * depth, state)))
            assert (await client.response()).status == 400
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_task_group_that_is_cancelled_with_its_call_is_no_crash(caplog: pytest.LogCaptureFixture) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def grouped() -> str:
        """Raise a group when cancelled."""
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            stopped.set()
            raise BaseExceptionGroup("tasks", [error]) from None
        return "never"

    async with served_http(StaticToolset([tool(grouped)])) as base:
        session = await Session(base).open()
        calling = asyncio.create_task(session.post(call("grouped", 7)))
        await started.wait()
        await session.post(cancelled(7))
        await stopped.wait()
        answer = await calling
        assert (answer.status, b"result" in answer.body) == (200, False)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []

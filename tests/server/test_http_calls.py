"""Calls over HTTP: what a client sees of them in both protocol versions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from tests.server.clients import MODERN_META, served_http
from tests.server.sample import declared
from tests.support import size as size_of
from trysquare import CallContext, Principal, Result, StaticToolset, tool
from trysquare.server import HttpOptions, StaticTokens
from trysquare.server.http import streams

ACCEPT = "application/json, text/event-stream"
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "raw", "version": "1"},
}
RELAYED = '{"content":[{"type":"text",\n"text":"1.50"}],"structuredContent":{"price":1.50}}'


class Raw:
    """A client that writes its requests by hand, in one session or in none."""

    def __init__(self, http: httpx2.AsyncClient, address: str, session: str | None = None) -> None:
        self._http = http
        self._address = address
        self._session = session
        self._number = 100

    async def post(self, message: dict[str, Any], **headers: str) -> httpx2.Response:
        return await self._http.post(self._address, json=message, headers=self._headers(message) | headers)

    async def call(self, name: str, arguments: dict[str, Any], **headers: str) -> httpx2.Response:
        return await self.post(self.request(name, arguments), **headers)

    @asynccontextmanager
    async def streamed(self, name: str, arguments: dict[str, Any]) -> AsyncGenerator[httpx2.Response]:
        message = self.request(name, arguments)
        async with self._http.stream("POST", self._address, json=message, headers=self._headers(message)) as response:
            yield response

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[httpx2.Response]:
        headers = {"Accept": "text/event-stream", "Mcp-Session-Id": self._session or ""}
        async with self._http.stream("GET", self._address, headers=headers) as response:
            yield response

    async def end(self) -> None:
        await self._http.delete(self._address, headers={"Mcp-Session-Id": self._session or ""})

    def request(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if self._session is None:
            params["_meta"] = {**MODERN_META, "progressToken": 7}
        else:
            params["_meta"] = {"progressToken": 7}
        return {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}

    def _headers(self, message: dict[str, Any]) -> dict[str, str]:
        if self._session is not None:
            return {"Accept": ACCEPT, "MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": self._session}
        named = {"Mcp-Method": message["method"], "Mcp-Name": message["params"]["name"]}
        return {"Accept": ACCEPT, "MCP-Protocol-Version": "2026-07-28", **named}


@asynccontextmanager
async def raw(
    toolset: Any = None, era: str = "2026-07-28", http: HttpOptions | None = None, token: str | None = None
) -> AsyncGenerator[Raw]:
    """A client of an era at a server of its own."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        served_http(toolset or declared.toolset(), None, http) as base,
        httpx2.AsyncClient(timeout=20, headers=headers) as client,
    ):
        address = f"{base}/mcp"
        yield Raw(client, address) if era == "2026-07-28" else await in_session(client, address)


async def in_session(client: httpx2.AsyncClient, address: str) -> Raw:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    opened = await client.post(address, json=hello, headers={"Accept": ACCEPT})
    made = Raw(client, address, opened.headers["mcp-session-id"])
    await made.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return made


async def events(response: httpx2.Response) -> AsyncGenerator[dict[str, Any]]:
    async for line in response.aiter_lines():
        # The first event of a stream may be empty: only its id counts.
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


eras = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])


@eras
async def test_a_call_that_has_nothing_to_tell_before_its_answer_is_answered_with_json(era: str) -> None:
    async with raw(era=era) as client:
        response = await client.call("add", {"a": 1, "b": 2})
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json()["result"]["structuredContent"]["result"] == 3
    assert ("mcp-session-id" in response.headers) == (era == "2025-11-25")


@eras
async def test_progress_makes_the_answer_a_stream_of_events(era: str) -> None:
    async with raw(era=era) as client, client.streamed("steps", {}) as response:
        assert response.headers["content-type"] == "text/event-stream"
        told = [event async for event in events(response)]
    assert [event["params"]["progress"] for event in told[:-1]] == [1, 2, 3]
    assert {event["params"]["progressToken"] for event in told[:-1]} == {7}
    assert "structuredContent" in told[-1]["result"]


@eras
async def test_the_bytes_of_another_server_are_not_read_on_the_way(era: str) -> None:
    async with raw(era=era) as client:
        response = await client.call("relay", {"body": RELAYED})
        broken = await client.call("relay", {"body": '{"a":"\xff"}'})
    assert '"structuredContent":{"price":1.50}' in response.text
    assert response.json()["result"]["_meta"]["trysquare/origin"] == {"server": "other"}
    assert ("resultType" in response.json()["result"]) == (era == "2026-07-28")
    assert broken.json()["result"]["isError"] is True


@eras
async def test_another_servers_answer_of_fifty_megabytes_passes(era: str) -> None:
    size = size_of(5_000_000, 50_000_000)
    async with raw(era=era) as client:
        response = await client.call("relay", {"body": '{"content":[{"type":"text","text":"*"}]}', "repeated": size})
    assert len(response.json()["result"]["content"][0]["text"]) == size


async def test_a_question_in_a_session_is_answered_by_another_request() -> None:
    async with raw(era="2025-11-25") as client, client.streamed("converse", {"topic": "rain"}) as response:
        told: list[str] = []
        async for event in events(response):
            if event.get("method") == "elicitation/create":
                told.append(event["params"]["message"])
                content = {"action": "accept", "content": {"word": f"word{len(told)}"}}
                answered = await client.post({"jsonrpc": "2.0", "id": event["id"], "result": content})
                assert answered.status_code == 202
            else:
                assert event["result"]["structuredContent"]["result"] == "word1 word2"
    assert len(told) == 2


async def test_a_question_that_the_client_refuses_is_a_failure_that_the_model_reads() -> None:
    async with raw(era="2025-11-25") as client, client.streamed("converse", {"topic": "rain"}) as response:
        async for event in events(response):
            if event.get("method") == "elicitation/create":
                error = {"code": -32603, "message": "not today"}
                await client.post({"jsonrpc": "2.0", "id": event["id"], "error": error})
            else:
                assert event["result"]["isError"] is True
                assert "not today" in event["result"]["content"][0]["text"]


def hanging() -> tuple[StaticToolset, anyio.Event, anyio.Event]:
    started, stopped = anyio.Event(), anyio.Event()

    async def hang() -> Result[str]:
        """Hang."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()
        return Result.ok("never")

    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return StaticToolset([tool(hang), tool(add)]), started, stopped


async def test_a_call_that_is_taken_back_stops_and_gets_no_answer() -> None:
    toolset, started, stopped = hanging()
    async with raw(toolset, "2025-11-25") as client:
        message = client.request("hang", {})
        calling = asyncio.create_task(client.post(message))
        with anyio.fail_after(10):
            await started.wait()
            taken_back = {"requestId": message["id"], "reason": "never mind"}
            await client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": taken_back})
            await stopped.wait()
            response = await calling
    assert response.headers["content-type"] == "text/event-stream"
    assert "result" not in response.text


async def test_the_end_of_a_session_stops_its_calls() -> None:
    toolset, started, stopped = hanging()
    async with raw(toolset, "2025-11-25") as client:
        calling = asyncio.create_task(client.call("hang", {}))
        with anyio.fail_after(10):
            await started.wait()
            await client.end()
            await stopped.wait()
            await calling


async def test_a_lost_connection_does_not_take_back_a_call_of_a_session() -> None:
    started, goes_on, ended = anyio.Event(), anyio.Event(), anyio.Event()

    async def work(context: CallContext) -> Result[str]:
        """Work."""
        started.set()
        await goes_on.wait()
        ended.set()
        return Result.ok("done")

    _, declared_add = hanging()[0].tools()
    async with raw(StaticToolset([tool(work), declared_add]), "2025-11-25") as client:
        calling = asyncio.create_task(client.call("work", {}))
        with anyio.fail_after(10):
            await started.wait()
            calling.cancel()
            await asyncio.wait([calling])
            await client.call("add", {"a": 1, "b": 1})
            goes_on.set()
            await ended.wait()


@eras
async def test_a_long_silent_call_keeps_its_connection_open(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PING_SECONDS", 0.01)
    heard = anyio.Event()

    async def wait() -> Result[str]:
        """Wait."""
        await heard.wait()
        return Result.ok("done")

    _, declared_add = hanging()[0].tools()
    async with raw(StaticToolset([tool(wait), declared_add]), era) as client, client.streamed("wait", {}) as response:
        lines: list[str] = []
        with anyio.fail_after(10):
            async for line in response.aiter_lines():
                lines.append(line)
                heard.set()
    assert ": ping" in lines
    assert any('"done"' in line for line in lines)


class Two:
    """Two tokens of two principals."""

    async def verify(self, token: str) -> Principal | None:
        return Principal(subject=token) if token in ("ada", "bob") else None


async def test_nobody_calls_in_the_session_of_another_or_answers_its_questions() -> None:
    bob = {"Authorization": "Bearer bob"}
    async with (
        raw(era="2025-11-25", http=HttpOptions(verifier=Two()), token="ada") as client,
        client.streamed("converse", {"topic": "rain"}) as response,
    ):
        stolen = await client.call("add", {"a": 1, "b": 2}, **bob)
        async for event in events(response):
            if "result" in event:
                assert event["result"]["structuredContent"]["result"] == "own own"
                continue
            answer = {
                "jsonrpc": "2.0",
                "id": event["id"],
                "result": {"action": "accept", "content": {"word": "forged"}},
            }
            forged = await client.post(answer, **bob)
            assert forged.status_code == 404
            answer["result"] = {"action": "accept", "content": {"word": "own"}}
            await client.post(answer)
    assert stolen.status_code == 404


@eras
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Accept": "application/json"}, 406),
        ({"Content-Type": "text/plain"}, 400),
        ({"MCP-Protocol-Version": "1999-01-01"}, 400),
    ],
)
async def test_a_call_passes_every_check_that_other_requests_pass(
    era: str, headers: dict[str, str], status: int
) -> None:
    http = HttpOptions(verifier=StaticTokens(["right"]))
    async with raw(era=era, http=http, token="right") as client:
        response = await client.call("add", {"a": 1, "b": 2}, **headers)
        assert response.status_code == status
        assert (await client.call("add", {"a": 1, "b": 2})).status_code == 200


async def test_a_session_that_nobody_opened_is_not_found() -> None:
    async with raw(era="2025-11-25") as client:
        response = await client.call("add", {"a": 1, "b": 2}, **{"Mcp-Session-Id": "unknown"})
    assert response.status_code == 404


async def test_a_server_without_sessions_answers_the_handshake_era_with_json() -> None:
    async with raw(http=HttpOptions(stateless=True)) as client:
        response = await client.call("add", {"a": 1, "b": 2}, **{"MCP-Protocol-Version": "2025-11-25"})
    assert response.headers["content-type"] == "application/json"
    assert "resultType" not in response.json()["result"]


@pytest.mark.parametrize("headers", [{"Mcp-Name": "echo"}, {"Mcp-Method": "tools/list"}])
async def test_headers_that_contradict_the_body_are_refused(headers: dict[str, str]) -> None:
    async with raw() as client:
        response = await client.call("add", {"a": 1, "b": 2}, **headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)


async def test_arguments_that_a_tool_wants_as_headers_are_compared() -> None:
    async def route(region: str) -> str:
        """Route."""
        return region

    made = tool(route)
    made.input_schema["properties"]["region"]["x-mcp-header"] = "Region"
    async with raw(StaticToolset([made])) as client:
        wrong = await client.call("route", {"region": "north"}, **{"Mcp-Param-Region": "south"})
        right = await client.call("route", {"region": "north"}, **{"Mcp-Param-Region": "north"})
    assert (wrong.status_code, right.status_code) == (400, 200)


@eras
async def test_an_unknown_tool_is_an_error_of_the_protocol(era: str) -> None:
    async with raw(era=era) as client:
        response = await client.call("ad", {})
    assert response.status_code == (400 if era == "2026-07-28" else 200)
    assert "`add`" in response.json()["error"]["message"]


@pytest.mark.parametrize("params", [{}, {"name": 3}, {"name": "add", "arguments": [1]}, {"name": "add", "_meta": 3}])
async def test_parameters_that_are_wrong_are_an_error_of_the_protocol(params: dict[str, Any]) -> None:
    async with raw(era="2025-11-25") as client:
        response = await client.post({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
    assert '"code":-32602' in response.text

"""Serving over streamable HTTP: a real server on a free port, through the SDK's client and request by request."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged

from tests.server.clients import MODERN_META, MODES, Person, served_http, text_of
from tests.server.sample import EXTRA, changing, declared
from trysquare import ConfigurationError, Principal, Result, StaticToolset, tool
from trysquare.catalog import ProfileChoice
from trysquare.server import HttpOptions, OAuthOptions, ServeOptions, StaticTokens, http_app, serve_http

ROOT = Path(__file__).parents[2]
eras = pytest.mark.parametrize("mode", MODES)
ACCEPT = "application/json, text/event-stream"


@asynccontextmanager
async def connected(address: str, mode: Any, *, token: str | None = None, **callbacks: Any) -> AsyncGenerator[Client]:
    """The SDK's client at an address, with a token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode, **callbacks) as client,
    ):
        yield client


async def post(address: str, body: Any, **headers: str) -> httpx2.Response:
    """One request of the new era."""
    params = body.get("params", {}) if isinstance(body, dict) else {}
    own = {"MCP-Protocol-Version": "2026-07-28", "Accept": ACCEPT}
    if isinstance(body, dict):
        own["Mcp-Method"] = str(body.get("method"))
        own["Mcp-Name"] = str(params.get("name", ""))
    async with httpx2.AsyncClient(timeout=20) as http:
        return await http.post(address, json=body, headers={**own, **headers})


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, "_meta": MODERN_META}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def listing() -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": MODERN_META}}


@eras
async def test_the_sdks_client_is_served(mode: str) -> None:
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with (
        served_http(declared.toolset()) as base,
        connected(f"{base}/mcp", mode, elicitation_callback=Person("wet", "cold")) as client,
    ):
        assert "add" in [entry.name for entry in (await client.list_tools()).tools]
        assert text_of(await client.call_tool("converse", {"topic": "rain"})) == "wet cold"
        await client.call_tool("steps", {}, progress_callback=note)
        assert (await client.get_prompt("letter", {"to": "Ada"})).messages
        assert (await client.read_resource("test://notes")).contents
    assert seen == [1, 2, 3]


@eras
async def test_the_answer_of_another_server_arrives_as_it_was_with_our_label(mode: str) -> None:
    body = '{"content":[{"type":"text",\n"text":"1.50 \\u00e9"}],"_meta":{"own":1.50}}'
    async with served_http(declared.toolset()) as base, connected(f"{base}/mcp", mode) as client:
        result = await client.call_tool("relay", {"body": body})
        assert text_of(result) == "1.50 é"
        assert result.meta is not None
        assert result.meta["own"] == 1.5
        assert result.meta["trysquare/origin"] == {"server": "other"}
        broken = await client.call_tool("relay", {"body": '{"a":"\xff"}'})
        assert broken.is_error
        assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error


async def test_a_change_reaches_a_session_of_the_handshake_era() -> None:
    toolset = changing()
    heard = anyio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    async with served_http(toolset) as base, connected(f"{base}/mcp", "legacy", message_handler=hear) as client:
        await client.list_tools()
        with anyio.fail_after(10):
            # The client opens the stream for news on its own time; until then there is nobody to tell.
            while not heard.is_set():
                toolset.notify("tools")
                with anyio.move_on_after(0.05):
                    await heard.wait()


async def test_a_change_reaches_a_listener_of_the_new_era() -> None:
    toolset = changing()
    async with (
        served_http(toolset) as base,
        connected(f"{base}/mcp", "auto") as client,
        client.listen(tools_list_changed=True) as subscription,
    ):
        toolset.replace(tools=[EXTRA])
        with anyio.fail_after(10):
            async for event in subscription:
                assert event == ToolsListChanged()
                break
        assert [entry.name for entry in (await client.list_tools()).tools] == ["extra"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_closing_the_request_cancels_the_tool(mode: str) -> None:
    started, cancelled = anyio.Event(), anyio.Event()

    async def hang() -> Result[str]:
        """Hang."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return Result.ok("never")

    async with served_http(StaticToolset([tool(hang)])) as base, connected(f"{base}/mcp", mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "hang", {})
            with anyio.fail_after(10):
                await started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await cancelled.wait()


async def test_the_health_check_needs_nothing() -> None:
    http = HttpOptions(verifier=StaticTokens(["t"]))
    async with served_http(declared.toolset(), ServeOptions(name="mine"), http) as base, httpx2.AsyncClient() as client:
        answer = await client.get(f"{base}/healthz", headers={"Host": "some.balancer"})
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert answer.json()["name"] == "mine"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "localhost:99"}, 200),
        ({"Host": "[::1]:99"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "http://localhost:5173"}, 200),
        ({"Origin": "https://app.example"}, 200),
        ({"Host": "mcp.example"}, 200),
    ],
)
async def test_only_known_hosts_and_origins_are_answered(headers: dict[str, str], status: int) -> None:
    http = HttpOptions(allowed_hosts=("mcp.example",), allowed_origins=("https://app.example",))
    async with served_http(declared.toolset(), None, http) as base:
        answer = await post(f"{base}/mcp", listing(), **headers)
    assert answer.status_code == status


async def test_a_page_of_an_allowed_origin_may_call_from_a_browser() -> None:
    http = HttpOptions(allowed_origins=("https://app.example",), verifier=StaticTokens(["t"]))
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,mcp-method"}
    async with served_http(declared.toolset(), None, http) as base, httpx2.AsyncClient() as client:
        allowed = await client.options(f"{base}/mcp", headers={"Origin": "https://app.example", **asked})
        refused = await client.options(f"{base}/mcp", headers={"Origin": "https://evil.example", **asked})
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "https://app.example"
    assert refused.status_code == 403


@eras
async def test_an_address_chooses_the_profile_of_the_list(mode: str) -> None:
    async def rare() -> Result[str]:
        """Rarely needed."""
        return Result.ok("called")

    async def common() -> Result[str]:
        """Always needed."""
        return Result.ok("called")

    toolset = StaticToolset([tool(rare, profiles=frozenset({"full"})), tool(common)])
    shown = {"": ["rare", "common"], "?profile=levels": ["common"], "?profile=tools%3Dlevels": ["common"]}
    async with served_http(toolset) as base:
        for query, names in shown.items():
            async with connected(f"{base}/mcp{query}", mode) as client:
                assert [entry.name for entry in (await client.list_tools()).tools] == names
                assert text_of(await client.call_tool("rare", {})) == "called"


async def test_a_profile_of_the_address_adds_to_those_of_the_server() -> None:
    options = ServeOptions(profiles=ProfileChoice(default="levels", toolsets={"bots": "gateway"}))
    async with served_http(declared.toolset(), options) as base:
        answer = await post(f"{base}/mcp?profile=tools=search", listing())
    assert [entry["name"] for entry in answer.json()["result"]["tools"]] == ["refuse"]


async def test_an_unknown_profile_is_refused_with_the_nearest() -> None:
    async with served_http(declared.toolset()) as base:
        answer = await post(f"{base}/mcp?profile=levls", listing())
    assert answer.status_code == 400
    assert "`levels`" in answer.json()["error"]["message"]


async def test_a_body_over_the_limit_is_refused() -> None:
    async with served_http(declared.toolset(), None, HttpOptions(max_body=1000)) as base:
        small = await post(f"{base}/mcp", call("echo", {"value": "x"}))
        large = await post(f"{base}/mcp", call("echo", {"value": "x" * 2000}))
    assert (small.status_code, large.status_code) == (200, 413)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b"3", b"[" * 100_000, b'{"jsonrpc":"2.0","id":1}'])
async def test_a_bad_body_is_answered_and_the_next_call_works(body: bytes) -> None:
    headers = {"MCP-Protocol-Version": "2026-07-28", "Accept": ACCEPT, "Content-Type": "application/json"}
    async with served_http(declared.toolset()) as base, httpx2.AsyncClient() as client:
        answer = await client.post(f"{base}/mcp", content=body, headers=headers)
        good = await post(f"{base}/mcp", call("add", {"a": 1, "b": 2}))
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in answer.text
    assert good.json()["result"]["structuredContent"]["result"] == 3


async def test_an_unknown_tool_is_invalid_params_with_the_nearest_name() -> None:
    async with served_http(declared.toolset()) as base:
        answer = await post(f"{base}/mcp", call("ad", {}))
    assert answer.json()["error"]["code"] == -32602
    assert "`add`" in answer.json()["error"]["message"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.7", "example.com"])
def test_serving_a_network_without_authentication_is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match="bearer token") as caught:
        http_app(declared.toolset(), None, HttpOptions(host=host))
    assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_serving_this_machine_alone_needs_no_authentication(host: str) -> None:
    http_app(declared.toolset(), None, HttpOptions(host=host))


def test_serving_a_network_with_authentication_is_allowed() -> None:
    http_app(declared.toolset(), None, HttpOptions(host="0.0.0.0", verifier=StaticTokens(["t"])))


def test_oauth_on_a_network_must_know_what_tokens_are_for() -> None:
    oauth = OAuthOptions(issuer="https://login.example")
    with pytest.raises(ConfigurationError, match="issued for"):
        http_app(declared.toolset(), None, HttpOptions(host="0.0.0.0", oauth=oauth))


@eras
async def test_a_token_grants_access_and_names_the_principal(mode: str) -> None:
    http = HttpOptions(verifier=StaticTokens(["right"], subject="ada"))
    async with served_http(declared.toolset(), None, http) as base:
        async with connected(f"{base}/mcp", mode, token="right") as client:
            result = await client.call_tool("whoami", {})
        refused = await post(f"{base}/mcp", listing(), Authorization="Bearer wrong")
        missing = await post(f"{base}/mcp", listing())
    assert result.structured_content is not None
    assert result.structured_content["subject"] == "fixed:ada"
    assert (refused.status_code, missing.status_code) == (401, 401)
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert missing.headers["www-authenticate"] == "Bearer"


class Known:
    """Tokens for everything, and tokens for the bots alone."""

    async def verify(self, token: str) -> Principal | None:
        known = {
            "all": Principal(subject="ada"),
            "all2": Principal(subject="zoe"),
            "bots": Principal(subject="bob", scopes=frozenset({"bots"})),
            "bots2": Principal(subject="eve", scopes=frozenset({"bots"})),
        }
        return known.get(token)


@eras
async def test_a_scoped_token_sees_and_calls_only_its_toolsets(mode: str) -> None:
    async with served_http(declared.toolset(), None, HttpOptions(verifier=Known())) as base:
        async with connected(f"{base}/mcp", mode, token="bots") as client:
            assert [entry.name for entry in (await client.list_tools()).tools] == ["refuse"]
            assert (await client.list_prompts()).prompts == []
            assert (await client.list_resources()).resources == []
            assert (await client.list_resource_templates()).resource_templates == []
            for attempt in (
                client.call_tool("add", {"a": 1, "b": 2}),
                client.get_prompt("letter", {"to": "Ada"}),
                client.read_resource("test://notes"),
            ):
                with pytest.raises(MCPError, match=r"There is no|Unknown"):
                    await attempt
            assert (await client.call_tool("refuse", {"reason": "x"})).is_error
        async with connected(f"{base}/mcp", mode, token="all") as client:
            assert len((await client.list_tools()).tools) > 1


async def test_a_list_that_depends_on_the_token_is_private() -> None:
    async with served_http(declared.toolset(), None, HttpOptions(verifier=Known())) as base:
        scoped = await post(f"{base}/mcp", listing(), Authorization="Bearer bots")
        whole = await post(f"{base}/mcp", listing(), Authorization="Bearer all")
    assert scoped.json()["result"]["cacheScope"] == "private"
    # What one token sees in full, another one may not see at all.
    assert whole.json()["result"]["cacheScope"] == "private"


async def test_an_answer_of_another_principal_is_refused() -> None:
    async with served_http(declared.toolset(), None, HttpOptions(verifier=Known())) as base:
        asked = (await post(f"{base}/mcp", call("converse", {"topic": "x"}), Authorization="Bearer all")).json()
        body = call("converse", {"topic": "x"})
        body["params"]["requestState"] = asked["result"]["requestState"]
        body["params"]["inputResponses"] = {"first": {"action": "accept", "content": {"word": "w"}}}
        stolen = await post(f"{base}/mcp", body, Authorization="Bearer all2")
        own = await post(f"{base}/mcp", body, Authorization="Bearer all")
    assert stolen.json()["error"]["data"] == {"reason": "invalid_request_state"}
    assert list(own.json()["result"]["inputRequests"]) == ["second"]


async def test_a_session_belongs_to_the_token_that_opened_it() -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    async with (
        served_http(declared.toolset(), None, HttpOptions(verifier=Known())) as base,
        httpx2.AsyncClient(headers={"Accept": ACCEPT}) as client,
    ):
        opened = await client.post(f"{base}/mcp", json=body, headers={"Authorization": "Bearer bots"})
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        stolen = await client.post(f"{base}/mcp", json=ping, headers={"Authorization": "Bearer bots2", **session})
        own = await client.post(f"{base}/mcp", json=ping, headers={"Authorization": "Bearer bots", **session})
    assert (stolen.status_code, own.status_code) == (404, 200)


async def test_several_workers_without_sessions_can_serve_the_handshake_era() -> None:
    async with (
        served_http(declared.toolset(), None, HttpOptions(stateless=True)) as base,
        connected(f"{base}/mcp", "legacy") as client,
    ):
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})).startswith("3")


SERVER = """
import anyio, sys
from tests.server.sample import declared
from trysquare.server import HttpOptions, serve_http
anyio.run(lambda: serve_http(declared.toolset(), None, HttpOptions(port=0), started=lambda url: print(url, flush=True)))
"""


def _started_server() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SERVER], cwd=ROOT, stdout=subprocess.PIPE, text=True)


async def test_a_server_that_is_shut_down_finishes_its_calls_and_streams() -> None:
    process = _started_server()
    assert process.stdout is not None
    address = (await anyio.to_thread.run_sync(process.stdout.readline)).strip()
    results: list[Any] = []
    try:
        async with connected(address, "auto") as client, anyio.create_task_group() as tasks:

            async def sleep() -> None:
                results.append(text_of(await client.call_tool("slow", {"seconds": 0.5})))

            async with client.listen(tools_list_changed=True) as subscription:
                tasks.start_soon(sleep)
                await client.call_tool("add", {"a": 1, "b": 1})
                os.kill(process.pid, signal.SIGTERM)
                with anyio.fail_after(20):
                    async for _ in subscription:
                        pytest.fail("nothing has changed")
        with anyio.fail_after(20):
            await anyio.to_thread.run_sync(process.wait)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert results == ["slept"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_that_is_shut_down_answers_its_open_calls(mode: str) -> None:
    process = _started_server()
    assert process.stdout is not None
    address = (await anyio.to_thread.run_sync(process.stdout.readline)).strip()
    results: list[str] = []
    started = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        started.set()

    try:
        async with connected(address, mode) as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                results.append(text_of(await client.call_tool("late", {}, progress_callback=note)))

            # Or the client would list them after the call, when there is nobody to answer.
            await client.list_tools()
            tasks.start_soon(call)
            with anyio.fail_after(20):
                await started.wait()
            os.kill(process.pid, signal.SIGTERM)
        with anyio.fail_after(20):
            await anyio.to_thread.run_sync(process.wait)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert results == ["late"]


def test_a_port_that_is_taken_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Cannot listen on 127.0.0.1:{port}"):
            anyio.run(lambda: serve_http(declared.toolset(), None, HttpOptions(port=port)))


async def test_a_header_that_is_no_bearer_token_is_refused() -> None:
    async with served_http(declared.toolset(), None, HttpOptions(verifier=Known())) as base:
        for header in ("Basic all", "Bearer", "Bearer " + "x" * 20_000, "all"):
            answer = await post(f"{base}/mcp", listing(), Authorization=header)
            assert answer.status_code == 401
            assert json.loads(answer.text)["error_description"]

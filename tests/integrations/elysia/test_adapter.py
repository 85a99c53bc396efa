"""The adapter by itself: how it reaches a gateway, and what it makes of what Elysia does to inputs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.toys import has_ended
from tests.integrations.elysia.served import ADAPTER, served_over_http, serving, toy, write_servers
from tests.support import about
from trysquare.integrations.elysia import Gateway, GatewayError, NotSent, Repairable, _is_repairable, restored


async def said(gateway: Gateway, tool: str, **arguments: Any) -> str:
    return (await gateway.call(tool, arguments))["content"][0]["text"]


def test_it_needs_the_standard_library_alone() -> None:
    code = f"""
import runpy, sys
before = set(sys.modules)
runpy.run_path({str(ADAPTER)!r})
print(sorted(name for name in set(sys.modules) - before if name.split(".")[0] not in sys.stdlib_module_names))
"""
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


async def test_it_starts_a_gateway_from_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_servers(tmp_path, with_npm=False)
    scripts = tmp_path / "bin"
    scripts.mkdir()
    start = scripts / "trysquare"
    start.write_text(f'#!/bin/sh\nexec {sys.executable} -m trysquare "$@"\n', encoding="utf-8")
    start.chmod(0o755)
    monkeypatch.setenv("PATH", str(scripts), prepend=os.pathsep)
    with Gateway(config, env=serving(config)["env"]) as gateway:
        assert list(gateway.definitions()) == ["mcp_scripted", "mcp_toy", "mcp_leaving", "mcp_broken"]
        assert await said(gateway, "mcp_toy", action="execute", tool_name="echo", tool_inputs={"text": "hi"}) == "hi"


async def test_it_reaches_a_gateway_over_http(tmp_path: Path) -> None:
    with served_over_http(write_servers(tmp_path, with_npm=False)) as url, Gateway(url=url) as gateway:
        assert "mcp_toy" in gateway.definitions()
        calls = [
            said(gateway, "mcp_toy", action="execute", tool_name="echo", tool_inputs={"text": str(number)})
            for number in range(8)
        ]
        assert await asyncio.gather(*calls) == [str(number) for number in range(8)]


async def test_a_failure_that_leaves_a_call_unknown_is_not_for_the_model_to_mend(tmp_path: Path) -> None:
    config = write_servers(tmp_path, with_npm=False)
    with Gateway(**serving(config)) as gateway:
        lost = await gateway.call("mcp_toy", {"action": "execute", "tool_name": "kill"})
        wrong = await gateway.call("mcp_toy", {"action": "execute", "tool_name": "kil"})
    assert not _is_repairable({**about(lost), "next": {}}, {})
    assert _is_repairable(about(wrong), {})


async def test_all_pages_of_a_list_are_read() -> None:
    with Gateway(command=toy("--page", "3")) as paged, Gateway(command=toy()) as whole:
        assert list(paged.definitions()) == list(whole.definitions())


async def test_garbage_answers_that_come_late_and_answers_that_come_twice_do_no_harm() -> None:
    with Gateway(command=toy()) as gateway:
        for tool in ("garbage", "flood", "twice"):
            await gateway.call(tool, {"text": "3"})
        assert await said(gateway, "echo", text="still here") == "still here"


async def test_a_server_that_asks_us_something_is_refused_at_once() -> None:
    with Gateway(command=toy()) as gateway:
        assert "does not support this method" in await said(gateway, "roots")


async def test_after_a_gateway_died_the_next_call_starts_another() -> None:
    with Gateway(command=toy()) as gateway:
        first = int(await said(gateway, "pid"))
        os.kill(first, signal.SIGKILL)
        await has_ended(first)
        assert int(await said(gateway, "pid")) != first


async def test_a_call_whose_gateway_dies_is_told_what_is_known_of_it_and_is_not_sent_again(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with Gateway(command=toy("--started", str(started))) as gateway:
        with pytest.raises(
            GatewayError, match=r"ended with exit code -9: about to die\. The call may have taken effect\."
        ):
            await gateway.call("kill", {})
        assert len(started.read_text(encoding="utf-8").splitlines()) == 1


async def test_a_call_that_takes_too_long_is_given_up_and_cancelled() -> None:
    with Gateway(command=toy(), timeout=0.3) as gateway:
        with pytest.raises(GatewayError, match=r"no response within 0\.3 seconds"):
            await gateway.call("hang", {})
        assert json.loads(await said(gateway, "cancelled")) != []


async def test_a_caller_that_no_longer_waits_cancels_the_call() -> None:
    with Gateway(command=toy()) as gateway:
        await gateway.call("echo", {"text": "up"})
        with anyio.move_on_after(0.2):
            await gateway.call("hang", {})
        with anyio.fail_after(20):
            while json.loads(await said(gateway, "cancelled")) == []:
                pass


async def test_a_gateway_that_cannot_start_says_why() -> None:
    with Gateway(command=["no-such-gateway"]) as gateway:
        with pytest.raises(NotSent, match="`no-such-gateway` cannot be started"):
            await gateway.call("echo", {})
        assert "cannot be started" in await gateway.reason_against("echo")
    with (
        Gateway(command=toy("--exit", "3")) as gateway,
        pytest.raises(GatewayError, match=r"exit code 3: cannot read its licence"),
    ):
        await gateway.call("echo", {})


@pytest.mark.parametrize("given", [{}, {"config": "mcp.json", "url": "http://127.0.0.1:1/mcp"}])
def test_exactly_one_way_to_the_gateway_must_be_named(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="Give one of"):
        Gateway(**given)  # pyright: ignore[reportArgumentType]


async def test_an_address_that_is_none_or_where_nobody_is_says_so() -> None:
    with Gateway(url="mcp.json") as gateway, pytest.raises(GatewayError, match="is not a URL such as"):
        await gateway.call("echo", {})
    with (
        Gateway(url="http://127.0.0.1:1/mcp") as gateway,
        pytest.raises(GatewayError, match=r"Cannot connect to http://127\.0\.0\.1:1/mcp"),
    ):
        await gateway.call("echo", {})


class _Forgetful(BaseHTTPRequestHandler):
    """A server that forgets every session after one call, and answers in events."""

    protocol_version = "HTTP/1.1"
    sessions = 0
    calls = 0

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = type(self)
        if message["method"] == "initialize":
            kind.sessions += 1
            self._answer(message, {"protocolVersion": "2025-11-25"}, {"Mcp-Session-Id": str(kind.sessions)})
        elif "id" not in message:
            self._respond(202, b"", {})
        elif self.headers["Mcp-Session-Id"] != str(kind.calls + 1):
            self._respond(404, b"", {})
        else:
            kind.calls += 1
            self._answer(message, {"content": [{"type": "text", "text": f"call {kind.calls}"}]}, {})

    def _answer(self, message: dict[str, Any], result: dict[str, Any], headers: dict[str, str]) -> None:
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        self._respond(200, f": hello\n\nevent: message\ndata: {text}\n\n".encode(), headers)

    def _respond(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/event-stream", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return None


@contextlib.contextmanager
def forgetful_server() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Forgetful) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        finally:
            server.shutdown()
            thread.join()


async def test_a_session_that_is_over_is_begun_anew_and_events_are_read() -> None:
    with forgetful_server() as url, Gateway(url=url) as gateway:
        assert [await said(gateway, "any") for _ in range(2)] == ["call 1", "call 2"]


async def test_a_token_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    token = "a-token-of-more-than-32-characters-for-a-test"
    tokens = {"TRYSQUARE_HTTP_TOKENS": token}
    with served_over_http(write_servers(tmp_path, with_npm=False), **tokens) as url:
        with Gateway(url=url) as gateway, pytest.raises(GatewayError, match="returned status 401"):
            await gateway.call("mcp_toy", {})
        with Gateway(url=url, token=token) as gateway:
            assert "mcp_toy" in gateway.definitions()


def eaten(inputs: Any) -> Any:
    """What Elysia makes of an object: what stands under `value`, if anything does."""
    return inputs["value"] if isinstance(inputs, dict) and "value" in inputs else inputs


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-9, 9),
    "string": st.text("ab{}[]", max_size=4),
    "boolean": st.booleans(),
    "array": st.lists(st.integers(0, 3), max_size=2),
    "object": st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(0, 3), max_size=2),
}


@st.composite
def schema_and_inputs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(["value", "a", "b"]), unique=True))
    kinds = {name: draw(st.sampled_from(sorted(KINDS))) for name in names}
    required = [name for name in names if draw(st.booleans())]
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    given = {name: draw(KINDS[kind]) for name, kind in kinds.items() if name in required or draw(st.booleans())}
    return {"type": "object", "properties": properties, "required": required}, given


@given(schema_and_inputs())
def test_what_is_sent_is_what_the_model_meant_or_nothing_is(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, inputs = case
    with contextlib.suppress(Repairable):
        assert restored(eaten(inputs), schema, "tool_inputs") == inputs


@given(schema_and_inputs())
def test_a_value_in_json_text_always_arrives(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, inputs = case
    schema["properties"].setdefault("value", {"type": "integer"})
    inputs.setdefault("value", 1)
    assert restored(json.dumps(inputs), schema, "tool_inputs") == inputs


@given(schema_and_inputs())
def test_inputs_without_a_value_arrive_as_they_are(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, inputs = case
    schema["properties"].pop("value", None)
    inputs.pop("value", None)
    assert restored(inputs, schema, "tool_inputs") == inputs

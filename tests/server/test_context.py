"""What a call finds out about its client through the context, over every transport."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.server.clients import client_of, served_http, text_of
from tests.support import told
from trysquare import CallContext, Tools
from trysquare.testing import ScriptedCaller, accept, call, make_context

LOGIN = "https://example.com/in?state=1"
tools = Tools()


@tools.tool
async def about(context: CallContext) -> str:
    """Say what is known of the client."""
    known = {
        "headers": dict(context.headers),
        "client": context.client_info.get("name"),
        "capabilities": sorted(context.client_capabilities),
        "version": context.protocol_version,
        "request": context.request_id is not None,
    }
    return json.dumps(known)


@tools.tool
async def talk(context: CallContext) -> str:
    """Log at every level."""
    await context.debug("one")
    await context.info("two")
    await context.warning("three")
    await context.error("four")
    return "done"


@tools.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"note of {name}"


@tools.tool
async def reading(name: str, context: CallContext) -> str:
    """Read a note."""
    [contents] = await context.read_resource(f"note://{name}")
    return contents.text or ""


@tools.tool
async def keep(word: str, context: CallContext) -> str:
    """Keep a word."""
    return context.keep({"word": word})


@tools.tool
async def kept(handle: str, context: CallContext) -> str:
    """Return a word that was kept."""
    return context.kept(handle)["word"]


@tools.tool
async def sign_in(url: str, context: CallContext) -> str:
    """Let the user sign in."""
    await context.visit("Sign in", url)
    return "opened"


@tools.tool
async def delegate(context: CallContext) -> str:
    """Have the client's model answer."""
    return f"{await context.sample('Why?', system='Be brief.')} in {', '.join(await context.roots())}"


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_the_context_has_headers_client_and_version_over_http(mode: str, version: str) -> None:
    headers = {"X-Team": "blue", "Authorization": "Bearer secret"}
    async with (
        served_http(tools.toolset()) as base,
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        Client(streamable_http_client(f"{base}/mcp", http_client=http), mode=mode) as client,  # pyright: ignore[reportArgumentType]
    ):
        known = json.loads(text_of(await client.call_tool("about", {})))
    assert (known["headers"]["x-team"], known["headers"].get("authorization")) == ("blue", None)
    assert (known["client"], known["version"], known["request"]) == ("mcp", version, True)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_without_http_there_are_no_headers(mode: str) -> None:
    async def elicit(*_: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async with client_of(tools.toolset(), mode, elicitation_callback=elicit) as client:
        known = json.loads(text_of(await client.call_tool("about", {})))
    assert known["headers"] == {}
    assert "elicitation" in known["capabilities"]


async def test_log_lines_reach_the_client_with_their_levels() -> None:
    heard: list[tuple[str, Any]] = []

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        heard.append((params.level, params.data))

    async with client_of(tools.toolset(), "legacy", logging_callback=hear) as client:
        await client.call_tool("talk", {})
    assert heard == [("debug", "one"), ("info", "two"), ("warning", "three"), ("error", "four")]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_tool_reads_resources_and_keeps_values_without_a_session(mode: str) -> None:
    async with client_of(tools.toolset(), mode) as client:
        assert text_of(await client.call_tool("reading", {"name": "ada"})) == "note of ada"
        handle = text_of(await client.call_tool("keep", {"word": "x"}))
        assert text_of(await client.call_tool("kept", {"handle": handle})) == "x"
        assert (await client.call_tool("kept", {"handle": "nothing"})).is_error


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_tool_sends_the_user_to_a_page(mode: str) -> None:
    seen: list[Any] = []
    action: Any = "accept"

    async def open_page(_: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        seen.append(params)
        return types.ElicitResult(action=action)

    async with client_of(tools.toolset(), mode, elicitation_callback=open_page) as client:
        assert text_of(await client.call_tool("sign_in", {"url": LOGIN})) == "opened"
        action = "decline"
        refused = told(await client.call_tool("sign_in", {"url": LOGIN}))
        for url in ("http://example.com/in", "javascript:alert(1)", "https://ada:x@example.com", "https://", "/in"):
            assert (
                told(await client.call_tool("sign_in", {"url": url}))["error"]["code"] == "VALIDATION_INVALID_REQUEST"
            )
    assert refused["error"]["code"] == "CONSENT_REFUSED"
    assert [(one.mode, one.url, one.message) for one in seen] == [("url", LOGIN, "Sign in")] * 2
    if mode == "legacy":
        assert len({one.elicitation_id for one in seen}) == 2
    async with client_of(tools.toolset(), mode) as client:
        if mode == "legacy":
            cannot = told(await client.call_tool("sign_in", {"url": LOGIN}))
            assert cannot["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"
        else:
            with pytest.raises(MCPError, match=r"elicitation\.url"):
                await client.call_tool("sign_in", {"url": LOGIN})


async def test_a_test_has_the_same_context() -> None:
    caller = ScriptedCaller(completions=["Because."], roots=["file:///a", "file:///b"], headers={"X-Team": "red"})
    context = make_context(caller=caller, tools=tools)
    assert (await call(tools, "delegate", context=context)).value == "Because. in file:///a, file:///b"
    assert [(each.prompt, each.system) for each in caller.samples] == [("Why?", "Be brief.")]
    assert json.loads(str((await call(tools, "about", context=context)).value))["headers"] == {"x-team": "red"}
    assert (await call(tools, "reading", context=context, name="b")).value == "note of b"
    visitor = ScriptedCaller([accept()])
    assert (await call(tools, "sign_in", context=make_context(caller=visitor), url=LOGIN)).value == "opened"
    assert [each.url for each in visitor.visits] == [LOGIN]
    assert (await call(tools, "reading", name="b")).code == "CAPABILITY_NOT_SUPPORTED"
    assert (await call(tools, "delegate")).code == "CAPABILITY_NOT_SUPPORTED"

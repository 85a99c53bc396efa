"""What a server says and asks beside its answers reaches the client, where the client can take it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.e2e.servers import served_over_http
from tests.gateway.asking_server import SAMPLING
from tests.gateway.opened import Gateway, Place, opened
from tests.server.clients import client_of, text_of
from tests.support import told
from trysquare import CallContext, Tools, call_tool
from trysquare.app import open_app
from trysquare.settings import Settings

SCRIPT = Path(__file__).with_name("asking_server.py")
FRONTS = pytest.mark.parametrize("version", ["legacy", "2026-07-28"])
BACKS = pytest.mark.parametrize("era", ["legacy", "modern"])


@contextlib.asynccontextmanager
async def asking(folder: Path, era: str, **settings: Any) -> AsyncGenerator[Gateway]:
    place = Place(folder=folder)
    arguments = ["-S", str(SCRIPT), "--era", era]
    place.write_config({"far": {"command": sys.executable, "args": arguments, "x-trysquare": settings}})
    async with opened(place) as gateway:
        yield gateway


def _call(tool: str) -> dict[str, Any]:
    return {"action": "execute", "tool_name": tool}


@FRONTS
@BACKS
async def test_a_request_for_the_clients_model_passes_whole_and_so_does_its_answer(
    tmp_path: Path, version: str, era: str
) -> None:
    seen: list[dict[str, Any]] = []
    picture = types.ImageContent(data="aGk=", mime_type="image/png")

    async def sample(_: object, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        seen.append(params.model_dump(by_alias=True, mode="json", exclude_none=True))
        return types.CreateMessageResult(role="assistant", content=picture, model="m", stop_reason="maxTokens")

    async with (
        asking(tmp_path, era) as gateway,
        client_of(gateway.toolset, version, sampling_callback=sample) as client,
    ):
        result = await client.call_tool("mcp_far", _call("sample"))
    assert not result.is_error
    said = json.loads(text_of(result))
    said = said[1] if isinstance(said, list) else said
    assert (said["content"]["type"], said["stopReason"], said["role"]) == ("image", "maxTokens", "assistant")
    assert [{key: one[key] for key in SAMPLING} for one in seen] == [SAMPLING]


@FRONTS
@BACKS
async def test_a_page_to_open_reaches_the_user(tmp_path: Path, version: str, era: str) -> None:
    seen: list[types.ElicitRequestParams] = []

    async def visit(_: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        seen.append(params)
        return types.ElicitResult(action="accept")

    async with (
        asking(tmp_path, era) as gateway,
        client_of(gateway.toolset, version, elicitation_callback=visit) as client,
    ):
        result = await client.call_tool("mcp_far", _call("visit"))
        said = told(await client.call_tool("mcp_far", _call("must_visit")))
    assert '"accept"' in text_of(result)
    [shown] = seen
    assert isinstance(shown, types.ElicitRequestURLParams)
    assert (shown.url, shown.message) == ("https://example.com/in", "far asks: Sign in")
    assert [page["url"] for page in said["pages"]] == ["https://example.com/in"]


@BACKS
async def test_a_client_without_the_capability_is_refused_at_once(tmp_path: Path, era: str) -> None:
    async with asking(tmp_path, era) as gateway, client_of(gateway.toolset, "legacy") as client:
        for tool in ("visit", "sample"):
            result = await client.call_tool("mcp_far", _call(tool))
            # A server of the earlier era is refused its question, and answers with that.
            assert result.is_error or '"code"' in text_of(result)


@FRONTS
async def test_folders_reach_a_server_that_has_a_connection_for_each_caller(tmp_path: Path, version: str) -> None:
    async def roots(_: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///work")])  # pyright: ignore[reportArgumentType]

    async with (
        asking(tmp_path, "legacy", sharing="caller") as gateway,
        client_of(gateway.toolset, version, list_roots_callback=roots) as client,
    ):
        await client.call_tool("mcp_far", {"action": "list"})
        result = await client.call_tool("mcp_far", _call("roots"))
    assert json.loads(text_of(result)) == {"roots": [{"uri": "file:///work"}]}


@FRONTS
@BACKS
async def test_log_messages_reach_the_client_under_the_servers_name(tmp_path: Path, version: str, era: str) -> None:
    heard: asyncio.Queue[types.LoggingMessageNotificationParams] = asyncio.Queue()

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        heard.put_nowait(params)

    level: Any = {"log_level": "info"} if version != "legacy" else {}
    async with (
        asking(tmp_path, era) as gateway,
        client_of(gateway.toolset, version, logging_callback=log, **level) as client,
    ):
        # The SDK's client may drop what comes together with the answer, so it is asked again until it has heard one.
        for _ in range(10):
            await client.call_tool("mcp_far", _call("logs"))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    first = await heard.get()
                    break
        else:
            pytest.fail("no log message reached the client")
        told = await client.call_tool("mcp_far", _call("level"))
    expected = "debug" if version == "legacy" else "warning"
    assert (first.level, first.logger) == (expected, "far/disk")
    assert first.data == {"text": expected, "free": 1}
    asked = "debug" if version == "legacy" else "info"
    assert json.loads(text_of(told)) == (asked if era == "modern" else None)


@FRONTS
@BACKS
async def test_the_instructions_of_a_server_are_quoted_as_its_own(tmp_path: Path, version: str, era: str) -> None:
    async with asking(tmp_path, era) as gateway, client_of(gateway.toolset, version) as client:
        said = told(await client.call_tool("mcp_far", {"action": "list"}))
    assert (said["server"], said["server_says"]) == ("far", "Be kind.")


async def test_the_trace_of_a_call_goes_on_at_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    upstream = Tools("far")

    @upstream.tool
    def seen(context: CallContext) -> str:
        """What came of the trace."""
        return " ".join(str(context.meta.get(name)) for name in ("traceparent", "tracestate", "baggage"))

    place = Place(folder=tmp_path)
    trace = "0af7651916cd43dd8448eb211c80319c"
    async with served_over_http(upstream.toolset()) as url:
        place.write_config({"far": {"url": url}})
        async with open_app(Settings(gateway=(place.config,), project=tmp_path)) as app:
            arguments = {"action": "execute", "tool_name": "seen"}
            meta = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "tracestate": "a=1", "baggage": "user=7"}
            found = await call_tool(app.toolset, "mcp_far", arguments, CallContext(meta=meta))
            odd = await call_tool(app.toolset, "mcp_far", arguments, CallContext(meta={"traceparent": "00-\r\n"}))
    assert trace in str(found.relayed)
    assert "a=1" in str(found.relayed)
    assert "user=7" not in str(found.relayed)
    assert "00-" not in str(odd.relayed)

"""What goes over the wire to remote servers, and whatever may go wrong there."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from tests.gateway.remote_servers import Handler, Scripted, answer, channels, listening, remote, text_result
from tests.gateway.toys import hear_nothing, say, words
from tests.support import size
from trysquare import ErrorCode, ToolError
from trysquare.gateway.pool.pool import ServerPool, open_pool
from trysquare.gateway.upstream.http_client import OriginClient
from trysquare.store import Secrets

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])


@asynccontextmanager
async def reached(
    server: Scripted, folder: Path, on_change: Callable[[str, str], None] = hear_nothing, **fields: Any
) -> AsyncGenerator[ServerPool]:
    """A pool whose one server is scripted."""
    async with listening(server.app) as place:
        config = remote(f"{place}/mcp", **fields)
        secrets = Secrets(folder / "secrets.json")
        async with open_pool({"far": config}, on_change=on_change, transports=channels(secrets)) as pool:
            yield pool


async def call(pool: ServerPool, tool: str = "echo") -> str:
    with anyio.fail_after(20):
        return await words(pool, tool, "hi", server="far")


async def failed(pool: ServerPool) -> ToolError:
    with anyio.fail_after(20), pytest.raises(ToolError) as caught:
        await say(pool, "echo", "hi", server="far")
    return caught.value


def always(response: Callable[[Any], Response]) -> Handler:
    """Answer every request with what is made of its body."""

    async def respond(request: Request) -> Response:
        return response(json.loads(await request.body()))

    return respond


def events(*messages: Any, tail: str = "") -> Response:
    """A stream of messages that ends after them."""

    async def stream() -> AsyncIterator[str]:
        for number, message in enumerate(messages, start=1):
            yield f"id: {number}\nretry: 1\ndata: {json.dumps(message)}\n\n"
        yield tail

    return StreamingResponse(stream(), media_type="text/event-stream")


async def test_the_earlier_era_says_its_session_and_version_in_headers(tmp_path: Path) -> None:
    server = Scripted()
    async with reached(server, tmp_path, headers={"X-Key": "k3y"}) as pool:
        assert await call(pool) == "done"
    [(first, _)] = server.of("initialize")
    assert "mcp-session-id" not in first
    assert "mcp-protocol-version" not in first
    for method in ("notifications/initialized", "tools/call", "GET", "DELETE"):
        [(headers, _)] = server.of(method)
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("s1", "2025-11-25")
    assert {headers["x-key"] for _, headers, _ in server.seen} == {"k3y"}
    kinds = [method for method, _, _ in server.seen]
    assert kinds.index("notifications/initialized") < kinds.index("tools/call")


async def test_the_modern_era_says_method_and_name_in_headers(tmp_path: Path) -> None:
    server = Scripted(modern=True)
    async with reached(server, tmp_path) as pool:
        await call(pool, "échø")
        await call(pool)
    (probe, _), *_ = server.of("server/discover")
    assert (probe["mcp-protocol-version"], probe["mcp-method"]) == ("2026-07-28", "server/discover")
    (odd, _), (plain, body) = server.of("tools/call")
    assert (odd["mcp-method"], odd["mcp-name"]) == ("tools/call", "=?base64?w6ljaMO4?=")
    assert plain["mcp-name"] == "echo"
    assert body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert not {"initialize", "notifications/initialized", "GET", "DELETE"} & {method for method, _, _ in server.seen}


@ERAS
async def test_line_breaks_between_the_parts_of_an_answer_do_not_get_through(modern: bool, tmp_path: Path) -> None:
    server = Scripted(modern=modern)

    def pretty(body: Any) -> Response:
        text = json.dumps(answer(body["id"], text_result("a\nb")), indent=2)
        return Response(text, media_type="application/json")

    server.handlers["tools/call"] = always(pretty)
    async with reached(server, tmp_path) as pool:
        with anyio.fail_after(20):
            found = await say(pool, "echo", "hi", server="far")
    assert b"\n" not in found.body
    assert json.loads(found.body) == text_result("a\nb")


async def test_a_stream_that_breaks_off_is_resumed_and_nothing_is_sent_again(tmp_path: Path) -> None:
    server, asked = Scripted(), list[Any]()

    def begin(body: Any) -> Response:
        asked.append(body["id"])
        return events({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}})

    async def go_on(request: Request) -> Response:
        if "last-event-id" not in request.headers:
            return Response(status_code=405)
        return events(answer(asked[0], text_result("late")))

    server.handlers |= {"tools/call": always(begin), "GET": go_on}
    async with reached(server, tmp_path) as pool:
        assert await call(pool) == "late"
    assert len(server.of("tools/call")) == 1
    assert [headers["last-event-id"] for headers, _ in server.of("GET") if "last-event-id" in headers] == ["1"]


async def test_a_stream_that_cannot_be_resumed_leaves_the_outcome_open(tmp_path: Path) -> None:
    server = Scripted()
    server.handlers["tools/call"] = always(lambda body: events({"jsonrpc": "2.0", "method": "notifications/x"}))
    async with reached(server, tmp_path) as pool:
        error = await failed(pool)
    assert (error.code, error.fields["outcome"]) == (ErrorCode.UPSTREAM_LOST, "sent_unknown")


async def test_a_stream_that_goes_on_after_the_answer_holds_nobody_up(tmp_path: Path) -> None:
    server, ended = Scripted(modern=True), asyncio.Event()

    def endless(body: Any) -> Response:
        async def stream() -> AsyncIterator[str]:
            try:
                yield f"data: {json.dumps(answer(body['id'], text_result('there')))}\n\n"
                await asyncio.Event().wait()
            finally:
                ended.set()

        return StreamingResponse(stream(), media_type="text/event-stream")

    server.handlers["tools/call"] = always(endless)
    async with reached(server, tmp_path) as pool:
        assert await call(pool) == "there"
        with anyio.fail_after(20):
            await ended.wait()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"error": {"code": -32600, "message": "Session not found"}, "id": None}),
        (404, {}),
        (400, {"error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}, "id": None}),
    ],
)
async def test_a_session_that_the_server_forgot_is_begun_anew(
    status: int, body: dict[str, Any], tmp_path: Path
) -> None:
    server = Scripted()
    async with reached(server, tmp_path) as pool:
        await call(pool)
        server.session = "s2"

        async def only_new(request: Request) -> Response:
            if request.headers.get("mcp-session-id") != "s2":
                return JSONResponse(body, status_code=status)
            return JSONResponse(answer(json.loads(await request.body())["id"], text_result("again")))

        server.handlers["tools/call"] = only_new
        assert await call(pool) == "again"
    assert len(server.of("initialize")) == 2


@ERAS
async def test_an_error_with_a_status_and_without_an_id_is_the_answer(modern: bool, tmp_path: Path) -> None:
    server = Scripted(modern=modern, session=None)
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "No such tool."}}
    server.handlers["tools/call"] = always(lambda body: JSONResponse(refusal, status_code=400))
    async with reached(server, tmp_path) as pool:
        error = await failed(pool)
    assert (error.code, error.fields["upstream_code"]) == (ErrorCode.UPSTREAM_REFUSED, -32602)
    assert "No such tool." in error.message


@ERAS
@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (Response(status_code=500), "sent_unknown"),
        (Response(status_code=503), "sent_unknown"),
        (Response(status_code=429), "not_sent"),
        (Response(status_code=202), "sent_unknown"),
        (Response("<html>", media_type="text/html"), "sent_unknown"),
        (Response("{ half", media_type="application/json"), "sent_unknown"),
        (Response("", media_type="application/json"), "sent_unknown"),
        (Response('{"jsonrpc":"2.0","id":999,"result":{}}', media_type="application/json"), "sent_unknown"),
    ],
    ids=["500", "503", "429", "202", "html", "half", "empty", "other id"],
)
async def test_what_is_no_answer_ends_the_call_and_the_next_one_works(
    modern: bool, response: Response, outcome: str, tmp_path: Path
) -> None:
    server = Scripted(modern=modern)
    server.handlers["tools/call"] = always(lambda body: response)
    async with reached(server, tmp_path) as pool:
        error = await failed(pool)
        assert error.fields["outcome"] == outcome
        del server.handlers["tools/call"]
        assert await call(pool) == "done"


@ERAS
@pytest.mark.parametrize("as_stream", [False, True], ids=["json", "stream"])
async def test_a_large_answer_arrives_whole(modern: bool, as_stream: bool, tmp_path: Path) -> None:
    server, text = Scripted(modern=modern), "Grüße " * size(500_000, 8_000_000)

    def large(body: Any) -> Response:
        message = answer(body["id"], text_result(text))
        return events(message) if as_stream else JSONResponse(message)

    server.handlers["tools/call"] = always(large)
    async with reached(server, tmp_path) as pool:
        with anyio.fail_after(60):
            assert await words(pool, "echo", "hi", server="far") == text
    assert len(server.of("tools/call")) == 1


@ERAS
@pytest.mark.parametrize("as_stream", [False, True], ids=["json", "stream"])
async def test_an_answer_longer_than_allowed_is_refused(modern: bool, as_stream: bool, tmp_path: Path) -> None:
    server = Scripted(modern=modern)

    def long(body: Any) -> Response:
        message = answer(body["id"], text_result("x" * 200_000))
        return events(message) if as_stream else JSONResponse(message)

    server.handlers["tools/call"] = always(long)
    async with reached(server, tmp_path, max_line=100_000) as pool:
        error = await failed(pool)
        assert "more than 100000 bytes" in error.message
        del server.handlers["tools/call"]
        assert await call(pool) == "done"


async def test_a_server_that_cannot_be_reached_has_been_sent_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    config = remote(f"http://127.0.0.1:{port}/mcp?key=s3cret", headers={"X-Key": "s3cret"})
    secrets = Secrets(tmp_path / "secrets.json")
    async with open_pool({"far": config}, on_change=hear_nothing, transports=channels(secrets)) as pool:
        error = await failed(pool)
    assert (error.code, error.fields["outcome"]) == (ErrorCode.UPSTREAM_UNAVAILABLE, "not_sent")


@ERAS
async def test_a_redirect_to_another_host_is_not_followed(modern: bool, tmp_path: Path) -> None:
    other = Scripted(modern=modern)
    async with listening(other.app) as elsewhere:
        server = Scripted(modern=modern)
        server.handlers["tools/call"] = always(lambda body: RedirectResponse(f"{elsewhere}/mcp?a=b", status_code=307))
        async with reached(server, tmp_path, headers={"Authorization": "Bearer s3cret"}) as pool:
            error = await failed(pool)
    assert other.seen == []
    assert f"{elsewhere}/mcp" in error.message
    assert error.fields["outcome"] == "not_sent"


@ERAS
async def test_a_redirect_on_the_same_host_is_followed_with_the_message(modern: bool, tmp_path: Path) -> None:
    server = Scripted(modern=modern)
    turns = iter(range(2))

    async def turn(request: Request) -> Response:
        if next(turns) == 0:
            return RedirectResponse("/mcp?again", status_code=308)
        return JSONResponse(answer(json.loads(await request.body())["id"], text_result("there")))

    server.handlers["tools/call"] = turn
    async with reached(server, tmp_path) as pool:
        assert await call(pool) == "there"


async def test_a_server_that_asks_for_a_login_names_the_command(tmp_path: Path) -> None:
    server = Scripted()
    server.handlers |= dict.fromkeys(("server/discover", "initialize"), always(lambda body: Response(status_code=401)))
    async with reached(server, tmp_path) as pool:
        error = await failed(pool)
    assert "`trysquare gateway login far`" in (error.instruction or "")
    async with reached(server, tmp_path, headers={"authorization": "Bearer s3cret"}) as pool:
        error = await failed(pool)
    assert "Authorization header" in error.message
    assert "s3cret" not in f"{error.message} {error.instruction}"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_crash_in_the_connection_ends_the_calls_that_wait_for_it(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reached(Scripted(), tmp_path, transport=transport) as pool:
        if transport == "http":
            await call(pool)

        def crash(*_: object, **__: object) -> None:
            raise RuntimeError("s3cret")

        with monkeypatch.context() as broken:
            broken.setattr(OriginClient, "stream", crash)
            error = await failed(pool)
    assert "The connection failed (RuntimeError)." in error.message
    assert "s3cret" not in error.message


async def test_a_keyring_that_does_not_answer_keeps_nobody_from_servers_without_a_login(tmp_path: Path) -> None:
    spoil(tmp_path / "secrets.json")
    server = Scripted()
    async with reached(server, tmp_path) as pool:
        assert await call(pool) == "done"
        server.handlers["tools/call"] = always(lambda body: Response(status_code=401))
        error = await failed(pool)
    assert "requires a login" in error.message
    assert "secrets file" in error.message


@ERAS
async def test_a_call_that_nobody_waits_for_is_taken_back(modern: bool, tmp_path: Path) -> None:
    server, begun, gone = Scripted(modern=modern), asyncio.Event(), asyncio.Event()

    async def hang(request: Request) -> Response:
        begun.set()
        while (await request.receive())["type"] != "http.disconnect":
            pass
        if modern:
            gone.set()
        return Response()

    async def cancelled(request: Request) -> Response:
        gone.set()
        return Response(status_code=202)

    server.handlers["tools/call"] = hang
    server.handlers["notifications/cancelled"] = cancelled
    async with reached(server, tmp_path) as pool:
        with anyio.fail_after(20):
            task = asyncio.ensure_future(say(pool, "echo", "hi", server="far"))
            await begun.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await gone.wait()
    [(_, sent)] = server.of("tools/call")
    told = [body["params"]["requestId"] for _, body in server.of("notifications/cancelled")]
    assert told == ([] if modern else [sent["id"]])


async def test_the_stream_of_the_server_is_listened_to_again_after_it_broke(tmp_path: Path) -> None:
    server, changes = Scripted(), asyncio.Queue[str]()
    change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    server.handlers["GET"] = always_get(lambda headers: events(change))
    async with reached(server, tmp_path, on_change=lambda _, kind: changes.put_nowait(kind)) as pool:
        await call(pool)
        with anyio.fail_after(20):
            while len([headers for headers, _ in server.of("GET") if "last-event-id" in headers]) < 2:
                await changes.get()


def always_get(response: Callable[[Any], Response]) -> Handler:
    """Answer every GET with what is made of its headers."""

    async def respond(request: Request) -> Response:
        return response(request.headers)

    return respond


async def test_a_modern_server_is_listened_to_again_after_its_stream_broke(tmp_path: Path) -> None:
    server, changes = Scripted(modern=True), asyncio.Queue[str]()
    server.capabilities = {"tools": {"listChanged": True}}
    change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    server.handlers["subscriptions/listen"] = always(lambda body: events(change))
    async with reached(server, tmp_path, on_change=lambda _, kind: changes.put_nowait(kind)) as pool:
        await call(pool)
        with anyio.fail_after(20):
            while len(server.of("subscriptions/listen")) < 2:
                await changes.get()


@pytest.mark.parametrize("as_stream", [False, True], ids=["json", "stream"])
async def test_arguments_that_a_server_wants_in_headers_are_mirrored_there(as_stream: bool, tmp_path: Path) -> None:
    server = Scripted(modern=True)
    schema = {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Region"}}}
    page = {"tools": [{"name": "echo", "inputSchema": schema}]}

    async def choosy(request: Request) -> Response:
        body = json.loads(await request.body())
        if "mcp-param-region" not in request.headers:
            refusal = {"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32020, "message": "header is missing"}}
            return JSONResponse(refusal, status_code=400)
        return JSONResponse(answer(body["id"], text_result(request.headers["mcp-param-region"])))

    def listed(body: Any) -> Response:
        message = answer(body["id"], page)
        return events(message) if as_stream else JSONResponse(message)

    server.handlers |= {"tools/call": choosy, "tools/list": always(listed)}
    async with reached(server, tmp_path) as pool:
        assert await call(pool) == "hi"
        assert await call(pool) == "hi"
        assert len(server.of("tools/call")) == 3
    async with reached(server, tmp_path) as pool:
        await pool.definitions("far")
        assert await call(pool) == "hi"
    assert len(server.of("tools/call")) == 4


def spoil(path: Path) -> None:
    path.write_bytes(b"spoilt")


def busy(status: int, wanted: str | None, *, first: int) -> Handler:
    """Refuse so many calls as a busy server does, with an error of the protocol as its body; then answer."""
    refused = 0

    def respond(body: Any) -> Response:
        nonlocal refused
        if refused == first:
            return JSONResponse(answer(body["id"], text_result("done")))
        refused += 1
        error = {"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32000, "message": "Slow down"}}
        return JSONResponse(error, status_code=status, headers={} if wanted is None else {"retry-after": wanted})

    return always(respond)


@ERAS
@pytest.mark.parametrize("wanted", [None, "120", "soon", "Wed, 21 Oct 2099 07:28:00 GMT"])
async def test_a_server_that_is_busy_for_long_is_left_alone_and_says_until_when(
    wanted: str | None, modern: bool, tmp_path: Path
) -> None:
    server = Scripted(modern=modern, handlers={"tools/call": busy(429, wanted, first=1)})
    async with reached(server, tmp_path) as pool:
        error = await failed(pool)
        assert error.fields["outcome"] == "not_sent"
        assert error.fields["status"] == 429
        told = error.fields.get("retry_after_seconds")
        assert told == 120 if wanted == "120" else (told is None) == (wanted in (None, "soon"))
        assert len(server.of("tools/call")) == 1
        assert await call(pool) == "done"
        assert len(server.of("server/discover")) + len(server.of("initialize")) <= 2


@ERAS
async def test_a_server_that_is_busy_for_a_moment_gets_the_call_again(modern: bool, tmp_path: Path) -> None:
    server = Scripted(modern=modern, handlers={"tools/call": busy(429, "0", first=2)})
    async with reached(server, tmp_path) as pool:
        assert await call(pool) == "done"
    assert len(server.of("tools/call")) == 3


@ERAS
async def test_a_call_that_may_have_been_done_is_not_sent_again_by_a_busy_server(modern: bool, tmp_path: Path) -> None:
    server = Scripted(modern=modern, handlers={"tools/call": busy(503, "0", first=1)})
    async with reached(server, tmp_path) as pool:
        error = await failed(pool)
    assert (error.fields["outcome"], error.fields["retry_after_seconds"]) == ("sent_unknown", 0)
    assert len(server.of("tools/call")) == 1


@pytest.mark.parametrize("method", ["server/discover", "initialize"])
async def test_a_server_that_is_too_busy_to_greet_says_so(method: str, tmp_path: Path) -> None:
    server = Scripted(handlers={method: busy(429, "120", first=9)})
    async with reached(server, tmp_path) as pool:
        error = await failed(pool)
    assert (error.fields["outcome"], error.fields["retry_after_seconds"]) == ("not_sent", 120)
    assert len(server.of(method)) == 1

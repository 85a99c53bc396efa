"""Known heads: whatever comes over a connection, however it is cut, is heard as uvicorn's own parser hears it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from trysquare.serve.heads import HEAD_IN_SCOPE, once
from trysquare.serve.known_heads import KnownHeads

POST = b"POST /mcp HTTP/1.1\r\nHost: here\r\nMcp-Session-Id: a\r\n%bContent-Length: %d\r\n\r\n%b"


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = asyncio.Event()

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def close(self) -> None:
        self.closed.set()

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Connection:
    """A connection to an application that notes what it is asked and answers with the body."""

    def __init__(self, kind: type[HttpToolsProtocol], **more: Any) -> None:
        self.scopes: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        config = Config(
            self._answer, interface="asgi3", log_config=None, access_log=False, lifespan="off", ws="none", **more
        )
        config.load()
        self.state, self.wire = ServerState(), Wire()
        self.protocol = kind(config=config, server_state=self.state, app_state={"of": "all"})
        self.protocol.connection_made(self.wire)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        self.scopes.append({**scope, HEAD_IN_SCOPE: None})
        self.bodies.append(body)
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": body})

    async def hear(self, data: bytes) -> None:
        """Let it hear some bytes and do what follows from them."""
        if not self.wire.is_closing():
            self.protocol.data_received(data)
        for _ in range(12):
            await asyncio.sleep(0)


def post(body: bytes, more: bytes = b"") -> bytes:
    return POST % (more, len(body), body)


REQUESTS = st.lists(
    st.one_of(
        st.sampled_from([b"{}", b"[1]", b"", b"a\r\n\r\nb", b"POST / HTTP/1.1\r\n\r\n"]).map(post),
        st.just(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"),
        st.just(post(b"{}", b"Expect: 100-continue\r\n")),
        st.just(post(b"{}", b"Connection: close\r\n")),
        st.just(b"POST /mcp HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
        st.just(b"POST /mcp HTTP/1.0\r\nHost: here\r\nContent-Length: 2\r\n\r\n{}"),
        st.just(b"no HTTP at all\r\n\r\n"),
    ),
    min_size=1,
    max_size=8,
)


@given(REQUESTS, st.data())
def test_it_hears_what_the_parser_hears_however_it_is_cut(requests: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(requests)
    if data.draw(st.booleans()):
        ends = [sum(map(len, requests[: number + 1])) for number in range(len(requests))]
    else:
        ends = sorted(data.draw(st.sets(st.integers(1, len(whole)), max_size=10)) | {len(whole)})
    pieces = [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    async def compare() -> None:
        ours, theirs = Connection(KnownHeads), Connection(HttpToolsProtocol)
        for piece in pieces:
            await ours.hear(piece)
            await theirs.hear(piece)
        usual = [{**scope, HEAD_IN_SCOPE: None} for scope in theirs.scopes]
        assert (ours.bodies, ours.scopes) == (theirs.bodies, usual)
        assert (ours.wire.written, ours.wire.is_closing()) == (theirs.wire.written, theirs.wire.is_closing())
        ours.protocol.connection_lost(None)
        theirs.protocol.connection_lost(None)

    asyncio.run(compare())


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What went through the parser."""
    found: list[bytes] = []
    parse = HttpToolsProtocol.data_received

    def noted(self: HttpToolsProtocol, data: bytes) -> None:
        found.append(data)
        parse(self, data)

    monkeypatch.setattr(HttpToolsProtocol, "data_received", noted)
    return found


async def test_a_head_is_parsed_once(parsed: list[bytes]) -> None:
    connection = Connection(KnownHeads)
    for body in (b"[1]", b"[2]", b"[3]", b"[10]"):
        await connection.hear(post(body))
    assert parsed == [post(b"[1]"), post(b"[10]")]
    assert connection.bodies == [b"[1]", b"[2]", b"[3]", b"[10]"]


async def test_many_different_heads_are_not_all_kept(parsed: list[bytes]) -> None:
    connection = Connection(KnownHeads)
    for number in (*range(100), 0, 99):
        await connection.hear(post(b"{}", b"Number: %d\r\n" % number))
    assert len(parsed) == 101


async def test_requests_share_what_was_found_out_about_their_head_and_nothing_else() -> None:
    asked: list[bytes] = []

    def find(scope: Scope) -> int:
        asked.append(dict(scope["headers"])[b"mcp-session-id"])
        return len(asked)

    found: list[tuple[int, bool]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.append((once(scope, "me", find), "left" in scope or "left" in scope["state"]))
        scope["left"] = scope["state"]["left"] = True
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    connection = Connection(KnownHeads)
    connection.protocol._application = app  # pyright: ignore[reportAttributeAccessIssue]
    connection.protocol.app = app  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(3):
        await connection.hear(post(b"{}"))
    # The first was there before the head was known.
    assert found == [(1, False), (2, False), (2, False)]


async def test_a_connection_that_nobody_uses_is_closed_and_one_in_use_is_not() -> None:
    connection = Connection(KnownHeads, timeout_keep_alive=0)
    await connection.hear(post(b"{}"))
    async with asyncio.timeout(10):
        await connection.wire.closed.wait()
    kept = Connection(KnownHeads, timeout_keep_alive=3600)
    await kept.hear(post(b"{}"))
    await kept.hear(post(b"{}"))
    assert not kept.wire.is_closing()
    kept.protocol.connection_lost(None)

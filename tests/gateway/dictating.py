"""Opens a gateway over one dictated server, by any transport."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal, TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.gateway.dictated_server import reply
from tests.gateway.opened import Gateway, Place, opened
from tests.gateway.remote_servers import listening

Transport: TypeAlias = Literal["stdio", "http json", "http events", "sse"]
TRANSPORTS: tuple[Transport, ...] = ("stdio", "http json", "http events", "sse")


def dictated_app(dictation: dict[str, Any], transport: Transport) -> Starlette:
    """The server over HTTP."""
    streams: list[asyncio.Queue[bytes]] = []

    async def post(request: Request) -> Response:
        answer = reply(dictation, json.loads(await request.body()))
        if answer is None:
            return Response(status_code=202)
        if transport == "sse":
            streams[-1].put_nowait(b"event: message\ndata: " + answer + b"\n\n")
            return Response(status_code=202)
        if transport == "http events":
            return Response(b"data: " + answer + b"\n\n", media_type="text/event-stream")
        return Response(answer, media_type="application/json")

    async def stream(request: Request) -> Response:
        if transport != "sse":
            return Response(status_code=405)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queue.put_nowait(b"event: endpoint\ndata: /mcp\n\n")
        streams.append(queue)

        async def events() -> AsyncGenerator[bytes]:
            while True:
                yield await queue.get()

        return StreamingResponse(events(), media_type="text/event-stream")

    return Starlette(routes=[Route("/mcp", post, methods=["POST"]), Route("/mcp", stream, methods=["GET"])])


@contextlib.asynccontextmanager
async def entry_of(
    folder: Path, name: str, answers: dict[str, bytes], *, transport: Transport = "stdio", modern: bool = False
) -> AsyncGenerator[dict[str, Any]]:
    """The entry of a dictated server in a configuration, served as long as the block lasts."""
    dictation = {"modern": modern, "answers": {key: text.decode("latin-1") for key, text in answers.items()}}
    if transport == "stdio":
        path = folder / f"{name}-dictation.json"
        path.write_text(json.dumps(dictation), encoding="utf-8")
        script = Path(__file__).with_name("dictated_server.py")
        yield {"command": sys.executable, "args": ["-I", "-S", str(script), str(path)]}
        return
    async with listening(dictated_app(dictation, transport)) as address:
        yield {"type": "sse" if transport == "sse" else "http", "url": f"{address}/mcp"}


@contextlib.asynccontextmanager
async def dictated(
    folder: Path, answers: dict[str, bytes], *, transport: Transport = "stdio", modern: bool = False, **options: Any
) -> AsyncGenerator[Gateway]:
    """A gateway over one dictated server, called `odd`."""
    async with entry_of(folder, "odd", answers, transport=transport, modern=modern) as entry:
        place = Place(folder=folder)
        place.write_config({"odd": entry})
        async with opened(place, **options) as gateway:
            yield gateway


def answered(result: str | bytes) -> bytes:
    """A message with some result, as it stands on the wire."""
    body = result.encode() if isinstance(result, str) else result
    return b'{"jsonrpc":"2.0","id":ID,"result":' + body + b"}"


def said(text: str | bytes) -> bytes:
    """A message with a result of one text, as it stands between its quotes."""
    body = text.encode() if isinstance(text, str) else text
    return answered(b'{"content":[{"type":"text","text":"' + body + b'"}]}')

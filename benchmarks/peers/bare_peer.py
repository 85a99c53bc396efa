"""An ASGI application that does next to nothing, under the same uvicorn as Trysquare: what no server there goes below.

`python -m benchmarks.peers.bare_peer http TOOLS PORT`. It takes the number of a call out of the body and answers with
its text; it reads no JSON, no header and no session.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import uvicorn

from benchmarks.workload import expected_text

_NUMBER = re.compile(rb'"id":(\d+)')
_HEADERS = [(b"content-type", b"application/json"), (b"mcp-session-id", b"none")]


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Answer one request of the benchmark."""
    number = _NUMBER.search((await receive())["body"])
    text = expected_text(int(number[1]) if number else 0)
    body = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}' % (
        number[1] if number else b"null",
        text.encode(),
    )
    headers = [*_HEADERS, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    uvicorn.run(
        bare,
        host="127.0.0.1",
        port=int(sys.argv[3]),
        http="httptools",
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
    )

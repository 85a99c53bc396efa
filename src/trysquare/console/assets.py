"""The style and the scripts, compressed once, under names that change with their content."""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).parent
_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@functools.cache
def contents() -> dict[str, tuple[bytes, bytes, str]]:
    """Each file, plain and compressed, with its version."""
    found: dict[str, tuple[bytes, bytes, str]] = {}
    for path in sorted((FOLDER / "static").iterdir()):
        if path.suffix in _KINDS:
            data = path.read_bytes()
            found[path.name] = (data, gzip.compress(data, 9), hashlib.sha256(data).hexdigest()[:12])
    return found


def static_address(name: str) -> str:
    """The address of a file as pages link it."""
    return f"/static/{name}?{contents()[name][2]}"


def static_files() -> list[Route]:
    """A route for each file. They hold no secrets, so nobody has to sign in for them."""
    return [Route(f"/static/{name}", _served(name), methods=["GET"]) for name in contents()]


def _served(name: str) -> Callable[[Request], Awaitable[Response]]:
    plain, compressed, version = contents()[name]
    kind = next(kind for ending, kind in _KINDS.items() if name.endswith(ending))

    async def respond(request: Request) -> Response:
        lasting = request.url.query == version
        headers = {"cache-control": "max-age=31536000, immutable" if lasting else "no-cache", "vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(plain, media_type=kind, headers=headers)
        return Response(compressed, media_type=kind, headers={**headers, "content-encoding": "gzip"})

    return respond

"""What a request says of itself: its form, its origin, its cookie, and where it wants to go."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from trysquare.server.http.auth import is_loopback

MAX_BODY = 8 * 1024 * 1024


def cookie_name(request: Request) -> str:
    """The cookie of this console: browsers share cookies between the ports of a host."""
    server = request.scope.get("server")
    return f"trysquare_console_{server[1] if server else 0}"


async def read_form(request: Request) -> tuple[tuple[str, str], ...]:
    """The fields of a form, in their order. Raises `ValueError` for one that is too large or of another kind."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return ()
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise ValueError("The form is too large.")
    except ClientDisconnect:
        return ()
    return tuple(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10_000))


def is_own_page(request: Request) -> bool:
    """Whether a page of this very origin sent the request, as browsers say it."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    return origin is not None and origin in (f"http://{host}", f"https://{host}")


def target_of(request: Request) -> str:
    """Where a link leads: a path of this console, whatever it says."""
    to = request.query_params.get("to", "/")
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/"


def needs_tls(request: Request) -> bool:
    """Whether the cookie must travel encrypted: always, but on this machine."""
    return not is_loopback((request.url.hostname or "").strip("[]"))

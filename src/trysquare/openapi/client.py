"""Sending requests to an API: over the network to checked addresses, or to an ASGI application in this process."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast
from urllib.parse import quote, unquote, urljoin, urlsplit

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.net.fetch import CheckedConnections, FetchConfig
from trysquare.net.http import tls_context
from trysquare.openapi.request import Request

if TYPE_CHECKING:
    import httpcore2

MAX_BYTES = 10_000_000
_MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_ONLY_PUBLIC = (
    "An API at a private address is called only where the user names it. Ask the user to give the base address: "
    "`base_url=` in Python, `--openapi-url` on the command line."
)
AsgiApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """A response with its whole body."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Client(Protocol):
    """What sends a request. Raises `ToolError` for what it could not send, and for a response that is too large."""

    async def send(self, request: Request, base: str) -> Response: ...

    def open(self) -> contextlib.AbstractAsyncContextManager[None]: ...


class HttpClient:
    """Sends over the network. Between `open` and its end connections are kept."""

    def __init__(self, *, allow_hosts: frozenset[str] = frozenset(), timeout: float = 60.0) -> None:
        self._config = FetchConfig(allow_hosts=allow_hosts)
        self._timeout = timeout
        self._pools: dict[asyncio.AbstractEventLoop, httpcore2.AsyncConnectionPool] = {}

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        loop = asyncio.get_running_loop()
        async with await self._pool() as pool:
            self._pools[loop] = pool
            try:
                yield
            finally:
                del self._pools[loop]

    async def _pool(self) -> httpcore2.AsyncConnectionPool:
        import httpcore2

        backend = cast(httpcore2.AsyncNetworkBackend, CheckedConnections(self._config, instruction=_ONLY_PUBLIC))
        return httpcore2.AsyncConnectionPool(ssl_context=await tls_context("https:"), network_backend=backend)

    async def send(self, request: Request, base: str) -> Response:
        host = urlsplit(base).hostname or base
        try:
            async with asyncio.timeout(self._timeout):
                if (pool := self._pools.get(asyncio.get_running_loop())) is not None:
                    return await self._follow(pool, request, base, host)
                async with await self._pool() as pool:
                    return await self._follow(pool, request, base, host)
        except TimeoutError:
            raise ToolError(
                f"{host} did not answer within {self._timeout:g} seconds.",
                code=ErrorCode.UPSTREAM_LOST,
                instruction=_doubt(request),
            ) from None

    async def _follow(self, pool: httpcore2.AsyncConnectionPool, request: Request, base: str, host: str) -> Response:
        """Send, and follow redirects of a request that reads, on the same origin only: secrets stay there."""
        url = request.url(base)
        for _ in range(_MAX_REDIRECTS):
            response = await self._exchange(pool, request, url, host)
            target = response.headers.get("location")
            if response.status not in _REDIRECTS or target is None or request.method not in ("GET", "HEAD"):
                return response
            following = urljoin(url, target)
            if _origin(following) != _origin(url):
                return response
            url = following
        raise ToolError(f"{host} redirects in a circle.", code=ErrorCode.UPSTREAM_MALFORMED)

    async def _exchange(self, pool: httpcore2.AsyncConnectionPool, request: Request, url: str, host: str) -> Response:
        import httpcore2

        # A compressed body could expand to any size, so none is asked for.
        headers = {"User-Agent": "trysquare", "Accept-Encoding": "identity", "Host": urlsplit(url).netloc,
                   **request.headers}  # fmt: skip
        if request.cookies:
            headers["Cookie"] = "; ".join(request.cookies)
        if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = str(len(request.body or b""))
        unsent = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout)
        encoded = [
            (name.encode("ascii", "ignore"), value.encode("latin-1", "replace")) for name, value in headers.items()
        ]
        try:
            async with pool.stream(request.method, _address(url), headers=encoded, content=request.body) as response:
                body = await _bounded(response.aiter_stream(), host)
                return Response(status=response.status, headers=_names(response.headers), body=body)
        except (*unsent, ssl.SSLError) as error:
            raise _unavailable(host, error) from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
            raise ToolError(
                f"The connection to {host} broke off ({_short(error)}).",
                code=ErrorCode.UPSTREAM_LOST,
                instruction=_doubt(request),
            ) from None
        except httpcore2.UnsupportedProtocol as error:
            raise _unavailable(host, error) from None


def _address(url: str) -> httpcore2.URL:
    """An address in parts: as one text, what follows `;` in its path would be lost."""
    import httpcore2

    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return httpcore2.URL(
        scheme=parts.scheme.encode(), host=(parts.hostname or "").encode("idna"), port=parts.port,
        target=quote(target, safe="/?:@!$&'()*+,;=%[]~").encode("ascii"),
    )  # fmt: skip


async def _bounded(pieces: Any, host: str) -> bytes:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > MAX_BYTES:
            raise _too_large(host)
    return bytes(body)


def _too_large(host: str) -> ToolError:
    return ToolError(
        f"The answer of {host} is larger than {MAX_BYTES:,} bytes.",
        code=ErrorCode.UPSTREAM_MALFORMED,
        instruction="Ask for less: use the arguments that limit, filter or page the answer.",
    )


def _names(headers: Any) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in headers}


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:200]


def _doubt(request: Request) -> str:
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return "Send the call again."
    return "It is not known whether the request had an effect. Read the present state before you send it again."


def _unavailable(host: str, error: BaseException) -> ToolError:
    return ToolError(
        f"{host} cannot be reached ({_short(error)}). Nothing was sent.",
        code=ErrorCode.UPSTREAM_UNAVAILABLE,
        instruction="Send the call again later, or ask the user whether the service runs.",
    )


class AsgiClient:
    """Sends to an ASGI application in this process, whose lifespan runs between `open` and its end."""

    def __init__(self, app: AsgiApp, *, root_path: str = "") -> None:
        self._app, self._root_path = app, root_path

    async def send(self, request: Request, base: str) -> Response:
        url = urlsplit(request.url(base))
        status, headers, body = 500, list[tuple[bytes, bytes]](), bytearray()
        received = False
        given = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in request.headers.items()]
        given.append((b"host", url.netloc.encode()))
        if request.cookies:
            given.append((b"cookie", "; ".join(request.cookies).encode()))
        if request.body is not None:
            given.append((b"content-length", str(len(request.body)).encode()))
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": request.method,
            "scheme": url.scheme, "path": unquote(url.path), "raw_path": url.path.encode(),
            "query_string": url.query.encode(), "root_path": self._root_path, "headers": given,
            "server": (url.hostname or "localhost", url.port or 80), "client": ("127.0.0.1", 0),
        }  # fmt: skip
        over = asyncio.Event()

        async def receive() -> dict[str, Any]:
            nonlocal received
            if received:
                await over.wait()
                return {"type": "http.disconnect"}
            received = True
            return {"type": "http.request", "body": request.body or b"", "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers.extend(message.get("headers", ()))
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))
                if len(body) > MAX_BYTES:
                    raise _too_large(url.hostname or "The application")
                if not message.get("more_body", False):
                    over.set()

        await self._app(scope, receive, send)
        return Response(status=status, headers=_names(headers), body=bytes(body))

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Run the lifespan of the application; one that has none is left alone."""
        inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        scope: dict[str, Any] = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        await inbox.put({"type": "lifespan.startup"})
        task = asyncio.ensure_future(self._app(scope, inbox.get, outbox.put))
        started = await _answer(outbox, task)
        if started is not None and started["type"] == "lifespan.startup.failed":
            raise ToolError(f"The application did not start: {str(started.get('message', ''))[:500]}")
        try:
            yield
        finally:
            if started is not None:
                await inbox.put({"type": "lifespan.shutdown"})
                await _answer(outbox, task)
            if not task.done():
                task.cancel()
            await asyncio.wait((task,))


async def _answer(outbox: asyncio.Queue[dict[str, Any]], task: asyncio.Future[None]) -> dict[str, Any] | None:
    """What the application says next; None if it has no lifespan and ended."""
    waiting = asyncio.ensure_future(outbox.get())
    await asyncio.wait((waiting, task), return_when=asyncio.FIRST_COMPLETED)
    if waiting.done():
        return waiting.result()
    waiting.cancel()
    if not task.cancelled():
        # An application without a lifespan may say so by an error.
        task.exception()
    return None

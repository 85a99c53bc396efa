"""Fetching: the one way by which an agent reads from the network, and by which it reaches public addresses only.

The name is resolved, every address that comes back is checked, and the connection goes to a checked address: there is
no second look at the name between check and use, so a DNS answer that changes meanwhile changes nothing.
"""

from __future__ import annotations

import functools
import re
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias, cast
from urllib.parse import urljoin

import anyio
import httpcore2
import httpx2

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.workbench.addresses import Address, parse_address, why_not_public
from trysquare.workbench.fetch_config import FetchConfig

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to its addresses."""

_REDIRECTS = (301, 302, 303, 307, 308)
_BROKEN = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
    ssl.SSLError,
)
_GZIP = 16 + zlib.MAX_WBITS
_HOST = re.compile(rb"[\w.:-]{1,253}")
_AGENT = "trysquare"
_ONLY_PUBLIC = (
    "Only public addresses are fetched. Use another address; a person can allow this host with the setting "
    "`content.allow_hosts`."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """What came back."""

    url: str
    """Where it came from in the end, after redirects."""
    body: bytes
    content_type: str | None = None


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the operating system finds them. It also reads decimal, octal and hex numbers."""
    found = await run_in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@functools.cache
def _authorities() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


async def trusting(url: str) -> ssl.SSLContext:
    """Whom a connection to an address trusts. The authorities are read when first needed, once."""
    if url.startswith("https:"):
        return await run_in_thread(_authorities)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Fetcher:
    """Reads from public addresses."""

    def __init__(self, config: FetchConfig | None = None, *, resolve: Resolve = resolve) -> None:
        self._config = config or FetchConfig()
        self._backend = _CheckedConnections(self._config, resolve)

    async def fetch(self, url: str, *, accept: str = "*/*") -> Fetched:
        """The body at an address, within the limits; every redirect is checked like the first address."""
        limits = self._config.limits
        try:
            with anyio.fail_after(limits.seconds):
                return await self._followed(url, {"Accept": accept})
        except TimeoutError:
            raise _failed(url, f"did not answer within {limits.seconds:g} seconds") from None

    async def _followed(self, url: str, headers: Mapping[str, str]) -> Fetched:
        for _ in range(self._config.limits.redirects + 1):
            parsed = _parsed(url)
            async with self._answer(parsed, headers) as response:
                target = _header(response, "location")
                if response.status not in _REDIRECTS or target is None:
                    return await self._read(str(parsed), response)
            url = urljoin(str(parsed), target)
        raise _failed(url, f"leads on more than {self._config.limits.redirects} times")

    @asynccontextmanager
    async def _answer(self, url: httpx2.URL, headers: Mapping[str, str]) -> AsyncGenerator[httpcore2.Response]:
        context = await trusting(str(url))
        # What a server packs tightly could unpack to any size, so it is asked not to pack.
        sent = {"Host": url.netloc.decode("ascii"), "User-Agent": _AGENT, "Accept-Encoding": "identity", **headers}
        try:
            async with (
                httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=self._backend) as pool,
                pool.stream("GET", _for_core(url), headers=list(sent.items())) as response,
            ):
                yield response
        except _BROKEN as error:
            raise _failed(str(url), f"cannot be read ({_detail(error)})") from None

    async def _read(self, url: str, response: httpcore2.Response) -> Fetched:
        if not 200 <= response.status < 300:
            raise _failed(url, f"answered with status {response.status}")
        body = await self._body(url, response)
        return Fetched(url=url, body=body, content_type=_header(response, "content-type"))

    async def _body(self, url: str, response: httpcore2.Response) -> bytes:
        packed = _header(response, "content-encoding")
        if packed not in (None, "identity", "gzip", "x-gzip"):
            raise _failed(url, f"answered in the encoding `{packed[:40]}`, which is not read")
        most, body = self._config.limits.bytes, bytearray()
        unpacking = zlib.decompressobj(_GZIP) if packed in ("gzip", "x-gzip") else None
        async for piece in response.aiter_stream():
            try:
                body += piece if unpacking is None else unpacking.decompress(piece, most + 1 - len(body))
            except zlib.error:
                raise _failed(url, "answered with bytes that are not the gzip that it announced") from None
            if len(body) > most:
                raise _failed(url, f"is larger than the limit of {most:,} bytes")
        return bytes(body)


class _CheckedConnections(httpcore2.AsyncNetworkBackend):
    """Connections to addresses that were looked at, made in the same step as the look."""

    def __init__(self, config: FetchConfig, resolve: Resolve) -> None:
        self._config = config
        self._resolve = resolve
        self._inner = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        problem: Exception | None = None
        for address in await self._checked(host, port):
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.NetworkError, httpcore2.TimeoutException) as error:
                problem = error
        raise problem or httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise ToolError("Sockets of this machine are not fetched from.", code=ErrorCode.FETCH_NOT_ALLOWED)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    async def _checked(self, host: str, port: int) -> list[Address]:
        try:
            addresses = [parse_address(each) for each in await self._resolve(host, port)]
        except (OSError, ValueError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the name {host} is not known: {error}") from error
        if self._config.allows(host, port):
            return addresses
        for address in addresses:
            # One address that is not public is enough: which one a later look gives is the name's owner's choice.
            if reason := why_not_public(address):
                raise ToolError(
                    f"`{host[:100]}` leads to {address}, which is {reason}.",
                    code=ErrorCode.FETCH_NOT_ALLOWED,
                    instruction=_ONLY_PUBLIC,
                )
        return addresses


def _parsed(url: str) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise _not_allowed(url, f"is no address: {error}") from None
    if parsed.scheme not in ("http", "https"):
        raise _not_allowed(url, f"begins with `{parsed.scheme[:20]}:`" if parsed.scheme else "has no scheme")
    if not _HOST.fullmatch(parsed.raw_host):
        raise _not_allowed(url, "names no host" if not parsed.host else "has a host that cannot be a name")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise _not_allowed(url, "has a port that does not exist")
    if parsed.userinfo:
        raise _not_allowed(url, "carries a name and password")
    return parsed.copy_with(fragment=None)


def _for_core(url: httpx2.URL) -> httpcore2.URL:
    return httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


def _header(response: httpcore2.Response, name: str) -> str | None:
    wanted = name.encode("ascii")
    found = next((value for key, value in response.headers if key.lower() == wanted), None)
    return None if found is None else found.decode("latin-1").strip()


def _detail(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:200]


def _not_allowed(url: str, why: str) -> ToolError:
    return ToolError(
        f"`{url[:200]}` {why}.",
        code=ErrorCode.FETCH_NOT_ALLOWED,
        instruction="Give a public address that begins with http:// or https://.",
    )


def _failed(url: str, why: str) -> ToolError:
    return ToolError(
        f"`{url[:200]}` {why}.",
        code=ErrorCode.FETCH_FAILED,
        instruction="Check the address, or use another source. A server that is down may answer later.",
    )

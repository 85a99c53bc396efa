"""SSRF-safe fetch from public addresses.

The host is resolved, every address is checked, and the connection goes to a checked address: the name is not resolved
again between check and use, so a DNS rebinding has no effect. The HTTP packages are imported by the first fetch, since
settings import this module.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import urljoin

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.net.http import tls_context

if TYPE_CHECKING:
    import httpcore2
    import httpx2

Address: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

_REDIRECTS = (301, 302, 303, 307, 308)
_GZIP = 16 + zlib.MAX_WBITS
_HOST = re.compile(rb"[\w.:-]{1,253}")
_AGENT = "trysquare"
_ONLY_PUBLIC = (
    "Only public addresses are fetched. Use another address; the user can allow this host with the setting "
    "`content.allow_hosts`."
)

_PROVIDERS: dict[Address, str] = {IPv4Address("168.63.129.16"): "a service address of a cloud"}
"""Public addresses that the cloud provider of the machine answers."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
_TRANSLATED_LOCALLY = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchLimits:
    """Limits of a fetch."""

    bytes: int = 5_000_000
    seconds: float = 30.0
    redirects: int = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchConfig:
    """Allowed hosts and limits of fetches."""

    allow_hosts: frozenset[str] = frozenset()
    """Hosts, as `name` or `name:port`, that may have a private address."""
    limits: FetchLimits = field(default_factory=FetchLimits)

    def allows(self, host: str, port: int) -> bool:
        name = host.lower().strip("[]")
        return name in self.allow_hosts or f"{name}:{port}" in self.allow_hosts


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """Response of a fetch."""

    url: str
    """Final URL, after redirects."""
    body: bytes


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host by the operating system, which also reads decimal, octal and hex numbers."""
    found = await run_in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Fetcher:
    """HTTP client for public addresses."""

    def __init__(self, config: FetchConfig | None = None, *, resolve: Resolve = resolve) -> None:
        self._config = config or FetchConfig()
        self._resolve = resolve

    async def fetch(self, url: str, *, accept: str = "*/*") -> Fetched:
        """Fetch a URL within the limits; every redirect is checked like the first address."""
        limits = self._config.limits
        try:
            async with asyncio.timeout(limits.seconds):
                return await self._follow(url, {"Accept": accept})
        except TimeoutError:
            raise _failed(url, f"timed out after {limits.seconds:g} seconds") from None

    async def _follow(self, url: str, headers: Mapping[str, str]) -> Fetched:
        for _ in range(self._config.limits.redirects + 1):
            parsed = _parsed(url)
            async with self._request(parsed, headers) as response:
                target = _header(response, "location")
                if response.status not in _REDIRECTS or target is None:
                    return await self._read(str(parsed), response)
            url = urljoin(str(parsed), target)
        raise _failed(url, f"has too many redirects (limit {self._config.limits.redirects})")

    @asynccontextmanager
    async def _request(self, url: httpx2.URL, headers: Mapping[str, str]) -> AsyncGenerator[httpcore2.Response]:
        import httpcore2

        broken = (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, httpcore2.ProxyError)
        backend = cast(httpcore2.AsyncNetworkBackend, CheckedConnections(self._config, self._resolve))
        context = await tls_context(str(url))
        address = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        # A compressed body could expand to any size, so none is asked for.
        sent = {"Host": url.netloc.decode("ascii"), "User-Agent": _AGENT, "Accept-Encoding": "identity", **headers}
        try:
            async with (
                httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=backend) as pool,
                pool.stream("GET", address, headers=list(sent.items())) as response,
            ):
                yield response
        except (*broken, httpcore2.UnsupportedProtocol, ssl.SSLError) as error:
            detail = (str(error) or type(error).__name__)[:200]
            raise _failed(str(url), f"cannot be read ({detail})") from None

    async def _read(self, url: str, response: httpcore2.Response) -> Fetched:
        if not 200 <= response.status < 300:
            raise _failed(url, f"returned status {response.status}")
        return Fetched(url=url, body=await self._body(url, response))

    async def _body(self, url: str, response: httpcore2.Response) -> bytes:
        encoding = _header(response, "content-encoding")
        if encoding not in (None, "identity", "gzip", "x-gzip"):
            raise _failed(url, f"has the unsupported content encoding `{encoding[:40]}`")
        limit, body = self._config.limits.bytes, bytearray()
        decoder = zlib.decompressobj(_GZIP) if encoding in ("gzip", "x-gzip") else None
        async for piece in response.aiter_stream():
            try:
                body += piece if decoder is None else decoder.decompress(piece, limit + 1 - len(body))
            except zlib.error:
                raise _failed(url, "has an invalid gzip body") from None
            if len(body) > limit:
                raise _failed(url, f"is larger than the limit of {limit:,} bytes")
        return bytes(body)


class CheckedConnections:
    """Network backend of httpcore2 that connects only to checked addresses."""

    def __init__(self, config: FetchConfig, resolve: Resolve = resolve, *, instruction: str = _ONLY_PUBLIC) -> None:
        import httpcore2

        self._config = config
        self._resolve = resolve
        self._instruction = instruction
        self._inner = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        import httpcore2

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
        raise ToolError("Unix sockets cannot be fetched from.", code=ErrorCode.FETCH_NOT_ALLOWED)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    async def _checked(self, host: str, port: int) -> list[Address]:
        import httpcore2

        try:
            addresses = [parse_address(each) for each in await self._resolve(host, port)]
        except (OSError, ValueError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"cannot resolve {host}: {error}") from error
        if self._config.allows(host, port):
            return addresses
        for address in addresses:
            # One private address is enough to refuse: the owner of the name chooses which one is used.
            if reason := why_not_public(address):
                raise ToolError(
                    f"`{host[:100]}` resolves to {address}, which is {reason}.",
                    code=ErrorCode.FETCH_NOT_ALLOWED,
                    instruction=self._instruction,
                )
        return addresses


def _parsed(url: str) -> httpx2.URL:
    import httpx2

    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise _not_allowed(url, f"is not a valid URL: {error}") from None
    if parsed.scheme not in ("http", "https"):
        raise _not_allowed(
            url, f"has the unsupported scheme `{parsed.scheme[:20]}:`" if parsed.scheme else "has no scheme"
        )
    if not _HOST.fullmatch(parsed.raw_host):
        raise _not_allowed(url, "has no host" if not parsed.host else "has an invalid host")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise _not_allowed(url, "has an invalid port")
    if parsed.userinfo:
        raise _not_allowed(url, "contains a user name or password")
    return parsed.copy_with(fragment=None)


def _header(response: httpcore2.Response, name: str) -> str | None:
    wanted = name.encode("ascii")
    found = next((value for key, value in response.headers if key.lower() == wanted), None)
    return None if found is None else found.decode("latin-1").strip()


def _not_allowed(url: str, why: str) -> ToolError:
    return ToolError(
        f"`{url[:200]}` {why}.", code=ErrorCode.FETCH_NOT_ALLOWED, instruction="Send a public http:// or https:// URL."
    )


def _failed(url: str, why: str) -> ToolError:
    return ToolError(
        f"`{url[:200]}` {why}.", code=ErrorCode.FETCH_FAILED, instruction="Check the URL, or use another source."
    )


def parse_address(text: str) -> Address:
    """Parse an address of the resolver, without the interface after `%`."""
    return ip_address(text.partition("%")[0])


def why_not_public(address: Address) -> str | None:
    """Reason why an address is not public, or None."""
    if isinstance(address, IPv6Address):
        if (inner := _inner(address)) is not None:
            # IPv6-only networks reach every public host by such an address, so those must stay allowed.
            reason = why_not_public(inner)
            return f"{reason}, written inside an IPv6 address" if reason else None
        if address in _TRANSLATED_LOCALLY or address.is_site_local:
            return "a private address"
    return _PROVIDERS.get(address) or _kind(address)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """IPv4 address embedded in an IPv6 address, in any of the standard forms."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _SIX_TO_FOUR:
        return address.sixtofour
    if address in _TEREDO:
        return address.teredo[1] if address.teredo else None
    if address in _TRANSLATED or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _kind(address: Address) -> str | None:
    kinds = (
        (address.is_unspecified, "the unspecified address"),
        (address.is_loopback, "a loopback address"),
        (address.is_link_local, "a link-local address, used for cloud metadata"),
        (address.is_multicast, "a multicast address"),
        (address.is_reserved or not address.is_global, "a private or reserved address"),
    )
    return next((reason for applies, reason in kinds if applies), None)

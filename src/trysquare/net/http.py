"""HTTP client policy: certificates, timeouts, sent or not sent, bounded bodies, Retry-After, JSON requests.

httpx2 is imported by the functions that send something: importing this module must stay cheap.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread

if TYPE_CHECKING:
    import httpx2

BUSY = frozenset({429, 503})
"""Statuses of a server that is busy: the request may be sent again later."""
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAX_RETRY_AFTER = 366 * 24 * 3600.0
_MAX_PAUSE = 60.0
_MESSAGE_LENGTH = 400


@cache
def system_authorities() -> ssl.SSLContext:
    """TLS context with the certificate authorities of the system; slow, so not on the event loop."""
    import httpx2

    return httpx2.create_ssl_context()


@cache
def _no_authorities() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def tls_context(url: str) -> ssl.SSLContext:
    """TLS context for a URL; without `https:` an empty one, which costs nothing."""
    return await run_in_thread(system_authorities) if url.startswith("https:") else _no_authorities()


async def open_client(
    url: str,
    *,
    timeout: float | httpx2.Timeout,
    headers: Mapping[str, str] | None = None,
    auth: httpx2.Auth | None = None,
    limits: httpx2.Limits | None = None,
) -> httpx2.AsyncClient:
    """Open a client that does not follow redirects."""
    import httpx2

    return httpx2.AsyncClient(
        timeout=timeout,
        headers=dict(headers or {}),
        auth=auth,
        verify=await tls_context(url),
        limits=limits or httpx2.Limits(max_connections=100, max_keepalive_connections=20),
        # What is meant for this machine, tokens included, does not go through a proxy on another.
        trust_env=not _is_loopback(url),
    )


def _is_loopback(url: str) -> bool:
    host = ""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def was_sent(error: Exception) -> bool:
    """Whether a failed request may have reached its server."""
    import httpx2

    unconnected = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
    unsendable = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL)
    return not isinstance(error, (*unconnected, *unsendable))


def error_text(error: Exception) -> str:
    """Message of an error without the full stop, or its type."""
    return str(error).strip().rstrip(".") or type(error).__name__


def retry_after(header: str, *, clock: Callable[[], float] = time.time) -> float | None:
    """Seconds of a `Retry-After` header, a number or a date; None if it is neither."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:12])
    else:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - clock()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER)


async def read_body(response: httpx2.Response, limit: int) -> bytes | None:
    """Read a body, or return None above the limit."""
    pieces: list[bytes] = []
    length = 0
    async for piece in response.aiter_bytes():
        length += len(piece)
        if length > limit:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def content_type(response: httpx2.Response) -> str:
    """Media type of a body, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def json_object(body: bytes) -> JsonObject | None:
    """Parse a body as a JSON object, or return None."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def error_message(body: JsonObject) -> str:
    """Message in the JSON body of an error, at the top or below `error`; empty if there is none."""
    error: Any = body.get("error", body)
    message: Any = cast(JsonObject, error).get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Downloaded:
    """A document and its URL after redirects."""

    url: str
    body: bytes


def download(url: str, *, timeout: float, limit: int) -> Downloaded:
    """Read a small JSON document; blocks. Raises `ConnectionError`, and `ValueError` above the limit."""
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            body = response.read(limit + 1)
            found = Downloaded(url=response.geturl(), body=body)
    except urllib.error.HTTPError as error:
        # This error is the response as well, and holds its connection.
        error.close()
        raise ConnectionError(f"{url} returned status {error.code}") from None
    except urllib.error.URLError as error:
        raise ConnectionError(str(error.reason)) from None
    if len(body) > limit:
        raise ValueError(f"{url} has more than {limit} bytes")
    return found


class HttpRefused(Exception):
    """A request that the server rejects permanently."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _Failure(NamedTuple):
    reason: str
    wait: float | None = None


class JsonClient:
    """JSON client of one server, with retries while it is busy or unreachable."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        service: str,
        unavailable: ErrorCode,
        timeout: float,
        retries: int,
        first_pause: float = 0.5,
    ) -> None:
        self.url = url.rstrip("/")
        self._headers, self._timeout = dict(headers), timeout
        self._service, self._unavailable = service, unavailable
        self._retries, self._first_pause = retries, first_pause
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """Post an object and return the response. Raises `HttpRefused`, or `ToolError` if the server is unavailable."""
        return await self._send("POST", path, body)

    async def get(self, path: str) -> JsonObject:
        """Get the object at a path; raises as `post` does."""
        return await self._send("GET", path, None)

    async def _send(self, method: str, path: str, body: JsonObject | None) -> JsonObject:
        reason = ""
        for attempt in range(self._retries + 1):
            outcome = await self._attempt(method, path, body)
            if isinstance(outcome, dict):
                return outcome
            reason = outcome.reason
            if attempt < self._retries:
                await asyncio.sleep(outcome.wait if outcome.wait is not None else self._pause(attempt))
        raise ToolError(
            f"{self._service} at {self.url} is unavailable after {self._retries + 1} attempts: {reason}",
            code=self._unavailable,
            instruction="Check that the server runs and that the URL is right, then try again.",
        )

    def _pause(self, attempt: int) -> float:
        # Half of it random, so that clients of a busy server do not retry in step.
        longest = min(self._first_pause * 2**attempt, _MAX_PAUSE)
        return longest / 2 + random.random() * longest / 2

    async def _attempt(self, method: str, path: str, body: JsonObject | None) -> JsonObject | _Failure:
        import httpx2

        if self._client is None:
            self._client = await open_client(self.url, headers=self._headers, timeout=self._timeout)
        try:
            response = await self._client.request(method, self.url + path, json=body)
        except httpx2.TransportError as error:
            return _Failure(reason=f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        except httpx2.InvalidURL as error:
            raise ToolError(
                f"`{self.url}` is not a valid URL: {error}.",
                code=self._unavailable,
                instruction="Use a URL such as http://HOST:PORT/v1.",
            ) from None
        return self._read(response)

    def _read(self, response: httpx2.Response) -> JsonObject | _Failure:
        found = json_object(response.content)
        if response.is_success:
            if found is not None:
                return found
            raise ToolError(
                f"{self.url} did not return a JSON object: {response.text[:120]!r}",
                code=self._unavailable,
                instruction="Check that the URL is that of this API.",
            )
        message = (error_message(found or {}) or response.text.strip())[:_MESSAGE_LENGTH]
        text = f"{response.status_code} {message}".strip()
        if response.status_code not in _RETRIED:
            raise HttpRefused(response.status_code, text)
        wait = retry_after(response.headers.get("retry-after", ""))
        return _Failure(reason=text, wait=None if wait is None else min(wait, _MAX_PAUSE))

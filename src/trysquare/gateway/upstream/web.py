"""Web: requests to one remote server, what its refusals mean, and redirects that never lead elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime

import httpx2

from trysquare.core.errors import ConfigurationError
from trysquare.gateway.configuration.launch import shown_url
from trysquare.gateway.configuration.secrets import Secrets, SystemSecrets
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.upstream.certificates import trusted_authorities, trusting_nobody
from trysquare.gateway.upstream.channel import Loss
from trysquare.gateway.upstream.oauth import LoginLost, stored_login

_MOST_REDIRECTS = 5
_KEEP_ALIVE_SECONDS = 3.0
"""Shorter than the five seconds after which many servers close: a request must not meet a closing connection."""
_NOT_DONE = frozenset({401, 403, 404, 405, 406, 413, 415, 421, 429})
"""Statuses with which a server refuses a request before it acts on it."""
BUSY = frozenset({429, 503})
"""Statuses with which a server says that it may be asked again later."""
_LONGEST_WAIT = 366 * 24 * 3600.0
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
    httpx2.InvalidURL,
)


class Web:
    """The HTTP client of one server. Its headers and tokens go to the server's own origin only."""

    def __init__(self, config: ServerConfig, secrets: Secrets | None = None) -> None:
        self._config = config
        self._secrets = SystemSecrets() if secrets is None else secrets
        self._client: httpx2.AsyncClient | None = None
        self._has_login = False
        self._problem = ""
        """Why it is not known whether there is a login."""

    async def open(self) -> None:
        """Make ready to connect. Nothing goes over the network yet."""
        has_own_token = any(name.lower() == "authorization" for name in self._config.headers)
        login = None if has_own_token else await self._login()
        self._has_login = login is not None
        is_plain = self._config.url.startswith("http://")
        self._client = httpx2.AsyncClient(
            auth=login,
            headers=dict(self._config.headers),
            verify=trusting_nobody() if is_plain else await asyncio.to_thread(trusted_authorities),
            timeout=httpx2.Timeout(None, connect=self._config.start_timeout),
            limits=httpx2.Limits(max_keepalive_connections=64, keepalive_expiry=_KEEP_ALIVE_SECONDS),
        )

    async def _login(self) -> httpx2.Auth | None:
        try:
            return await stored_login(self._config, self._secrets)
        except ConfigurationError as error:
            # Most servers ask nobody to sign in; those that do will refuse us, and then it is told.
            self._problem = f" {error.message}"
            return None

    async def close(self) -> None:
        """Let go of every connection."""
        if self._client is not None:
            await self._client.aclose()

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncGenerator[httpx2.Response]:
        """A response whose body has not been read. Redirects within the origin that keep the method are followed."""
        assert self._client is not None
        request = self._client.build_request(method, url, headers=dict(headers), content=content)
        response = await self._client.send(request, stream=True)
        for _ in range(_MOST_REDIRECTS):
            following = response.next_request
            if following is None or not _stays(response.request, following):
                break
            await response.aclose()
            response = await self._client.send(following, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    def refusal(self, response: httpx2.Response) -> Loss:
        """Why a response is no answer."""
        status = response.status_code
        was_sent = not (status in _NOT_DONE or response.next_request is not None)
        reason, instruction = self._explained(response)
        return Loss(
            reason=reason,
            was_sent=was_sent,
            status=status,
            instruction=instruction,
            retry_after=retry_after(response.headers.get("retry-after", "")) if status in BUSY else None,
        )

    def failure(self, error: Exception) -> Loss:
        """Why there is no response."""
        if isinstance(error, LoginLost):
            return Loss(reason=str(error), was_sent=False, status=401, instruction=self._login_command())
        was_sent = not isinstance(error, _NEVER_SENT)
        if isinstance(error, httpx2.TimeoutException):
            reason = f"The server at {self._config.shown} does not answer."
        elif was_sent:
            reason = f"The connection to the server broke ({type(error).__name__})."
        else:
            reason = f"The server at {self._config.shown} cannot be reached: {_detail(error)}."
        return Loss(reason=reason, was_sent=was_sent)

    def _explained(self, response: httpx2.Response) -> tuple[str, str | None]:
        status = response.status_code
        if response.next_request is not None:
            place = shown_url(str(response.next_request.url.copy_with(query=None)))
            return (
                f"The server sends us on to {place}, which is not followed with the headers of this server.",
                f"If that is the right address, write it into {self._config.place}.",
            )
        if status == 401:
            return self._unauthorized(response)
        if status == 403 and "insufficient_scope" in response.headers.get("www-authenticate", ""):
            return "The server wants more rights than were given at the login.", self._login_command()
        return f"The server answered with HTTP status {status} {response.reason_phrase}".rstrip() + ".", None

    def _unauthorized(self, response: httpx2.Response) -> tuple[str, str | None]:
        if any(name.lower() == "authorization" for name in self._config.headers):
            return "The server refuses the Authorization header of its entry.", f"Mend it in {self._config.place}."
        if self._has_login:
            return "The login at the server has ended.", self._login_command()
        return f"The server asks for a login.{self._problem}", self._login_command()

    def _login_command(self) -> str:
        return f"Ask the person to run `trysquare gateway login {self._config.name}`."


def retry_after(given: str, *, clock: Callable[[], float] = time.time) -> float | None:
    """The seconds that a `Retry-After` header asks for, written as a number or as a date; None where it is neither."""
    text = given.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:12])
    else:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - clock()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)


async def body_of(response: httpx2.Response, most_bytes: int) -> bytes | None:
    """A whole body without line breaks, or None for one that is too long.

    Between the parts of a JSON text a line break is the same as a space, and inside of a string there can be none.
    """
    pieces: list[bytes] = []
    length = 0
    async for piece in response.aiter_bytes():
        length += len(piece)
        if length > most_bytes:
            return None
        pieces.append(piece)
    return b"".join(pieces).removeprefix(b"\xef\xbb\xbf").replace(b"\r", b" ").replace(b"\n", b" ")


def kind_of(response: httpx2.Response) -> str:
    """The type of a body, without its parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _stays(request: httpx2.Request, following: httpx2.Request) -> bool:
    """Whether a redirect leads to the same origin with the same method, and brings no user of its own."""
    before, after = request.url, following.url
    same_origin = (before.scheme, before.host, before.port) == (after.scheme, after.host, after.port)
    return same_origin and following.method == request.method and after.userinfo in (b"", before.userinfo)


def _detail(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__

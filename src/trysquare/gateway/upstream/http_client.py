"""HTTP client of one server: redirects, rejections, headers of the stateless protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import httpx2

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import as_list, as_object
from trysquare.gateway.config.launch import display_url
from trysquare.gateway.models import ServerConfig
from trysquare.gateway.upstream.oauth import LoginAuth, LoginExpired, load_login
from trysquare.gateway.upstream.transport import DisconnectReason, OutgoingMessage
from trysquare.net.http import BUSY, error_text, open_client, read_body, retry_after, was_sent
from trysquare.protocol.envelope import ANNOTATION, MirroredArguments, mirror_headers, mirrored_arguments
from trysquare.protocol.messages import decode, member
from trysquare.store import Secrets, SystemSecrets

BROKEN: Final = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, LoginExpired)
"""Errors of a request without a response."""
_MAX_REDIRECTS = 5
_KEEP_ALIVE_SECONDS = 3.0
"""Less than the five seconds after which many servers close a connection."""
_NOT_PROCESSED = frozenset({401, 403, 404, 405, 406, 413, 415, 421, 429})
"""Statuses with which a server rejects a request before it acts on it."""


class OriginClient:
    """HTTP client whose headers and tokens go to the server's own origin only."""

    def __init__(self, config: ServerConfig, secrets: Secrets | None = None) -> None:
        self._config = config
        self._secrets = SystemSecrets() if secrets is None else secrets
        self._client: httpx2.AsyncClient | None = None
        self._has_own_token = any(name.lower() == "authorization" for name in config.headers)
        self._has_login = False
        self._problem = ""
        """Why the stored login could not be read."""

    async def open(self) -> None:
        """Create the client. Nothing is sent yet."""
        login = None if self._has_own_token else await self._login()
        self._has_login = login is not None
        self._client = await open_client(
            self._config.url,
            auth=login,
            headers=self._config.headers,
            timeout=httpx2.Timeout(None, connect=self._config.start_timeout),
            limits=httpx2.Limits(max_keepalive_connections=64, keepalive_expiry=_KEEP_ALIVE_SECONDS),
        )

    async def _login(self) -> httpx2.Auth | None:
        try:
            login = await asyncio.to_thread(load_login, self._config, self._secrets)
        except ConfigurationError as error:
            # Most servers need no login; those that do respond with 401, whose error includes the problem.
            self._problem = f" {error.message}"
            return None
        return None if login is None else LoginAuth(self._config, self._secrets, login)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncGenerator[httpx2.Response]:
        """An unread response. Redirects within the origin that keep the method are followed."""
        assert self._client is not None
        request = self._client.build_request(method, url, headers=dict(headers), content=content)
        response = await self._client.send(request, stream=True)
        for _ in range(_MAX_REDIRECTS):
            following = response.next_request
            if following is None or not _is_same_origin(response.request, following):
                break
            await response.aclose()
            response = await self._client.send(following, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    def refusal(self, response: httpx2.Response) -> DisconnectReason:
        status = response.status_code
        reason, instruction = self._explained(response)
        return DisconnectReason(
            reason=reason,
            was_sent=status not in _NOT_PROCESSED and response.next_request is None,
            status=status,
            instruction=instruction,
            retry_after=retry_after(response.headers.get("retry-after", "")) if status in BUSY else None,
        )

    def failure(self, error: Exception) -> DisconnectReason:
        if isinstance(error, LoginExpired):
            return DisconnectReason(reason=str(error), was_sent=False, status=401, instruction=self._login_command())
        sent = was_sent(error)
        if isinstance(error, httpx2.TimeoutException):
            reason = f"Timeout: no response from {self._config.shown}."
        elif sent:
            reason = f"The connection was lost ({type(error).__name__})."
        else:
            reason = f"Cannot connect to {self._config.shown}: {error_text(error)}."
        return DisconnectReason(reason=reason, was_sent=sent)

    def _explained(self, response: httpx2.Response) -> tuple[str, str | None]:
        status = response.status_code
        if response.next_request is not None:
            target = display_url(str(response.next_request.url.copy_with(query=None)))
            return (
                f"The server redirects to {target}, another origin, which must not get this server's headers.",
                f"If that is the right URL, set it in {self._config.location}.",
            )
        if status == 401 and self._has_own_token:
            return "The server rejects the Authorization header of its entry.", f"Fix it in {self._config.location}."
        if status == 401:
            expired = "The login has expired."
            return expired if self._has_login else f"The server requires a login.{self._problem}", self._login_command()
        if status == 403 and "insufficient_scope" in response.headers.get("www-authenticate", ""):
            return "The server requires more OAuth scopes than the login has.", self._login_command()
        return f"HTTP status {status} {response.reason_phrase}".rstrip() + ".", None

    def _login_command(self) -> str:
        return f"Ask the user to run `trysquare gateway login {self._config.name}`."


async def read_message(response: httpx2.Response, limit: int) -> bytes | None:
    """A complete JSON body on one line, or None if it is too long."""
    body = await read_body(response, limit)
    return body and body.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b" ").replace(b"\n", b" ")


def _is_same_origin(request: httpx2.Request, following: httpx2.Request) -> bool:
    """Whether a redirect keeps origin and method, and adds no user."""
    before, after = request.url, following.url
    same_origin = (before.scheme, before.host, before.port) == (after.scheme, after.host, after.port)
    return same_origin and following.method == request.method and after.userinfo in (b"", before.userinfo)


class MirroredHeaders:
    """Arguments that a server expects in headers too, as its list of tools declares."""

    def __init__(self) -> None:
        self.is_listed = False
        """Whether the complete list of tools was read."""
        self._arguments: dict[str, MirroredArguments] = {}

    def learn(self, message: bytes) -> str | None:
        """Read a page of the list of tools. Returns the next cursor."""
        result = as_object(member(message, "result"))
        for tool in map(as_object, as_list(result.get("tools"))):
            self._arguments[str(tool.get("name"))] = mirrored_arguments(tool.get("inputSchema"))
        cursor = result.get("nextCursor")
        self.is_listed = self.is_listed or not cursor
        return cursor if isinstance(cursor, str) and cursor else None

    def notice(self, message: bytes) -> None:
        """Read a page that was requested elsewhere, if it declares any header."""
        if ANNOTATION.encode() in message:
            self.learn(message)

    def of(self, outgoing: OutgoingMessage) -> Mapping[str, str]:
        """The headers that mirror the arguments of a call."""
        found = self._arguments.get(outgoing.name or "") if outgoing.method == "tools/call" else None
        return mirror_headers(found, member(decode(outgoing.body).params, "arguments")) if found else {}

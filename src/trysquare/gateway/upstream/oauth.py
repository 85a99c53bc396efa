"""OAuth 2.1 for remote servers: login with a loopback redirect, stored tokens, refresh.

Only the login itself needs the MCP SDK, which comes with the extra `login` and is imported when it begins.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import hmac
import json
import logging
import math
import os
import time
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

import httpx2
import msgspec
from pydantic import AnyUrl, ValidationError

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject, as_object
from trysquare.gateway.config.entries import TRANSPORTS
from trysquare.gateway.models import OAuthClient, ServerConfig
from trysquare.net.http import open_client
from trysquare.protocol.envelope import VERSION_HEADER
from trysquare.protocol.messages import UNREADABLE, encode_request
from trysquare.protocol.versions import LATEST_HANDSHAKE
from trysquare.store import Secrets, user_state
from trysquare.store.location import prepare_folder

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

_PATH = "/callback"
_MAX_REQUEST = 16 * 1024
_READ_SECONDS = 10.0
_PAGE = (
    b"HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n"
    b"Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\r\n"
    b"<!doctype html><title>Trysquare</title><p>%s</p>"
)


class RedirectListener:
    """Loopback endpoint that waits for the one redirect with the expected state."""

    def __init__(self) -> None:
        self.address = ""
        self._state: str | None = None
        self.answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        """The parameters of the redirect."""

    def expect(self, url: str) -> None:
        self._state = dict(parse_qsl(urlsplit(url).query)).get("state")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(self._page(head))
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # disconnected, or not a browser
        finally:
            writer.close()

    def _page(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        parts = urlsplit(rest.partition(b" ")[0].decode("ascii", "replace"))
        found = dict(parse_qsl(parts.query))
        is_expected = hmac.compare_digest(found.get("state", "").encode(), (self._state or "").encode())
        if method != b"GET" or parts.path != _PATH or self._state is None or not is_expected:
            return _PAGE % (b"404 Not Found", b"Not found.")
        if not self.answer.done():
            self.answer.set_result(found)
        if "code" in found:
            return _PAGE % (b"200 OK", b"Authorization received. You can close this page and return to the terminal.")
        return _PAGE % (b"200 OK", b"The login was refused. See the terminal for details.")


@asynccontextmanager
async def open_loopback(port: int | None) -> AsyncGenerator[RedirectListener]:
    """Listen on the loopback interface, on a given or any free port."""
    loopback = RedirectListener()
    try:
        server = await asyncio.start_server(loopback.serve, "127.0.0.1", port or 0, limit=_MAX_REQUEST)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen on port {port} for the login redirect: {error.strerror}.",
            hint="Free the port, or set another `callbackPort`.",
        ) from None
    async with server:
        loopback.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{_PATH}"
        yield loopback


logger = logging.getLogger("trysquare.gateway")

_EARLY_SECONDS = 30.0
"""Seconds before its expiry at which a token is refreshed."""
_RENEW_SECONDS = 30.0
_LOCK_SECONDS = 45.0
"""Seconds to wait for the refresh of another process; longer than it can take."""
_POLL_SECONDS = 0.02


class LoginExpired(Exception):
    """A login has expired and cannot be refreshed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Login:
    """Tokens of a login, and what is needed to refresh them."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    scope: str | None = None
    token_endpoint: str = ""
    resource: str | None = None
    client_id: str = ""
    client_secret: str | None = field(default=None, repr=False)
    client_auth: str = "none"
    """The `token_endpoint_auth_method` of OAuth."""

    def is_fresh(self) -> bool:
        return self.expires_at is None or time.time() + _EARLY_SECONDS < self.expires_at


def login_name(config: ServerConfig) -> str:
    """The name of the secret. It includes the URL, so that a redirected entry does not get the token."""
    return f"login:{config.name}:{config.url}"


def load_login(config: ServerConfig, secrets: Secrets) -> Login | None:
    text = secrets.read(login_name(config))
    try:
        return None if text is None else msgspec.json.decode(text, type=Login)
    except UNREADABLE:
        return None


def save_login(config: ServerConfig, secrets: Secrets, login: Login) -> None:
    secrets.write(login_name(config), json.dumps(asdict(login)))


@asynccontextmanager
async def login_lock(config: ServerConfig, *, seconds: float = _LOCK_SECONDS) -> AsyncGenerator[None]:
    """Lock a login among the processes of this user; released if the holder is killed. Raises `LoginExpired`."""
    digest = hashlib.sha256(login_name(config).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    path = user_state().with_name(f"login-{digest}.lock")
    prepare_folder(path.parent)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(math.ceil(seconds / _POLL_SECONDS)):
            if _is_taken(lock):
                break
            await asyncio.sleep(_POLL_SECONDS)
        else:
            raise LoginExpired("Timeout: another process is still refreshing the login.")
        yield
    finally:
        os.close(lock)


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class LoginAuth(httpx2.Auth):
    """Adds the token to requests, and refreshes it. Requests wait for a refresh only, not for one another."""

    def __init__(self, config: ServerConfig, secrets: Secrets, login: Login) -> None:
        self._config, self._secrets, self._login = config, secrets, login
        self._renewing = asyncio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send with the token, and again with a refreshed one after a 401."""
        used = self._login if self._login.is_fresh() else await self._renewed(self._login)
        request.headers["Authorization"] = f"Bearer {used.access_token}"
        response = yield request
        if response.status_code == 401:
            # The server rejected the request, so it may be sent again.
            used = await self._renewed(used)
            request.headers["Authorization"] = f"Bearer {used.access_token}"
            yield request

    async def _renewed(self, old: Login) -> Login:
        async with self._renewing:
            if self._login is old:
                async with login_lock(self._config):
                    self._login = await self._renew(old)
            return self._login

    async def _renew(self, old: Login) -> Login:
        """The login that another process has stored meanwhile, else a refreshed one. Requires the lock."""
        found = await self._stored()
        if found.access_token != old.access_token and found.is_fresh():
            return found
        # A refresh token is often valid only once: the stored one is the valid one.
        if found.refresh_token is None or not found.token_endpoint:
            raise LoginExpired("The login has expired.")
        answer = await self._ask(found, found.refresh_token)
        if answer is None:
            raise LoginExpired("The login has expired and could not be refreshed.")
        await self._stored()
        login = renewed_login(found, answer)
        await asyncio.to_thread(save_login, self._config, self._secrets, login)
        return login

    async def _stored(self) -> Login:
        """The stored login; one that was removed must not come back by a refresh."""
        found = await asyncio.to_thread(load_login, self._config, self._secrets)
        if found is None:
            raise LoginExpired("The login was removed.")
        return found

    async def _ask(self, old: Login, refresh_token: str) -> dict[str, Any] | None:
        form, headers = _form(old, refresh_token)
        try:
            async with await open_client(old.token_endpoint, timeout=_RENEW_SECONDS) as client:
                response = await client.post(old.token_endpoint, data=form, headers=headers)
            answer: Any = response.json() if response.status_code == 200 else None
        except (httpx2.HTTPError, ValueError) as error:
            logger.warning("token refresh failed: server=%s error=%s", self._config.name, type(error).__name__)
            return None
        found = as_object(answer)
        return found if found.get("access_token") else None


def renewed_login(old: Login, answer: dict[str, Any]) -> Login:
    seconds = answer.get("expires_in")
    return replace(
        old,
        access_token=str(answer["access_token"]),
        refresh_token=str(answer.get("refresh_token") or old.refresh_token or "") or None,
        expires_at=time.time() + float(seconds) if isinstance(seconds, (int, float)) else None,
        scope=str(answer.get("scope") or old.scope or "") or None,
    )


def _form(login: Login, refresh_token: str) -> tuple[dict[str, str], dict[str, str]]:
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": login.client_id}
    if login.resource is not None:
        form["resource"] = login.resource
    if login.client_secret is None or login.client_auth == "none":
        return form, {}
    if login.client_auth == "client_secret_post":
        return {**form, "client_secret": login.client_secret}, {}
    pair = f"{quote(login.client_id, safe='')}:{quote(login.client_secret, safe='')}"
    return form, {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


_REQUEST_SECONDS = 30.0
_PROBE: JsonObject = {
    "protocolVersion": LATEST_HANDSHAKE,
    "capabilities": {},
    "clientInfo": {"name": "trysquare", "version": ""},
}
_OWN_ID = 'Register a client there, and set its id in the entry: "oauth": {"clientId": "…", "callbackPort": 8123}.'


async def sign_in(config: ServerConfig, secrets: Secrets, *, show: Callable[[str], None]) -> bool:
    """Sign in to a server. `show` gets the URL for the browser. False if the server requires no login."""
    try:
        from mcp.client.auth import OAuthFlowError, OAuthRegistrationError
    except ImportError:
        raise _failed(config, "the MCP SDK is not installed.", "Run: pip install 'trysquare[login]'") from None
    client = config.oauth or OAuthClient()
    async with open_loopback(client.callback_port) as loopback:
        provider = _provider(config, client, loopback, show)
        try:
            await _probe(config, provider)
        except OAuthRegistrationError as error:
            raise _failed(config, str(error), _OWN_ID) from None
        except (OAuthFlowError, httpx2.HTTPError, ValidationError) as error:
            first_line = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
            raise _failed(config, first_line) from None
    login = _login(provider)
    if login is None:
        return False
    async with login_lock(config):
        await asyncio.to_thread(save_login, config, secrets, login)
    return True


async def _probe(config: ServerConfig, provider: OAuthClientProvider) -> None:
    """Send one harmless request; the provider runs the login if the server requires it."""
    own = {"accept": "application/json, text/event-stream", VERSION_HEADER: LATEST_HANDSHAKE}
    headers = {**config.headers, "content-type": "application/json", **own}
    async with await open_client(config.url, auth=provider, headers=headers, timeout=_REQUEST_SECONDS) as client:
        method = TRANSPORTS[config.transport].login_method or "POST"
        body = encode_request(1, "initialize", _PROBE) if method == "POST" else None
        request = client.build_request(method, config.url, content=body)
        response = await client.send(request, stream=True)
        await response.aclose()


def _provider(
    config: ServerConfig, client: OAuthClient, loopback: RedirectListener, show: Callable[[str], None]
) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider, OAuthFlowError
    from mcp.shared.auth import AuthorizationCodeResult

    async def on_redirect(url: str) -> None:
        loopback.expect(url)
        show(url)

    async def on_callback() -> AuthorizationCodeResult:
        found = await loopback.answer
        if "code" not in found:
            raise OAuthFlowError(f"it was refused ({found.get('error', 'no reason was given')[:100]})")
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    return OAuthClientProvider(
        server_url=config.url,
        client_metadata=_metadata(client, loopback.address),
        storage=_Registration(client, loopback.address),
        redirect_handler=on_redirect,
        callback_handler=on_callback,
    )


def _metadata(client: OAuthClient, address: str) -> OAuthClientMetadata:
    from mcp.shared.auth import OAuthClientMetadata

    class WithOwnScopes(OAuthClientMetadata):
        """Client metadata that keeps the scopes of the entry; discovery would overwrite them."""

        def __setattr__(self, name: str, value: Any) -> None:
            if name != "scope":
                super().__setattr__(name, value)

    kind = WithOwnScopes if client.scopes else OAuthClientMetadata
    return kind(
        client_name="Trysquare",
        redirect_uris=[AnyUrl(address)],
        token_endpoint_auth_method="none" if client.client_secret is None else "client_secret_post",
        scope=" ".join(client.scopes) or None,
    )


class _Registration:
    """Storage for one login: the client of the entry, and nothing of earlier logins."""

    def __init__(self, client: OAuthClient, address: str) -> None:
        self._client: OAuthClientInformationFull | None = None
        if client.client_id is not None:
            from mcp.shared.auth import OAuthClientInformationFull

            metadata = _metadata(client, address).model_dump(exclude_none=True)
            self._client = OAuthClientInformationFull(
                **metadata, client_id=client.client_id, client_secret=client.client_secret
            )

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def _login(provider: OAuthClientProvider) -> Login | None:
    context = provider.context
    tokens, client = context.current_tokens, context.client_info
    if tokens is None or client is None:
        return None
    metadata = context.oauth_metadata
    endpoint = str(metadata.token_endpoint) if metadata is not None else urljoin(context.server_url, "/token")
    return Login(
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        expires_at=None if tokens.expires_in is None else time.time() + tokens.expires_in,
        scope=tokens.scope,
        token_endpoint=endpoint,
        resource=context.get_resource_url() if context.should_include_resource_param(LATEST_HANDSHAKE) else None,
        client_id=client.client_id,
        client_secret=client.client_secret,
        client_auth=client.token_endpoint_auth_method or "none",
    )


def _failed(config: ServerConfig, problem: str, hint: str | None = None) -> ConfigurationError:
    return ConfigurationError(f"Login to `{config.name}` failed: {problem}", where=str(config.location), hint=hint)

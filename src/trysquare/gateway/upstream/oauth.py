"""OAuth 2.1 sign-in to remote servers, with a loopback redirect. Needs the extra `login`."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
from pydantic import AnyUrl, ValidationError

from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject
from trysquare.gateway.config.entries import TRANSPORTS
from trysquare.gateway.config.secrets import Secrets
from trysquare.gateway.models import OAuthClient, ServerConfig
from trysquare.gateway.upstream.login import Login, login_lock, save_login
from trysquare.net.http import open_client
from trysquare.protocol.envelope import VERSION_HEADER
from trysquare.protocol.messages import encode_request
from trysquare.protocol.versions import LATEST_HANDSHAKE

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

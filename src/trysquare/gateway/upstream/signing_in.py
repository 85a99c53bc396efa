"""Signing in: a person agrees in their browser, and the login is kept. How OAuth is spoken is the SDK's part."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from trysquare.core.errors import ConfigurationError
from trysquare.core.types import JsonObject
from trysquare.gateway.configuration.secrets import Secrets
from trysquare.gateway.server import OAuthClient, ServerConfig
from trysquare.gateway.upstream.certificates import trusted_authorities
from trysquare.gateway.upstream.handshake import HANDSHAKE_VERSIONS
from trysquare.gateway.upstream.loopback import Loopback, open_loopback
from trysquare.gateway.upstream.oauth import Login, login_lock, save_login

_REQUEST_SECONDS = 30.0
_VERSION = HANDSHAKE_VERSIONS[-1]
_KNOCK: JsonObject = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": _VERSION,
        "capabilities": {},
        "clientInfo": {"name": "trysquare", "version": ""},
    },
}
_OWN_ID = 'Register a client there, and write its id into the entry: "oauth": {"clientId": "…", "callbackPort": 8123}.'


async def sign_in(config: ServerConfig, secrets: Secrets, *, show: Callable[[str], None]) -> bool:
    """Have a person sign in at a server. `show` gets the address for their browser. False if no login is asked for."""
    wanted = config.oauth or OAuthClient()
    async with open_loopback(wanted.callback_port) as loopback:
        provider = _provider(config, wanted, loopback, show)
        try:
            await _knock(config, provider)
        except OAuthRegistrationError as error:
            raise _failed(config, str(error), _OWN_ID) from None
        except (OAuthFlowError, httpx2.HTTPError, ValidationError) as error:
            raise _failed(config, _told(error)) from None
    login = _login(provider)
    if login is None:
        return False
    async with login_lock(config):
        await asyncio.to_thread(save_login, config, secrets, login)
    return True


async def _knock(config: ServerConfig, provider: OAuthClientProvider) -> None:
    """Send one harmless request. The provider goes through the login when the server asks for it."""
    verify = await asyncio.to_thread(trusted_authorities)
    headers = {**config.headers, "accept": "application/json, text/event-stream", "mcp-protocol-version": _VERSION}
    async with httpx2.AsyncClient(auth=provider, headers=headers, verify=verify, timeout=_REQUEST_SECONDS) as client:
        if config.transport == "sse":
            request = client.build_request("GET", config.url)
        else:
            request = client.build_request("POST", config.url, json=_KNOCK)
        response = await client.send(request, stream=True)
        await response.aclose()


def _provider(
    config: ServerConfig, wanted: OAuthClient, loopback: Loopback, show: Callable[[str], None]
) -> OAuthClientProvider:
    async def send_away(question: str) -> None:
        loopback.expect(question)
        show(question)

    async def come_back() -> AuthorizationCodeResult:
        found = await loopback.answer()
        if "code" not in found:
            raise OAuthFlowError(f"it was refused ({found.get('error', 'no reason was given')[:100]})")
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    return OAuthClientProvider(
        server_url=config.url,
        client_metadata=_metadata(wanted, loopback.address),
        storage=_Registration(wanted, loopback.address),
        redirect_handler=send_away,
        callback_handler=come_back,
    )


class _WithOwnScopes(OAuthClientMetadata):
    """Keeps the scopes that the entry names: they know better than discovery, which would put its own there."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "scope":
            super().__setattr__(name, value)


def _metadata(wanted: OAuthClient, address: str) -> OAuthClientMetadata:
    kind = _WithOwnScopes if wanted.scopes else OAuthClientMetadata
    return kind(
        client_name="Trysquare",
        redirect_uris=[AnyUrl(address)],
        token_endpoint_auth_method="none" if wanted.client_secret is None else "client_secret_post",
        scope=" ".join(wanted.scopes) or None,
    )


class _Registration:
    """What the provider keeps during one login: the client that the entry names, and nothing of earlier logins."""

    def __init__(self, wanted: OAuthClient, address: str) -> None:
        self._client: OAuthClientInformationFull | None = None
        if wanted.client_id is not None:
            metadata = _metadata(wanted, address).model_dump(exclude_none=True)
            self._client = OAuthClientInformationFull(
                **metadata, client_id=wanted.client_id, client_secret=wanted.client_secret
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
        resource=context.get_resource_url() if context.should_include_resource_param(_VERSION) else None,
        client_id=client.client_id,
        client_secret=client.client_secret,
        client_auth=client.token_endpoint_auth_method or "none",
    )


def _told(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


def _failed(config: ServerConfig, problem: str, hint: str | None = None) -> ConfigurationError:
    return ConfigurationError(f"Signing in at `{config.name}` failed: {problem}", where=str(config.place), hint=hint)

"""Bearer tokens, and the metadata that tells a client where to get one."""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from trysquare.core.context import Principal
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.server.http.endpoint import PRINCIPAL
from trysquare.server.http.exchange import AsgiApp, Receive, Scope, Send, headers_of, send_json
from trysquare.store.tokens import split_scopes

_LONGEST_TOKEN = 16 * 1024


class TokenVerifier(Protocol):
    """Says whom a bearer token stands for."""

    async def verify(self, token: str) -> Principal | None:
        """The principal of a token, or None for one that is unknown, expired, or not meant for this server."""
        ...


class TokensUnavailable(Exception):
    """Tokens cannot be checked now, through no fault of the caller; the text is for the log."""


class InsufficientScope(Exception):
    """A token is genuine and lacks a scope that this server demands."""

    def __init__(self, scopes: Iterable[str]) -> None:
        self.scopes = tuple(scopes)
        super().__init__(f"needs the scopes {' '.join(self.scopes)}")


def token_digest(token: str) -> str:
    """SHA-256 of a token; a long random token needs no slower hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class StaticTokens:
    """Tokens that are named in the configuration. Only their digests stay in memory.

    Their principal is `fixed:SUBJECT`, which no other kind of token can be.
    """

    def __init__(self, tokens: Iterable[str], *, subject: str = "token", scopes: frozenset[str] | None = None) -> None:
        self._digests = frozenset(token_digest(token) for token in tokens)
        self._principal = Principal(subject=f"fixed:{subject}", **split_scopes(scopes))

    async def verify(self, token: str) -> Principal | None:
        return self._principal if token_digest(token) in self._digests else None


class StoredTokens:
    """Tokens that a store keeps by their digest, with their scopes.

    A found token is remembered for `remember` seconds, so that a busy client does not ask the store for every call;
    so long may a revoked one still be taken.
    """

    def __init__(
        self,
        find: Callable[[str], Principal | None],
        *,
        remember: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._remember = remember
        self._clock = clock
        self._known: dict[str, tuple[float, Principal]] = {}

    async def verify(self, token: str) -> Principal | None:
        digest = token_digest(token)
        now = self._clock()
        until, principal = self._known.get(digest, (0.0, None))
        if principal is not None and now < until:
            return principal
        try:
            found = await run_in_thread(lambda: self._find(digest))
        except ToolError as error:
            raise TokensUnavailable(error.message) from None
        # Kept small: what has run out goes whenever something new comes.
        self._known = {key: entry for key, entry in self._known.items() if now < entry[0]}
        if found is not None:
            self._known[digest] = (now + self._remember, found)
        return found


class AnyVerifier:
    """Several kinds of tokens: the first verifier that knows one decides."""

    def __init__(self, verifiers: Iterable[TokenVerifier]) -> None:
        self._verifiers = tuple(verifiers)

    async def verify(self, token: str) -> Principal | None:
        for verifier in self._verifiers:
            principal = await verifier.verify(token)
            if principal is not None:
                return principal
        return None


class AuthenticationMiddleware:
    """The application behind a bearer token: nobody reaches it without one that is accepted."""

    def __init__(self, app: AsgiApp, verifier: TokenVerifier, *, metadata_url: str | None = None) -> None:
        self._app = app
        self._verifier = verifier
        self._metadata_url = metadata_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = _bearer(headers_of(scope)[0].get("authorization", ""))
        if token is None:
            await self._refuse(send, 401, "Send `Authorization: Bearer <token>`.")
            return
        try:
            principal = await self._verifier.verify(token)
        except TokensUnavailable:
            await self._refuse(send, 503, "Tokens cannot be checked at the moment. Try again later.")
            return
        except InsufficientScope as error:
            needed = " ".join(error.scopes)
            await self._refuse(send, 403, f"The token needs the scopes: {needed}.", "insufficient_scope", needed)
            return
        if principal is None:
            await self._refuse(send, 401, "The token is unknown, expired, or not for this server.", "invalid_token")
            return
        # Nothing behind this line knows the token itself.
        scope[PRINCIPAL] = principal
        await self._app(scope, receive, send)

    async def _refuse(
        self, send: Send, status: int, text: str, error: str | None = None, scopes: str | None = None
    ) -> None:
        parameters = {"error": error, "error_description": text if error else None, "scope": scopes}
        parts = [f'{name}="{value}"' for name, value in parameters.items() if value]
        if self._metadata_url is not None:
            parts.append(f'resource_metadata="{self._metadata_url}"')
        challenge = f"Bearer {', '.join(parts)}".strip()
        extra = [(b"retry-after", b"10")] if status == 503 else [(b"www-authenticate", challenge.encode())]
        await send_json(send, status, {"error": error or "unauthorized", "error_description": text}, extra)


def _bearer(header: str) -> str | None:
    scheme, _, token = header.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and 0 < len(token) <= _LONGEST_TOKEN else None


@dataclass(frozen=True, kw_only=True, slots=True)
class OAuthOptions:
    """Whose tokens are taken, and for what they must be issued."""

    issuer: str
    resource: str | None = None
    """What tokens must be issued for: the address of this server as its clients write it."""
    jwks: str | None = None
    """A file or an address with the issuer's keys; without one, the issuer's metadata name the address."""
    scopes: tuple[str, ...] = ()
    """Scopes that every token must carry."""

    def __post_init__(self) -> None:
        for name, address in (("issuer", self.issuer), ("jwks", self.jwks)):
            if address is not None and "://" in address:
                require_safe(f"oauth.{name}", address)
        if "://" not in self.issuer:
            raise ConfigurationError(
                f"`{self.issuer}` is not a URL.", where="oauth.issuer", hint="It looks like https://login.example.com."
            )


def protected_resource_metadata(options: OAuthOptions, resource: str, name: str) -> JsonObject:
    """The document that tells a client where to get a token (RFC 9728)."""
    metadata: JsonObject = {
        "resource": resource,
        "authorization_servers": [options.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
    return {**metadata, "scopes_supported": list(options.scopes)} if options.scopes else metadata


def metadata_path(resource: str) -> str:
    """Where that document stands: the well-known path before the resource's own."""
    return f"/.well-known/oauth-protected-resource{urlsplit(resource).path.rstrip('/')}"


def metadata_url(resource: str) -> str:
    """The whole address of that document."""
    parts = urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}{metadata_path(resource)}"


def require_safe(where: str, address: str) -> None:
    """Keys decide who gets in: they come over TLS, or from this machine."""
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return
    raise ConfigurationError(
        f"`{address}` is not safe: anybody on the way could change what it says.", where=where, hint="Use https."
    )


def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

"""OAuth 2.1 for a resource server: whose tokens are taken, and what a client is told about it.

The tokens themselves are checked in `serve/oauth_tokens.py`, which is imported only where there are any.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from trysquare.core.errors import ConfigurationError
from trysquare.core.types import JsonObject


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
                f"`{self.issuer}` is no address.", where="oauth.issuer", hint="It looks like https://login.example.com."
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

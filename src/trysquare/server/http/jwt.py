"""OAuthTokens: access tokens that an authorization server signed for this server, and the keys to check them with.

Nothing is fetched when the server starts: keys come from a file or an address when the first token arrives.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import jwt

from trysquare.core.context import Principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import RIGHTS
from trysquare.core.threads import run_in_thread
from trysquare.net.http import download
from trysquare.server.http.auth import InsufficientScope, OAuthOptions, TokensUnavailable, require_safe

logger = logging.getLogger("trysquare.oauth")

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key only: with a shared secret, who can check a token could also make one."""
TOOLSET_SCOPES: Final = ("toolset:", "room:")
"""`toolset:bots` limits a token to a toolset; a token without such a scope may use all. `room:` is the old word."""
_LEEWAY = 30.0
_FETCH_TIMEOUT = 5.0
_LARGEST_DOCUMENT = 1024 * 1024
_UNREADABLE = (OSError, ValueError, jwt.PyJWTError, ConfigurationError)
"""What can go wrong with a document that others write."""
_METADATA_PATHS = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class OAuthTokens:
    """Checks access tokens that are JWTs: signature, issuer, audience, time, scopes."""

    def __init__(self, options: OAuthOptions, resource: str, *, keys: KeySet | None = None) -> None:
        self._options = options
        self._resource = resource
        self._keys = keys or KeySet(lambda: _load_keys(options))

    async def verify(self, token: str) -> Principal | None:
        try:
            header = jwt.get_unverified_header(token)
            key = await self._keys.find(header.get("kid")) if header.get("alg") in ALGORITHMS else None
            if key is None:
                return None
            return self._principal(self._claims(token, key, str(header["alg"])))
        except (jwt.PyJWTError, RecursionError) as error:
            # Whoever sends a token wrote its header, which may be nested too deeply to read.
            logger.info("access token refused: %s", type(error).__name__)
            return None

    def _claims(self, token: str, key: jwt.PyJWK, algorithm: str) -> JsonObject:
        return jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=[self._resource, self._resource.rstrip("/")],
            issuer=self._options.issuer,
            leeway=_LEEWAY,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )

    def _principal(self, claims: JsonObject) -> Principal:
        scopes = _scopes(claims)
        missing = [scope for scope in self._options.scopes if scope not in scopes]
        if missing:
            raise InsufficientScope(self._options.scopes)
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject:
            raise jwt.InvalidTokenError("the subject is empty")
        toolsets = frozenset(scope.partition(":")[2] for scope in scopes if scope.startswith(TOOLSET_SCOPES))
        rights = frozenset(scopes) & frozenset(RIGHTS)
        return Principal(subject=f"oauth:{self._options.issuer}#{subject}", scopes=toolsets or None, rights=rights)


class KeySet:
    """The issuer's public keys, fetched when one is needed and at most so often."""

    def __init__(
        self,
        load: Callable[[], Mapping[str, Any]],
        *,
        lifetime: float = 600.0,
        cooldown: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._lifetime = lifetime
        self._cooldown = cooldown
        self._clock = clock
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._loaded_at: float | None = None
        self._tried_at: float | None = None
        self._loading = asyncio.Lock()

    async def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key of that id. An unknown id may mean new keys, so they are fetched again, but not for every token."""
        if key_id not in self._keys or self._is_older(self._loaded_at, self._lifetime):
            async with self._loading:
                if key_id not in self._keys or self._is_older(self._loaded_at, self._lifetime):
                    await self._refresh()
        return self._keys.get(key_id)

    async def _refresh(self) -> None:
        if not self._is_older(self._tried_at, self._cooldown):
            if self._loaded_at is None:
                raise TokensUnavailable("the issuer's keys could not be fetched a moment ago")
            return
        self._tried_at = self._clock()
        try:
            document = await run_in_thread(self._load)
            self._keys = _public_keys(document)
            self._loaded_at = self._clock()
        except _UNREADABLE as error:
            logger.warning("the issuer's keys cannot be read: %s", error)
            if self._loaded_at is None:
                raise TokensUnavailable(str(error)) from None

    def _is_older(self, moment: float | None, seconds: float) -> bool:
        return moment is None or self._clock() - moment >= seconds


def _scopes(claims: JsonObject) -> frozenset[str]:
    given: Any = claims.get("scope", claims.get("scp", ()))
    words = given.split() if isinstance(given, str) else cast(list[Any], given or [])
    return frozenset(str(word) for word in words)


def _public_keys(document: Mapping[str, Any]) -> dict[str | None, jwt.PyJWK]:
    keys = jwt.PyJWKSet.from_dict(dict(document)).keys
    found: dict[str | None, jwt.PyJWK] = {key.key_id: key for key in keys}
    if len(keys) == 1:
        # A token may leave out the id where there is only one key to choose from.
        found.setdefault(None, keys[0])
    return found


def _load_keys(options: OAuthOptions) -> Mapping[str, Any]:
    if options.jwks is None:
        address = _metadata_of(options.issuer).get("jwks_uri")
        if not isinstance(address, str):
            raise ValueError("the issuer's metadata name no jwks_uri")
        require_safe("jwks_uri", address)
        return _fetch(address)
    if "://" in options.jwks:
        return _fetch(options.jwks)
    return _as_object(Path(options.jwks).read_bytes())


def _metadata_of(issuer: str) -> Mapping[str, Any]:
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    # The first form is RFC 8414's, with the issuer's path behind; the last is OpenID's, with it in front.
    addresses = [f"{origin}{known}{path}" for known in _METADATA_PATHS]
    addresses.append(f"{origin}{path}{_METADATA_PATHS[1]}")
    problem: Exception | None = None
    for address in dict.fromkeys(addresses):
        try:
            metadata = _fetch(address)
        except _UNREADABLE as error:
            problem = error
            continue
        if metadata.get("issuer") == issuer:
            return metadata
        problem = ValueError(f"{address} speaks of another issuer")
    raise ValueError(f"no metadata of {issuer}: {problem}")


def _fetch(address: str) -> Mapping[str, Any]:
    found = download(address, timeout=_FETCH_TIMEOUT, limit=_LARGEST_DOCUMENT)
    require_safe("redirect", found.url)
    return _as_object(found.body)


def _as_object(data: bytes) -> Mapping[str, Any]:
    if len(data) > _LARGEST_DOCUMENT:
        raise ValueError("the document is larger than a megabyte")
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("the document is not a JSON object")
    return cast(JsonObject, document)

"""Sealed `requestState`: what a server gives its client to carry from one try of a request to the next (2026-07-28)."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from trysquare.core.json import JsonObject
from trysquare.protocol.messages import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

logger = logging.getLogger("trysquare.server")

_PREFIX: Final = "v1."
_KEY_ID, _NONCE, _TAG = 4, 12, 16
_FUTURE_SECONDS: Final = 60.0
"""How far the clocks of two machines may differ."""


class StateSeal:
    """Seals with the first key and opens with any: AES-256-GCM, with an expiry.

    A state is bound to one request: its method, target, arguments, principal and server. Nobody else can use it, and
    its holder cannot read it.
    """

    def __init__(
        self, keys: Sequence[bytes], *, audience: str, ttl: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._secrets = tuple(keys) or (secrets.token_bytes(32),)
        self._audience = audience
        self._ttl = ttl
        self._clock = clock
        self._ciphers: dict[bytes, AESGCM] = {}

    def seal(self, state: str, bound: JsonObject) -> str:
        """The state as text that only this server can open, for the request that it is bound to."""
        key_id, cipher = next(iter(self._ring().items()))
        now, nonce = self._clock(), secrets.token_bytes(_NONCE)
        claims = {"iat": now, "exp": now + self._ttl, "bound": self._digest(bound), "state": state}
        sealed = cipher.encrypt(nonce, json.dumps(claims).encode(), _PREFIX.encode() + key_id)
        return _PREFIX + _text(key_id + nonce + sealed)

    def open(self, sealed: str, bound: JsonObject) -> str:
        """The state inside. Raises `RpcError`; why it was refused is for the log only."""
        reason, claims = self._read(sealed)
        if claims is not None:
            now = self._clock()
            if not now < claims["exp"] or claims["iat"] > now + _FUTURE_SECONDS:
                reason = "expired"
            elif not self._is_bound(str(claims["bound"]), bound):
                reason = "it belongs to another request"
            else:
                return claims["state"]
        logger.warning("requestState rejected: method=%s reason=%s", bound.get("method"), reason)
        raise RpcError(INVALID_PARAMS, "Invalid or expired requestState.", {"reason": "invalid_request_state"})

    def _read(self, sealed: str) -> tuple[str, JsonObject | None]:
        raw = _bytes(sealed.removeprefix(_PREFIX)) if sealed.startswith(_PREFIX) else None
        if raw is None or len(raw) < _KEY_ID + _NONCE + _TAG:
            return "malformed", None
        key_id, nonce = raw[:_KEY_ID], raw[_KEY_ID : _KEY_ID + _NONCE]
        cipher = self._ring().get(key_id)
        if cipher is None:
            return "unknown key", None
        from cryptography.exceptions import InvalidTag

        try:
            claims = cipher.decrypt(nonce, raw[_KEY_ID + _NONCE :], _PREFIX.encode() + key_id)
        except InvalidTag:
            return "broken seal", None
        return "", json.loads(claims)

    def _is_bound(self, digest: str, bound: JsonObject) -> bool:
        try:
            return secrets.compare_digest(digest, self._digest(bound))
        except RecursionError:
            # Arguments that are nested too deeply to be written are not those that were sealed.
            return False

    def _digest(self, bound: JsonObject) -> str:
        named = json.dumps({**bound, "audience": self._audience}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(named.encode()).hexdigest()

    def _ring(self) -> dict[bytes, AESGCM]:
        # Made at the first question: most servers never ask, and the library takes longer to load than all of this.
        if not self._ciphers:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF

            for secret in self._secrets:
                key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"trysquare/request-state").derive(secret)
                self._ciphers.setdefault(hashlib.sha256(b"key-id:" + key).digest()[:_KEY_ID], AESGCM(key))
        return self._ciphers


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes | None:
    """The bytes of the canonical form; None for any other text."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return raw if _text(raw) == text else None

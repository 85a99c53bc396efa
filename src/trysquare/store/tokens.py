"""Bearer tokens for HTTP; only a hash of each is stored."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

from trysquare.core.context import Principal
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.metadata import RIGHTS
from trysquare.store.audit import append, utc_now
from trysquare.store.database import Database

logger = logging.getLogger("trysquare.store")

_MARK = "tsq"
_COLUMNS = "id, name, scopes, created, expires, last_used, revoked"
_USE_EVERY = 60.0
"""Seconds between writes of the time of last use: a call must not cost a disk write."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenInfo:
    id: str
    name: str
    scopes: frozenset[str] | None
    """Toolsets and rights; None means all toolsets and no rights."""
    created: str
    expires: float | None
    last_used: str | None
    revoked: str | None


class Tokens:
    """The bearer tokens of one state file."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._used_at: dict[str, float] = {}

    def create(
        self, name: str, *, by: str, scopes: Iterable[str] | None = None, lifetime: float | None = None
    ) -> tuple[str, TokenInfo]:
        """Create a token. Its text is returned only here."""
        identity = secrets.token_hex(6)
        # 256 random bits cannot be guessed like a password, so a plain hash is enough.
        token = f"{_MARK}_{identity}_{secrets.token_urlsafe(32)}"
        granted = None if scopes is None else sorted(set(scopes))
        expires = None if lifetime is None else self._clock() + lifetime
        with self._database.write() as connection:
            if _find_active(connection, name) is not None:
                raise ConfigurationError(
                    f"A token named `{name}` already exists.", hint="Revoke it first, or choose another name."
                )
            row = connection.execute(
                "INSERT INTO tokens (id, name, hash, scopes, created, expires)"
                f" VALUES (?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}",
                (identity, name, _hash(token), None if granted is None else json.dumps(granted), utc_now(), expires),
            ).fetchone()
            append(
                connection, kind="token.created", principal=by, body={"name": name, "id": identity, "scopes": granted}
            )
        return token, _info(row)

    def verify(self, token: str) -> Principal | None:
        """Principal of a token; None if it is unknown, expired or revoked."""
        return self.find(_hash(token))

    def find(self, digest: str) -> Principal | None:
        """Principal by the token's SHA-256."""
        with self._database.read() as connection:
            row = connection.execute(f"SELECT hash, {_COLUMNS} FROM tokens WHERE hash = ?", (digest,)).fetchone()
        # The digest reveals nothing about a random token, so the lookup may take variable time; the decision may not.
        if row is None or not hmac.compare_digest(row[0].encode(), digest.encode()):
            return None
        info, now = _info(row[1:]), self._clock()
        if info.revoked is not None or (info.expires is not None and info.expires <= now):
            return None
        self._record_use(info.id, now)
        return Principal(subject=f"token:{info.name}", **split_scopes(info.scopes))

    def all(self) -> list[TokenInfo]:
        """All tokens, revoked ones included, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY created, id").fetchall()
        return [_info(row) for row in rows]

    def revoke(self, name: str, *, by: str) -> TokenInfo:
        """Revoke a token; it is refused at once."""
        with self._database.write() as connection:
            info = _find_active(connection, name)
            if info is None:
                raise ConfigurationError(f"No active token is named `{name}`.", hint="Run `trysquare token list`.")
            connection.execute("UPDATE tokens SET revoked = ? WHERE id = ?", (utc_now(), info.id))
            append(connection, kind="token.revoked", principal=by, body={"name": name, "id": info.id})
        return info

    def _record_use(self, identity: str, now: float) -> None:
        if now - self._used_at.get(identity, float("-inf")) < _USE_EVERY:
            return
        self._used_at[identity] = now
        try:
            with self._database.write() as connection:
                connection.execute("UPDATE tokens SET last_used = ? WHERE id = ?", (utc_now(), identity))
        except ToolError as error:
            # A full disk must not lock the callers out.
            logger.warning("last use of token not recorded: token=%s error=%s", identity, error)


class Granted(TypedDict):
    scopes: frozenset[str] | None
    rights: frozenset[str]


def split_scopes(scopes: Iterable[str] | None) -> Granted:
    """Separate toolsets from rights. Rights alone restrict nothing: all toolsets stay open."""
    given = frozenset(scopes or ())
    toolsets = given - frozenset(RIGHTS)
    return Granted(scopes=None if scopes is None or (given and not toolsets) else toolsets, rights=given - toolsets)


def _find_active(connection: sqlite3.Connection, name: str) -> TokenInfo | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM tokens WHERE name = ? AND revoked IS NULL", (name,)).fetchone()
    return None if row is None else _info(row)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _info(row: Any) -> TokenInfo:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    scopes = values.pop("scopes")
    return TokenInfo(**values, scopes=None if scopes is None else frozenset(json.loads(scopes)))

"""Tokens: who may call over HTTP. Only a hash of each is kept, so that the file gives none away."""

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
"""The time of last use is written at most this often, in seconds: a call must not cost a disk write."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenInfo:
    """What is known of a token; not the token itself."""

    id: str
    name: str
    scopes: frozenset[str] | None
    """The toolsets that it opens and the rights that it gives; None means all toolsets and no right."""
    created: str
    expires: float | None
    last_used: str | None
    revoked: str | None


class Tokens:
    """The bearer tokens of one state file."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._seen: dict[str, float] = {}

    def create(
        self, name: str, *, by: str, scopes: Iterable[str] | None = None, lifetime: float | None = None
    ) -> tuple[str, TokenInfo]:
        """Make a token. Its text is returned here and never again."""
        identity = secrets.token_hex(6)
        # 256 random bits: a plain hash is enough, since nobody can try them all as they could a password.
        token = f"{_MARK}_{identity}_{secrets.token_urlsafe(32)}"
        kept = None if scopes is None else sorted(set(scopes))
        expires = None if lifetime is None else self._clock() + lifetime
        with self._database.write() as connection:
            if _living(connection, name) is not None:
                raise ConfigurationError(
                    f"There is a token named `{name}` already.", hint="Revoke it first, or choose another name."
                )
            row = connection.execute(
                "INSERT INTO tokens (id, name, hash, scopes, created, expires)"
                f" VALUES (?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}",
                (identity, name, _hash(token), None if kept is None else json.dumps(kept), utc_now(), expires),
            ).fetchone()
            append(connection, kind="token.created", principal=by, body={"name": name, "id": identity, "scopes": kept})
        return token, _info(row)

    def verify(self, token: str) -> Principal | None:
        """Whom a token stands for, or None for one that is unknown, expired or revoked."""
        return self.find(_hash(token))

    def find(self, digest: str) -> Principal | None:
        """The same by the token's SHA-256, for a server that does not pass the token itself on."""
        with self._database.read() as connection:
            row = connection.execute(f"SELECT hash, {_COLUMNS} FROM tokens WHERE hash = ?", (digest,)).fetchone()
        # The digest of a random token says nothing about it, so the lookup may take its time; the last word is even.
        if row is None or not hmac.compare_digest(row[0].encode(), digest.encode()):
            return None
        info, now = _info(row[1:]), self._clock()
        if info.revoked is not None or (info.expires is not None and info.expires <= now):
            return None
        self._note_use(info.id, now)
        return Principal(subject=f"token:{info.name}", **split_scopes(info.scopes))

    def all(self) -> list[TokenInfo]:
        """Every token, revoked ones too, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY created, id").fetchall()
        return [_info(row) for row in rows]

    def revoke(self, name: str, *, by: str) -> TokenInfo:
        """End a token at once."""
        with self._database.write() as connection:
            info = _living(connection, name)
            if info is None:
                raise ConfigurationError(f"There is no living token named `{name}`.", hint="List the tokens first.")
            connection.execute("UPDATE tokens SET revoked = ? WHERE id = ?", (utc_now(), info.id))
            append(connection, kind="token.revoked", principal=by, body={"name": name, "id": info.id})
        return info

    def _note_use(self, identity: str, now: float) -> None:
        if now - self._seen.get(identity, float("-inf")) < _USE_EVERY:
            return
        self._seen[identity] = now
        try:
            with self._database.write() as connection:
                connection.execute("UPDATE tokens SET last_used = ? WHERE id = ?", (utc_now(), identity))
        except ToolError as error:
            # A full disk must not lock the callers out.
            logger.warning("The last use of token %s was not written: %s", identity, error)


class Granted(TypedDict):
    """What scopes give to a principal."""

    scopes: frozenset[str] | None
    rights: frozenset[str]


def split_scopes(scopes: Iterable[str] | None) -> Granted:
    """Toolsets and rights apart. Rights alone narrow nothing: all toolsets stay open."""
    given = frozenset(scopes or ())
    toolsets = given - frozenset(RIGHTS)
    return Granted(scopes=None if scopes is None or (given and not toolsets) else toolsets, rights=given - toolsets)


def _living(connection: sqlite3.Connection, name: str) -> TokenInfo | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM tokens WHERE name = ? AND revoked IS NULL", (name,)).fetchone()
    return None if row is None else _info(row)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _info(row: Any) -> TokenInfo:
    id, name, scopes, created, expires, last_used, revoked = row
    return TokenInfo(
        id=id, name=name, scopes=None if scopes is None else frozenset(json.loads(scopes)), created=created,
        expires=expires, last_used=last_used, revoked=revoked,
    )  # fmt: skip

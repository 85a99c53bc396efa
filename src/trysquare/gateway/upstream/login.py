"""Stored logins of remote servers: tokens, their refresh, and the lock among processes."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import logging
import math
import os
import time
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec

from trysquare.core.json import as_object
from trysquare.gateway.config.secrets import Secrets
from trysquare.gateway.models import ServerConfig
from trysquare.net.http import open_client
from trysquare.protocol.messages import UNREADABLE
from trysquare.store import user_state
from trysquare.store.location import prepare_folder

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

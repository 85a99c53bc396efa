"""Logins at remote servers by OAuth 2.1: kept as secrets, sent to their own server only, renewed before they end."""

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
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, cast
from urllib.parse import quote

import httpx2

from trysquare.gateway.configuration.secrets import Secrets
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.upstream.certificates import trusted_authorities
from trysquare.store.location import prepare_folder, user_state

logger = logging.getLogger("trysquare.gateway")

_EARLY_SECONDS = 30.0
"""A token is renewed so long before it ends, because the request takes its time too."""
_RENEW_SECONDS = 30.0
_LOCK_SECONDS = 45.0
"""How long a renewal of another process is waited for: longer than it can take."""
_LOOK_SECONDS = 0.02


class LoginLost(Exception):
    """A login has ended and cannot be renewed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Login:
    """What a login gave us, and what is needed to renew it."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    scope: str | None = None
    token_endpoint: str = ""
    resource: str | None = None
    client_id: str = ""
    client_secret: str | None = field(default=None, repr=False)
    client_auth: str = "none"
    """How the client shows at the token endpoint who it is, by OAuth's names."""

    def is_fresh(self, now: float) -> bool:
        """Whether the token can be sent."""
        return self.expires_at is None or now + _EARLY_SECONDS < self.expires_at


def login_name(config: ServerConfig) -> str:
    """The name of the secret. It holds the address, so that an entry that is turned elsewhere takes no token along."""
    return f"login:{config.name}:{config.url}"


def load_login(config: ServerConfig, secrets: Secrets) -> Login | None:
    """The login at a server, or None where there is none that can be read."""
    text = secrets.read(login_name(config))
    try:
        found: Any = None if text is None else json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return None
    known = {each.name for each in fields(Login)}
    given = {str(name): value for name, value in cast(dict[Any, Any], found).items() if name in known}
    return Login(**given) if isinstance(given.get("access_token"), str) else None


def save_login(config: ServerConfig, secrets: Secrets, login: Login) -> None:
    """Keep a login."""
    secrets.write(login_name(config), json.dumps(asdict(login)))


async def stored_login(config: ServerConfig, secrets: Secrets) -> httpx2.Auth | None:
    """What signs requests to a server, or None where nobody has signed in."""
    login = await asyncio.to_thread(load_login, config, secrets)
    return None if login is None else LoginAuth(config, secrets, login)


@asynccontextmanager
async def login_lock(config: ServerConfig, *, seconds: float = _LOCK_SECONDS) -> AsyncGenerator[None]:
    """One process of this user at a time changes a login. A holder that is killed holds it no longer.

    Raises `LoginLost` where another does not let go of it in time.
    """
    digest = hashlib.sha256(login_name(config).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    path = user_state().with_name(f"login-{digest}.lock")
    prepare_folder(path.parent)
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(math.ceil(seconds / _LOOK_SECONDS)):
            if _is_taken(lock):
                break
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            raise LoginLost("Another process renews the login at the server and does not come to an end.")
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
    """Signs requests with a login. Requests do not wait for one another, only for a renewal."""

    def __init__(
        self, config: ServerConfig, secrets: Secrets, login: Login, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._config, self._secrets, self._clock = config, secrets, clock
        self._login = login
        self._renewing = asyncio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send with the token; with a new one if the server no longer takes it."""
        used = self._login if self._login.is_fresh(self._clock()) else await self._renewed(self._login)
        request.headers["Authorization"] = f"Bearer {used.access_token}"
        response = yield request
        if response.status_code == 401:
            # The server has refused the request, so that it may be sent again.
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
        """A login that another process has renewed or made meanwhile, else a new one. Holds the lock."""
        found = await self._kept()
        if found.access_token != old.access_token and found.is_fresh(self._clock()):
            return found
        # A refresh token often counts only once: the one that is kept is the one that still does.
        if found.refresh_token is None or not found.token_endpoint:
            raise LoginLost("The login at the server has ended.")
        answer = await self._ask(found, found.refresh_token)
        if answer is None:
            raise LoginLost("The login at the server has ended and could not be renewed.")
        await self._kept()
        login = renewed_login(found, answer, self._clock())
        await asyncio.to_thread(save_login, self._config, self._secrets, login)
        return login

    async def _kept(self) -> Login:
        """The login as it is kept now; one that was forgotten must not come back by a renewal."""
        found = await asyncio.to_thread(load_login, self._config, self._secrets)
        if found is None:
            raise LoginLost("The login at the server was removed.")
        return found

    async def _ask(self, old: Login, refresh_token: str) -> dict[str, Any] | None:
        verify = await asyncio.to_thread(trusted_authorities)
        form, headers = _form(old, refresh_token)
        try:
            async with httpx2.AsyncClient(verify=verify, timeout=_RENEW_SECONDS) as client:
                response = await client.post(old.token_endpoint, data=form, headers=headers)
            answer: Any = response.json() if response.status_code == 200 else None
        except (httpx2.HTTPError, ValueError) as error:
            logger.warning("the login at %s could not be renewed: %s", self._config.name, type(error).__name__)
            return None
        found = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}
        return found if found.get("access_token") else None


def renewed_login(old: Login, answer: dict[str, Any], now: float) -> Login:
    """A login with what a token endpoint answered. What it leaves out stays as it was."""
    seconds = answer.get("expires_in")
    return replace(
        old,
        access_token=str(answer["access_token"]),
        refresh_token=str(answer.get("refresh_token") or old.refresh_token or "") or None,
        expires_at=now + float(seconds) if isinstance(seconds, (int, float)) else None,
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

"""Who looks at the console: one-time links from the terminal, tokens elsewhere, and the cookie of a session."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from trysquare.core.context import Principal, local_principal
from trysquare.core.metadata import CONSOLE_RIGHT
from trysquare.server.http.auth import InsufficientScope, TokensUnavailable, TokenVerifier

IDLE_SECONDS = 12 * 3600.0
_MOST = 100
"""Sessions at the same time; the one that was idle longest goes first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """One signed-in browser."""

    principal: Principal
    csrf: str
    """What every change carries, beside the cookie: no other page can read it."""
    id: str
    """Names the session in this process; it is not the cookie."""


class Sessions:
    """The sessions of one console. They end with its process.

    Without a `verifier`, only the link that a terminal shows leads in. With one, the holders of a token that has the
    right `console` sign in too: agents hold tokens, and must not approve their own calls.
    """

    def __init__(
        self,
        *,
        has_link: bool,
        verifier: TokenVerifier | None = None,
        on_used: Callable[[str], None] = lambda path: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.verifier = verifier
        self.on_used = on_used
        """Called with the next link once one was used: it goes to the terminal."""
        self._clock = clock
        self._by_cookie: dict[bytes, tuple[float, Session]] = {}
        self._link = secrets.token_urlsafe(32) if has_link else None

    @property
    def link(self) -> str | None:
        """The path of the one-time link that is valid now."""
        return None if self._link is None else f"/sign-in?key={self._link}"

    def redeem(self, key: str) -> str | None:
        """The cookie for a link that was never used; None for any other."""
        if self._link is None or not hmac.compare_digest(self._link.encode(), key.encode("utf-8", "replace")):
            return None
        self._link = secrets.token_urlsafe(32)
        if self.link is not None:
            self.on_used(self.link)
        return self._begin(local_principal())

    async def redeem_token(self, token: str) -> str | None:
        """The cookie for a bearer token whose holder may use the console; None for any other."""
        if self.verifier is None:
            return None
        try:
            principal = await self.verifier.verify(token)
        except (TokensUnavailable, InsufficientScope):
            return None
        return None if principal is None or not principal.has_right(CONSOLE_RIGHT) else self._begin(principal)

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, unless it was idle for too long."""
        key, now = _digest(cookie), self._clock()
        seen, session = self._by_cookie.get(key, (0.0, None))
        if session is None or now - seen > IDLE_SECONDS:
            self._by_cookie.pop(key, None)
            return None
        self._by_cookie[key] = (now, session)
        return session

    def end(self, cookie: str) -> None:
        """Sign out."""
        self._by_cookie.pop(_digest(cookie), None)

    def _begin(self, principal: Principal) -> str:
        cookie = secrets.token_urlsafe(32)
        session = Session(principal=principal, csrf=secrets.token_urlsafe(24), id=secrets.token_hex(8))
        self._by_cookie[_digest(cookie)] = (self._clock(), session)
        while len(self._by_cookie) > _MOST:
            del self._by_cookie[min(self._by_cookie, key=lambda each: self._by_cookie[each][0])]
        return cookie


def _digest(cookie: str) -> bytes:
    # Looked up by its digest, so that how long that takes tells nothing of the cookie.
    return hashlib.sha256(cookie.encode("utf-8", "replace")).digest()

"""Sessions and requests as handlers see them, whatever the transport."""

from __future__ import annotations

from typing import Any, Final, Protocol

from msgspec import Raw

from trysquare.catalog import ProfileChoice
from trysquare.core.context import Principal
from trysquare.core.json import JsonObject, as_object
from trysquare.protocol.messages import RequestId
from trysquare.protocol.methods import SEVERITY
from trysquare.protocol.versions import CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, STATELESS_VERSIONS

_NO_META: Final[JsonObject] = {}


class BackChannel(Protocol):
    """The way to the client while its request is open: a pipe, or the response of an HTTP request."""

    async def notify(self, message: bytes, *, is_progress: bool = False) -> None:
        """Send a notification that belongs to the request."""
        ...

    async def ask(self, method: str, params: JsonObject) -> Raw:
        """Send a request to the client and wait for its result. Raises `RpcError` or `ConnectionLost`."""
        ...


class Session:
    """What the handshake of a client established, for as long as its connection or session lives."""

    def __init__(self) -> None:
        self.version: str | None = None
        """The negotiated version; None before `initialize`."""
        self.client_info: JsonObject = {}
        self.capabilities: JsonObject = {}
        self.log_level = "debug"
        self.subscribed: set[str] = set()
        """URIs of the resources whose updates the client subscribed to."""
        self.can_ask = True
        """Whether requests can be sent to the client."""
        self.is_ready = False
        """Whether the client has sent `notifications/initialized`."""


class Request:
    """One request. `session` is None in 2026-07-28, where the request describes itself in `_meta`."""

    __slots__ = ("channel", "id", "is_authenticated", "meta", "method", "params", "principal", "profiles", "session")

    def __init__(
        self,
        request_id: RequestId,
        method: str,
        params: Any,
        *,
        session: Session | None,
        channel: BackChannel,
        principal: Principal,
        profiles: ProfileChoice,
        is_authenticated: bool = False,
    ) -> None:
        self.id = request_id
        self.method = method
        self.params = params
        self.meta: JsonObject = params.meta or _NO_META
        self.session = session
        self.channel = channel
        self.principal = principal
        self.profiles = profiles
        self.is_authenticated = is_authenticated
        """Whether the principal is that of a token."""

    @property
    def is_stateless(self) -> bool:
        """Whether the request is of 2026-07-28: a client that is asked something calls again with its answers."""
        return self.session is None

    @property
    def version(self) -> str:
        """The protocol version of the request."""
        if self.session is None:
            return STATELESS_VERSIONS[-1]
        return self.session.version or ""

    @property
    def capabilities(self) -> JsonObject:
        """What the client says it can do."""
        return as_object(self.meta.get(CAPABILITIES_KEY)) if self.session is None else self.session.capabilities

    @property
    def client_name(self) -> str | None:
        """The name of the client program, where it says so."""
        info = as_object(self.meta.get(CLIENT_INFO_KEY)) if self.session is None else self.session.client_info
        name = info.get("name")
        return name if isinstance(name, str) else None

    @property
    def log_level(self) -> str | None:
        """The least severe log messages that the client wants; None for none."""
        level = self.meta.get(LOG_LEVEL_KEY) if self.session is None else self.session.log_level
        return level if isinstance(level, str) and level in SEVERITY else None

"""Sessions of the handshake era over HTTP, as far as calls that are answered directly need to know of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from mcp.server.connection import Connection
from mcp.shared.exceptions import MCPError
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse, RequestId

if TYPE_CHECKING:
    from mcp.server.auth.middleware.bearer_auth import AuthorizationContext
    from starlette.types import Scope


class OpenCall(Protocol):
    """A call that can be taken back."""

    def give_up(self) -> None: ...


class HttpSession:
    """One session: who opened it, which of its calls are open, and which questions its client has not answered."""

    def __init__(self, connection: Connection, session_id: str, owner: AuthorizationContext | None) -> None:
        self.id = session_id
        self.connection = connection
        self.owner = owner
        self._calls: dict[str, OpenCall] = {}
        self._asked: dict[RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)

    def begin(self, request_id: RequestId, call: OpenCall) -> None:
        """Know of a call, until `end_call`."""
        self._calls[str(request_id)] = call

    def end_call(self, request_id: RequestId) -> None:
        """Know of a call no more."""
        self._calls.pop(str(request_id), None)

    @contextmanager
    def asking(self) -> Generator[tuple[RequestId, asyncio.Future[dict[str, Any]]]]:
        """The id of a request to the client, and what will be its answer."""
        # The SDK counts in numbers; a text cannot be taken for one of its requests.
        request_id: RequestId = f"trysquare-{next(self._numbers)}"
        answer = self._asked[request_id] = asyncio.get_running_loop().create_future()
        try:
            yield request_id, answer
        finally:
            self._asked.pop(request_id, None)

    def hear(self, message: JSONRPCMessage) -> bool:
        """Take what belongs to a call of ours; True if nobody else needs to hear it."""
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            call = self._calls.get(str((message.params or {}).get("requestId")))
            if call is not None:
                call.give_up()
        if not isinstance(message, (JSONRPCResponse, JSONRPCError)) or message.id is None:
            return False
        answer = self._asked.pop(message.id, None)
        if answer is None or answer.done():
            return False
        if isinstance(message, JSONRPCResponse):
            answer.set_result(message.result)
        else:
            answer.set_exception(MCPError.from_error_data(message.error))
        return True

    def end(self) -> None:
        """Take all calls back."""
        for call in list(self._calls.values()):
            call.give_up()


def owner_of(scope: Scope) -> AuthorizationContext | None:
    """Whom the token of a request stands for: a session answers only to the one who opened it."""
    user = scope.get("user")
    if user is None:
        return None
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context

    return authorization_context(user) if isinstance(user, AuthenticatedUser) else None

"""Transport protocol: messages to and from one upstream server."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple, Protocol, TypeAlias

from trysquare.core.errors import ErrorCode, require_extra
from trysquare.gateway.models import ServerConfig
from trysquare.processes.supervisor import ProcessSupervisor

RequestId: TypeAlias = int
"""Ids of our own requests, assigned by the connection."""


class OutgoingMessage(NamedTuple):
    """One message to a server, with what a transport repeats in headers."""

    body: bytes
    """One JSON-RPC message without a newline in it."""
    request_id: RequestId | None = None
    """None for a notification and for a response to the server."""
    method: str | None = None
    """None for a response to the server."""
    name: str | None = None
    """The tool, prompt or resource of the request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DisconnectReason:
    """Why a request gets no response, or a transport has ended."""

    reason: str
    """A sentence for the model, without the server's name."""
    was_sent: bool = True
    """False only where the server cannot have seen the request."""
    status: int | None = None
    """The HTTP status, if that was the reason."""
    instruction: str | None = None
    """What to do about it, such as a command that signs in."""
    retry_after: float | None = None
    """Seconds after which the server asked to be called again."""


class TransportListener(Protocol):
    """Receiver of a transport's messages."""

    def receive(self, message: bytes | bytearray, about: RequestId | None = None) -> None:
        """Take one message of the server; `about` is the request on whose stream it came, if known."""

    def on_disconnect(self, disconnect: DisconnectReason, request_id: RequestId | None = None) -> None:
        """Fail one request, or every request if the whole transport has ended (no id)."""

    def is_pending(self, request_id: RequestId) -> bool:
        """Whether the response to a request is still awaited."""
        ...


class Transport(Protocol):
    """Connection to one server: opened once, closed once, never reopened."""

    owns_process: bool = False
    """Whether the server is our child process, so that one that hangs must be restarted."""

    def prestart(self) -> None:
        """Start the process ahead of `open`; a remote server has none. Raises `TransportError`."""

    @property
    def is_prestarted(self) -> bool:
        """Whether the process was started and still runs."""
        return False

    async def open(self, listener: TransportListener) -> None:
        """Start the process if `prestart` has not, or prepare to connect. Raises `TransportError`."""

    def send(self, outgoing: OutgoingMessage) -> None:
        """Send, or start to; later failures go to the listener.

        Raises `TransportError` where it is certain at once that nothing was sent.
        """

    def set_version(self, version: str) -> None:
        """Set the negotiated protocol version."""

    def cancel(self, request_id: RequestId) -> None:
        """Stop waiting for the response to a request."""

    def stderr_tail(self) -> str:
        """The last output of the server on stderr; empty where there is none."""
        return ""

    async def close(self) -> None:
        """End the connection and the process. The listener is not called afterwards."""


def open_transport(config: ServerConfig, supervisor: ProcessSupervisor) -> Transport:
    """Create a server's transport by its module `upstream/<transport>.py`, imported on first use."""
    if config.url:
        feature = f"Server `{config.name}`, which is reached by HTTP,"
        require_extra("gateway", "httpx2", feature=feature, code=ErrorCode.UPSTREAM_UNAVAILABLE)
    return import_module(f"trysquare.gateway.upstream.{config.transport}").create_transport(config, supervisor)


class TransportError(Exception):
    """Nothing was sent, because the server cannot be started or reached."""

    def __init__(self, disconnect: DisconnectReason) -> None:
        super().__init__(disconnect.reason)
        self.disconnect = disconnect


def message_too_long(limit: int) -> DisconnectReason:
    return DisconnectReason(reason=f"The server sent a message of more than {limit} bytes.")

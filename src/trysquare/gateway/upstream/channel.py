"""Channel: the way to one server, whatever it goes over; whole messages out, whole messages in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

RequestId: TypeAlias = int
"""The ids of our own requests, counted by the connection."""


class Outgoing(NamedTuple):
    """One message to a server: its bytes, and what a transport has to say of it in headers."""

    body: bytes
    """One JSON-RPC message without a newline in it."""
    request_id: RequestId | None = None
    """None for a notification, and for an answer to a request of the server."""
    method: str | None = None
    """None for an answer to a request of the server."""
    name: str | None = None
    """The tool, prompt or resource that the request is about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """Why a request gets no answer, or a channel carries nothing any more."""

    reason: str
    """A sentence for the model, without the server's name."""
    was_sent: bool = True
    """False only where it is certain that the server has seen nothing of the request."""
    status: int | None = None
    """The HTTP status, where one was the reason."""
    instruction: str | None = None
    """What to do about it, such as a command that signs in."""
    retry_after: float | None = None
    """Seconds after which the server wants to be asked again, where it said so."""


class Listener(Protocol):
    """Who hears what comes over a channel."""

    def hear(self, message: bytes | bytearray, about: RequestId | None = None) -> None:
        """Take one message of the server.

        `about` is the request on whose stream it came, where the transport knows.
        """
        ...

    def lose(self, loss: Loss, request_id: RequestId | None = None) -> None:
        """Learn that one request gets no answer, or with no id that the whole channel has ended."""
        ...

    def awaits(self, request_id: RequestId) -> bool:
        """Whether the answer to a request is still to come."""
        ...


class Channel(Protocol):
    """The way to one server. Opened once, closed once, and never reopened."""

    async def open(self, listener: Listener) -> None:
        """Begin: start the process, or make ready to connect. Raises `Unreachable` where it cannot."""
        ...

    def send(self, outgoing: Outgoing) -> None:
        """Send, or begin to. What fails later is told to the listener.

        Raises `Unreachable` where it is certain at once that nothing goes out.
        """
        ...

    def settle(self, version: str) -> None:
        """Learn the version of the protocol that both sides speak from here on."""
        ...

    def abandon(self, request_id: RequestId) -> None:
        """Learn that nobody waits for the answer to a request any more."""
        ...

    def last_words(self) -> str:
        """What the server said last beside the protocol (on its stderr); empty where there is nothing."""
        ...

    async def close(self) -> None:
        """End it, and whatever was started for it. Nothing is told to the listener afterwards."""
        ...


class Unreachable(Exception):
    """Nothing was sent, because the server cannot be started or reached."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss.reason)
        self.loss = loss

"""The lanes of the torture: over which transport, and in which eras, a fault meets the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Transport: TypeAlias = Literal["stdio", "http", "sse"]
Era: TypeAlias = Literal["legacy", "modern"]
Front: TypeAlias = Literal["stdio", "http", "sse"]
NAMES: Final[dict[Era, str]] = {"legacy": "2025-11-25", "modern": "2026-07-28"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """How a server is reached, in which era it speaks, and how and in which era its client does."""

    transport: Transport
    era: Era
    client: Era
    front: Front

    def __str__(self) -> str:
        return f"{self.transport} {NAMES[self.era]}, client {self.front} {NAMES[self.client]}"

    @property
    def upstream(self) -> str:
        """The server's side alone."""
        return f"{self.transport} {NAMES[self.era]}"


# The HTTP with a stream of events ended with the versions before 2025-03-26. No server speaks 2026-07-28 over it.
UPSTREAMS: Final[tuple[tuple[Transport, Era], ...]] = (
    ("stdio", "legacy"),
    ("stdio", "modern"),
    ("http", "legacy"),
    ("http", "modern"),
    ("sse", "legacy"),
)
ERAS: Final[tuple[Era, ...]] = ("legacy", "modern")
FRONTS: Final[tuple[Front, ...]] = ("stdio", "http")
LANES: Final = tuple(
    Lane(transport=transport, era=era, client=client, front=front)
    for client in ERAS
    for front in FRONTS
    for transport, era in UPSTREAMS
)

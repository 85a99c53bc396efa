"""Plays conversations against one server and records what comes back."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tests.differential.exchanges import COMMON, CROSSED_ERAS, LIFECYCLE
from tests.differential.http_exchanges import ONLY_HTTP
from tests.differential.material import Json
from tests.differential.model import Era, Exchange, Outcome, Transport

CONVERSATIONS = (*COMMON, *LIFECYCLE, *CROSSED_ERAS, *ONLY_HTTP)


class Connection(Protocol):
    """A client's end of one connection."""

    async def play(self, exchange: Exchange) -> Outcome: ...


class Connect(Protocol):
    """Opens a fresh connection to a server."""

    def __call__(self, era: Era, capabilities: Json, *, greets: bool) -> AbstractAsyncContextManager[Connection]: ...


def table(era: Era, transport: Transport) -> dict[str, Exchange]:
    """The exchanges of an era on a transport, by the names of their conversation and their own."""
    found: dict[str, Exchange] = {}
    for conversation in CONVERSATIONS:
        for exchange in conversation.played(era, transport):
            name = f"{conversation.name} / {exchange.name}"
            if name in found:
                raise ValueError(f"two exchanges are called {name}")
            found[name] = exchange
    return found


async def transcript(connect: Connect, era: Era, transport: Transport) -> dict[str, Outcome]:
    """What one server answers to the whole table, by the names of `table`."""
    outcomes: dict[str, Outcome] = {}
    for conversation in CONVERSATIONS:
        exchanges = conversation.played(era, transport)
        if not exchanges:
            continue
        async with connect(era, conversation.capabilities, greets=conversation.greets) as connection:
            for exchange in exchanges:
                outcomes[f"{conversation.name} / {exchange.name}"] = await connection.play(exchange)
    return outcomes

"""Trust: a server is pinned as it is when it is first used; one that is started otherwise later waits for a person.

The first use is a person's own doing: they wrote the file and serve it. What changes afterwards may be anybody's. Where
`first_use` is "hold", a server that was never used waits for a human too.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from trysquare.core.context import local_principal
from trysquare.core.errors import ConsentNeeded
from trysquare.gateway.config import GatewayConfig
from trysquare.gateway.server import ServerConfig
from trysquare.store.command_pins import CommandPins

logger = logging.getLogger("trysquare.gateway")


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldServer:
    """A server that is not used until a person has agreed to how it is started or reached now."""

    server: ServerConfig
    before: str | None
    """How it was used before; None for one that never was."""

    def told(self) -> str:
        """What changed, for a person or a model."""
        if self.before is None:
            return f"The server `{self.server.name}` was never used before:\n  {self.server.shown}"
        if self.before == self.server.shown:
            return f"Values that are not shown have changed for the server `{self.server.name}`:\n  {self.server.shown}"
        return (
            f"The server `{self.server.name}` is started or reached in another way than before.\n"
            f"  before: {self.before}\n  now:    {self.server.shown}"
        )


class Trust:
    """Knows how each server was started or reached when a person last agreed. Its calls wait for the state file."""

    def __init__(self, pins: CommandPins) -> None:
        self._pins = pins

    def check(self, server: ServerConfig) -> None:
        """Let a server be used, and pin it at its first use. Raises ConsentNeeded for one that changed since."""
        if server.first_use != "hold" and self._pins.find(server.place.file, server.name) is None:
            self._pin_first(server)
        held = self.held(server)
        if held is not None:
            raise ConsentNeeded(
                f"{held.told()}\nIt is held until a person has agreed.",
                instruction="Ask the person to look at the change and, if it is meant, to run"
                f" `trysquare gateway approve {server.name}`.",
                fields={"server": server.name, "outcome": "not_sent"},
            )

    def held(self, server: ServerConfig) -> HeldServer | None:
        """What a person has to agree to before this server is used, or None."""
        pin = self._pins.find(server.place.file, server.name)
        if pin is None:
            return HeldServer(server=server, before=None) if server.first_use == "hold" else None
        return None if pin.digest == server.launch_digest else HeldServer(server=server, before=pin.shown)

    def all_held(self, config: GatewayConfig) -> list[HeldServer]:
        """Every server of a configuration that is held."""
        servers = [entry for entry in config.servers.values() if isinstance(entry, ServerConfig)]
        return [held for server in servers if (held := self.held(server)) is not None]

    def approve(self, server: ServerConfig) -> None:
        """Pin a server as it is now, because a person has agreed."""
        self._pins.approve(
            server.place.file,
            server.name,
            digest=server.launch_digest,
            shown=server.shown,
            by=local_principal().subject,
        )

    def _pin_first(self, server: ServerConfig) -> None:
        # Not a fault, but what a person must be able to see without having asked for it.
        logger.warning("first use of the server %s (%s): %s", server.name, server.place, server.shown)
        self._pins.pin_first(
            server.place.file,
            server.name,
            digest=server.launch_digest,
            shown=server.shown,
            by=local_principal().subject,
        )

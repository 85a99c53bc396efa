"""What the actions of `trysquare gateway` read: the files that name the servers, and what is kept about them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trysquare.cli.logs import start_logging
from trysquare.cli.options import load
from trysquare.core.errors import ConfigurationError
from trysquare.gateway.config import GatewayConfig, read_config
from trysquare.gateway.definitions.catalogue import Catalogue
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.trust import Trust
from trysquare.store.command_pins import CommandPins
from trysquare.store.lazy import LazyDatabase
from trysquare.store.location import user_state

USUAL_FILE = "mcp.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Books:
    """The configuration, and what is known and agreed about its servers."""

    config: GatewayConfig
    catalogue: Catalogue
    trust: Trust
    state: LazyDatabase

    def usable(self, names: Sequence[str] = ()) -> list[ServerConfig]:
        """The servers of these names, or all, that are no broken entries."""
        entries = [self.config.find(name) for name in names] or list(self.config.servers.values())
        return [entry for entry in entries if isinstance(entry, ServerConfig)]


def config_files(arguments: argparse.Namespace) -> tuple[Path, ...]:
    """The files that name the servers: those of the settings, or `mcp.json` in the project."""
    loaded = load(arguments)
    start_logging(loaded)
    return loaded.settings.gateway or (loaded.settings.project / USUAL_FILE,)


@contextmanager
def open_books(arguments: argparse.Namespace) -> Generator[Books]:
    """Read the files, and open what is kept. Nothing is started."""
    config = read_config(*config_files(arguments))
    state = LazyDatabase(user_state())
    try:
        catalogue = Catalogue(state)
        catalogue.use(config.servers)
        yield Books(config=config, catalogue=catalogue, trust=Trust(CommandPins(state)), state=state)
    finally:
        state.close()


def require_person(action: str) -> None:
    """Refuse where nobody sits at a terminal: what only a person may decide is not for a script."""
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "only a person can approve, and stdin is no terminal.", where=action, hint="Run it in a terminal."
        )

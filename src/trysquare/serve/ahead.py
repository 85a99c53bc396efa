"""Ahead: what the first lines of a client tell, and what was done about it before anything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trysquare.gateway.door import OpenServers


@dataclass(frozen=True, kw_only=True, slots=True)
class Ahead:
    """What is known and done before anything is open."""

    called: Callable[[], Sequence[str]]
    """The names of the tools that the client has called so far."""
    servers: OpenServers | None = None
    """Servers of the gateway that were opened for these calls."""

"""What may be fetched from the network, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchLimits:
    """How much a fetch may take."""

    bytes: int = 5_000_000
    seconds: float = 30.0
    redirects: int = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchConfig:
    """What may be fetched, and how much of it."""

    allow_hosts: frozenset[str] = frozenset()
    """Hosts, as `name` or `name:port`, that may have a private address: an intranet's, or a test's."""
    limits: FetchLimits = field(default_factory=FetchLimits)

    def allows(self, host: str, port: int) -> bool:
        """Whether a host was allowed by name."""
        name = host.lower().strip("[]")
        return name in self.allow_hosts or f"{name}:{port}" in self.allow_hosts

"""ServeOptions: how a toolset is served, whatever the transport."""

from __future__ import annotations

from dataclasses import dataclass, field

import trysquare
from trysquare.catalog.profiles import ProfileChoice
from trysquare.core.consent import Approvals
from trysquare.core.context import DirectCall, Principal, local_principal
from trysquare.core.handles import Handles, MemoryHandles

SHORTEST_KEY = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeOptions:
    """How a toolset is served."""

    name: str = "trysquare"
    version: str = trysquare.__version__
    title: str | None = None
    instructions: str | None = None
    profiles: ProfileChoice = field(default_factory=ProfileChoice)
    page_size: int = 1000
    """Entries of a list before it is told in pages."""
    list_ttl_ms: int = 60_000
    """How long a client of the 2026-07-28 era may keep a list; changes are told to those who listen."""
    call_timeout: float | None = None
    """Seconds that any call may take, where its tool sets no shorter time."""
    state_keys: tuple[bytes, ...] = ()
    """Secrets that seal questions, at least 32 bytes each, the same for all workers; the first one seals.

    Without any, a key is made for this process, and an answer must come back to the same process.
    """
    state_ttl: float = 600.0
    """Seconds that a person has to answer a question."""
    handles: Handles = field(default_factory=MemoryHandles)
    direct: DirectCall | None = None
    """How prompts and tools call other tools by name; without it, through the served tools with all their wrappers."""
    approvals: Approvals | None = None
    """Where consent is kept, for `trysquare approve`. Without it, a tool that needs consent runs only if the client can
    ask. The toolset of an app has its own."""
    principal: Principal = field(default_factory=local_principal)
    """Who calls where no token says it: the user of this operating system."""
    skills: bool = False
    """Whether resources that open a skill are offered as skills too (SEP-2640)."""
    telemetry: bool = False
    """Whether the SDK's own OpenTelemetry span is made for every message."""

    def __post_init__(self) -> None:
        for key in self.state_keys:
            if len(key) < SHORTEST_KEY:
                raise ValueError(f"a state key needs at least {SHORTEST_KEY} bytes, this one has {len(key)}")
        if self.page_size < 1:
            raise ValueError(f"page_size must be at least 1, not {self.page_size}")

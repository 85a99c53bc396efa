"""Options of a server, and the keys that seal its questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import trysquare
from trysquare.catalog import ProfileChoice
from trysquare.core.approvals import Approvals
from trysquare.core.cache import Handles, MemoryHandles
from trysquare.core.context import FastCall, Principal, local_principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.metadata import Icon
from trysquare.core.requests import RequestMiddleware, request_middleware_of
from trysquare.core.toolset import ServerInfo, Toolset, server_info_of
from trysquare.settings import Settings

if TYPE_CHECKING:
    from trysquare.store.tasks import StoredTasks

SHORTEST_KEY = 32
DEFAULT_NAME = "trysquare"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeOptions:
    """How a toolset is served."""

    name: str | None = None
    """Like title, version and instructions: where None, what the toolset says of itself, as `Tools("name")` does."""
    version: str | None = None
    title: str | None = None
    instructions: str | None = None
    introduce: Callable[[], str] | None = None
    """Where the work stands, added to the instructions whenever a client connects."""
    website: str | None = None
    icons: tuple[Icon, ...] = ()
    profiles: ProfileChoice = field(default_factory=ProfileChoice)
    page_size: int = 1000
    """Entries per page of a list."""
    list_ttl_ms: int = 60_000
    """How long a client of protocol 2026-07-28 may cache a list; subscribers are notified of changes."""
    call_timeout: float | None = None
    """Seconds that any call may take, where its tool sets no shorter time."""
    state_keys: tuple[bytes, ...] = ()
    """Secrets that seal questions, at least 32 bytes each, the same for all workers; the first one seals.

    Without any, a key is made for this process, and an answer must come back to the same process.
    """
    state_ttl: float = 600.0
    """Seconds that the user has to answer a question."""
    handles: Handles = field(default_factory=MemoryHandles)
    direct: FastCall | None = None
    """How prompts and tools call other tools by name; without it, through the served tools with all their wrappers."""
    approvals: Approvals | None = None
    """Store of consent, for `trysquare approve`. Without it a tool that needs consent runs only if the client can ask.
    The toolset of an app has its own."""
    principal: Principal = field(default_factory=local_principal)
    """Who calls where no token says it: the user of this operating system."""
    request_middleware: Callable[[], Sequence[RequestMiddleware]] | None = None
    """What stands around requests, outermost first; None for that of the toolset."""
    tasks: StoredTasks | None = None
    """Where tasks are kept; None where calls are always answered directly."""
    skills: bool = False
    """Whether resources that open a skill are offered as skills too (SEP-2640)."""

    def server_info(self, toolset: Toolset) -> ServerInfo:
        """How a server of the toolset introduces itself."""
        own = server_info_of(toolset) or ServerInfo()
        return ServerInfo(
            name=self.name or own.name or DEFAULT_NAME,
            title=self.title or own.title,
            version=self.version or own.version or trysquare.__version__,
            instructions=self.instructions if self.instructions is not None else own.instructions,
            website=self.website or own.website,
            icons=self.icons or own.icons,
        )

    def around_requests(self, toolset: Toolset) -> Callable[[], Sequence[RequestMiddleware]]:
        """Returns what stands around requests now: a source that is reloaded may change it."""
        return self.request_middleware or (lambda: request_middleware_of(toolset))

    def __post_init__(self) -> None:
        for key in self.state_keys:
            if len(key) < SHORTEST_KEY:
                raise ValueError(f"a state key needs at least {SHORTEST_KEY} bytes, this one has {len(key)}")
        if self.page_size < 1:
            raise ValueError(f"page_size must be at least 1, not {self.page_size}")


def state_keys(settings: Settings) -> tuple[bytes, ...]:
    """Keys that sign request states, from the settings and from the file of keys."""
    keys = [key.get_secret_value() for key in settings.http.state_keys]
    file = settings.http.state_keys_file
    if file is not None:
        keys.extend(_lines(file))
    for key in keys:
        if len(key.encode()) < SHORTEST_KEY:
            raise ConfigurationError(
                f"a state key needs at least {SHORTEST_KEY} bytes.",
                where=str(file or "http.state_keys"),
                hint="`python3 -c 'import secrets; print(secrets.token_hex(32))'` makes one.",
            )
    return tuple(key.encode() for key in keys)


def _lines(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigurationError(f"Cannot read http.state_keys_file: {reason}.", where=str(file)) from None
    return [line.strip() for line in lines if line.strip()]

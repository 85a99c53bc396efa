"""Servers behind the gateway: what the configuration says of each, how each is doing, and what it says of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from trysquare.core.types import JsonObject

Transport: TypeAlias = Literal["stdio", "http", "sse"]
ServerState: TypeAlias = Literal["asleep", "starting", "running", "resting"]
Sharing: TypeAlias = Literal["shared", "caller"]
"""One connection for all callers, or one for each principal, so that state never passes between them."""
ChangePolicy: TypeAlias = Literal["hold", "refuse", "accept"]
"""A changed definition: the approved one stays in use, or the tool is refused, or what looks harmless is taken."""
FirstUse: TypeAlias = Literal["trust", "hold"]
"""A server, or a tool of it, that was never seen: used at once, or after a human has approved it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where in a file something is said."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OAuthClient:
    """How to sign in to a remote server, where the defaults of OAuth 2.1 discovery are not enough."""

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    callback_port: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerConfig:
    """One server of a configuration, with every variable filled in."""

    name: str
    tool_name: str
    """`mcp_<server>`, as the model sees it."""
    transport: Transport
    place: Place = field(compare=False)
    """Left out of comparisons: a server that only moved within its file is the same server."""
    shown: str = ""
    """How it is started or reached, as the file writes it: variables not filled in, secrets masked."""
    launch_digest: str = ""
    """Changes with whatever decides what is started or reached, as the file writes it."""
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    pass_env: frozenset[str] = frozenset()
    """Variables of the gateway's own environment that the server gets too; `*` stands for anything."""
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    oauth: OAuthClient | None = None
    description: str = ""
    include_tools: frozenset[str] | None = None
    exclude_tools: frozenset[str] = frozenset()
    timeout: float = 60.0
    """Seconds that a call may take."""
    start_timeout: float = 30.0
    idle: float = 300.0
    """Seconds without a call after which the server is put to sleep; 0 keeps it."""
    sharing: Sharing = "shared"
    concurrency: int = 64
    """Calls under way at once."""
    result_bytes: int = 64 * 1024
    """Larger results become a handle; 0 passes everything on whole."""
    max_line: int = 256 * 1024 * 1024
    """Longer messages of the server are refused."""
    max_tools: int = 2_000
    """Tools that are taken of the server; as many prompts, resources and templates."""
    max_catalogue_bytes: int = 8 * 1024 * 1024
    """Bytes of all definitions of a list that are taken."""
    max_definition_bytes: int = 256 * 1024
    """Bytes of one definition."""
    changes: ChangePolicy = "hold"
    first_use: FirstUse = "trust"
    redact: frozenset[str] = frozenset()
    """Arguments that audit and ledger must not hold."""

    def offers(self, tool: str) -> bool:
        """Whether the entry lets a tool of the server through."""
        return tool not in self.exclude_tools and (self.include_tools is None or tool in self.include_tools)


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokenServer:
    """An entry of a configuration that cannot be used, and why. The others serve on."""

    name: str
    tool_name: str
    reason: str
    place: Place


ServerEntry: TypeAlias = ServerConfig | BrokenServer


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """What a server says of one of its tools."""

    name: str
    description: str = ""
    title: str | None = None
    input_schema: JsonObject = field(default_factory=lambda: {"type": "object"})
    output_schema: JsonObject | None = None
    annotations: JsonObject = field(default_factory=dict[str, Any])

    @property
    def is_repeatable(self) -> bool:
        """Whether the server says that a second call does no harm."""
        return bool(self.annotations.get("readOnlyHint")) or bool(self.annotations.get("idempotentHint"))


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerStatus:
    """How a server is doing."""

    state: ServerState
    connections: int
    under_way: int
    version: str | None = None
    """The version of the protocol it speaks, once that is known."""
    failures: int = 0
    reason: str = ""
    """Why it failed last; empty when it is well."""
    retry_seconds: float = 0.0
    noise: int = 0
    """Lines of its connections that were no messages."""

"""Values of the gateway: server configuration, tool definition, upstream result, names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from trysquare.core.json import JsonObject
from trysquare.core.redaction import marks_secrets

if TYPE_CHECKING:
    from trysquare.core.schema.validator import InputValidator


class UpstreamResult(NamedTuple):
    """The JSON bytes of a `tools/call` result as the server sent them."""

    body: bytes
    is_error: bool = False
    notes: tuple[str, ...] = ()
    """Remarks for the caller on how the result was obtained."""


ORIGIN = "trysquare/origin"
"""Key of our label in the `_meta` of a result."""


class ResultOrigin(NamedTuple):
    """The server and tool that produced a result, and how the gateway changed it."""

    server: str
    tool: str
    outcome: str = "done"
    notes: tuple[str, ...] = ()
    replayed: bool = False

    def label(self, *, cleaned: int = 0, handle: str | None = None) -> JsonObject:
        label = {
            "server": self.server,
            "tool": self.tool,
            "outcome": self.outcome,
            "notes": list(self.notes),
            "replayed": self.replayed,
            "hidden_characters_removed": cleaned,
            "handle": handle,
        }
        return {ORIGIN: {name: part for name, part in label.items() if part}}


PREFIX = "mcp_"
GATEWAY = "mcp"
"""The one tool over all servers."""
READ = "gateway_read"
"""Reads large results where every tool of a server is listed by itself."""
SEPARATOR = "__"
_MAX_NAME = 64
_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
"""Also the dot, which the protocol allows and large model APIs refuse."""


def name_prefix(server: ServerConfig) -> str:
    """The prefix of the names of a server's tools and prompts: `github__` for `mcp_github`."""
    return server.tool_name.removeprefix(PREFIX) + SEPARATOR


def upstream_name(server: ServerConfig, name: str) -> str:
    """The served name of a server's tool or prompt: `github__create_issue`.

    Invalid characters become `_`. A name that is too long, or that has letters of another script, ends with a digest,
    so that two names stay distinct.
    """
    qualified = name_prefix(server) + name
    served = _INVALID_CHARACTER.sub("_", qualified)
    return served if len(served) <= _MAX_NAME and qualified.isascii() else _with_digest(served, qualified)


def distinct_name(name: str, server: str) -> str:
    """A name for one of several servers that would share it."""
    return _with_digest(name, f"{server}\n{name}")


def _with_digest(name: str, of: str) -> str:
    digest = hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: _MAX_NAME - 9]}_{digest}"


ServerState: TypeAlias = Literal["asleep", "starting", "running", "resting"]
Sharing: TypeAlias = Literal["shared", "caller"]
"""One connection for all callers, or one for each principal, so that no state passes between them."""
ChangePolicy: TypeAlias = Literal["hold", "refuse", "accept"]
"""A changed definition: keep the approved one, refuse the tool, or accept what is not dangerous."""
FirstUse: TypeAlias = Literal["trust", "hold"]
"""A server or tool that was never seen: used at once, or after a human has approved it."""

ProtocolChoice: TypeAlias = Literal["auto", "2025-11-25"]
"""The newest version that the server supports, or the handshake of 2025-11-25."""
Prestart: TypeAlias = Literal["auto", "always", "never"]
"""Start of the process with the gateway: if the last session called it first, always, or not before its first use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigLocation:
    """A file, and a line where it is known."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OAuthClient:
    """OAuth client settings, where the defaults of OAuth 2.1 discovery are not enough."""

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    callback_port: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerConfig:
    """One configured server, with every variable filled in."""

    name: str
    tool_name: str
    """`mcp_<server>`, as the model sees it."""
    transport: str
    """A key of `TRANSPORTS`."""
    location: ConfigLocation = field(compare=False)
    """Not compared: a server that only moved within its file is the same server."""
    shown: str = ""
    """How it is started or reached, as the file writes it: variables not filled in, secrets masked."""
    launch_digest: str = ""
    """Digest of everything that decides what is started or reached, as the file writes it."""
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    pass_env: frozenset[str] = frozenset()
    """Globs of the variables that the server inherits from the gateway's environment."""
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    oauth: OAuthClient | None = None
    description: str = ""
    include_tools: frozenset[str] | None = None
    exclude_tools: frozenset[str] = frozenset()
    timeout: float = 60.0
    """Seconds for one call."""
    start_timeout: float = 30.0
    idle: float = 300.0
    """Seconds without a call until the server is shut down; 0 for never."""
    prestart: Prestart = "auto"
    sharing: Sharing = "shared"
    concurrency: int = 64
    """Maximum number of concurrent calls."""
    result_bytes: int = 64 * 1024
    """Larger results are spilled to a handle; 0 relays every result."""
    max_line: int = 256 * 1024 * 1024
    """Maximum bytes of one message of the server."""
    max_tools: int = 2_000
    """Maximum number of tools; the same for prompts, resources and templates."""
    max_catalogue_bytes: int = 8 * 1024 * 1024
    """Maximum bytes of all definitions in one list."""
    max_definition_bytes: int = 256 * 1024
    changes: ChangePolicy = "hold"
    first_use: FirstUse = "trust"
    protocol: ProtocolChoice = "auto"
    redact: frozenset[str] = frozenset()
    """Arguments left out of audit and call ledger."""

    is_attributed: bool = True
    """Whether its questions and log messages name it; not where it is the only server of its caller."""
    keeps_progress: bool = False
    """Whether every progress report is relayed; otherwise of those that come together, the last."""
    shows_errors: bool = False
    """Whether what the server writes to stderr is written to ours: it is the user's own file."""

    @property
    def attribution(self) -> str:
        """The name that its questions and log messages carry."""
        return self.name if self.is_attributed else ""

    def offers(self, tool: str) -> bool:
        """Whether the entry includes a tool of the server."""
        return tool not in self.exclude_tools and (self.include_tools is None or tool in self.include_tools)


@dataclass(frozen=True, kw_only=True, slots=True)
class InvalidServer:
    """A configuration entry that cannot be used, and why."""

    name: str
    tool_name: str
    reason: str
    location: ConfigLocation


ServerEntry: TypeAlias = ServerConfig | InvalidServer


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool as its server describes it. What is made of its schemas is made once, when it is first needed."""

    name: str
    description: str = ""
    title: str | None = None
    input_schema: JsonObject = field(default_factory=lambda: {"type": "object"})
    output_schema: JsonObject | None = None
    annotations: JsonObject = field(default_factory=dict[str, Any])
    page: JsonObject = field(default_factory=dict[str, Any])
    """Its page, and whether only pages call it: `resourceUri` and `visibility` of MCP Apps."""
    icons: list[JsonObject] = field(default_factory=list[JsonObject])
    """Checked, as they are listed. They are for users, not for models: other ones need no approval."""

    @property
    def is_for_pages(self) -> bool:
        """Whether models do not see it."""
        return self.page.get("visibility") == ["app"]

    @property
    def typed_output(self) -> JsonObject | None:
        """The output schema, where every client can read it: before 2026-07-28 it had to be an object at the top."""
        schema = self.output_schema
        return schema if schema is not None and schema.get("type") == "object" else None

    @property
    def is_repeatable(self) -> bool:
        """Whether the server declares that a second call does no harm."""
        return bool(self.annotations.get("readOnlyHint")) or bool(self.annotations.get("idempotentHint"))

    @cached_property
    def validator(self) -> InputValidator:
        """The compiled input schema."""
        from trysquare.core.schema.validator import input_validator

        return input_validator(self.input_schema)

    @cached_property
    def marks_secrets(self) -> bool:
        """Whether the input schema marks arguments as secret, whatever their names are."""
        return marks_secrets(self.input_schema)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerStatus:
    """The state of one server's connections."""

    state: ServerState
    connections: int
    under_way: int
    version: str | None = None
    """The negotiated protocol version, once it is known."""
    software: str = ""
    """The server's own name and version, once it said them."""
    failures: int = 0
    noise: int = 0
    """Lines received that were not messages."""
    lost: str = ""
    """Why its last connection ended by itself or could not be opened; empty once another one is open."""

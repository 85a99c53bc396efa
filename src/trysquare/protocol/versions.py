"""Versions of the Model Context Protocol, what each has, and the `_meta` keys that it reserves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from trysquare.core.json import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtocolVersion:
    """What a revision of the protocol has that others have not."""

    name: str
    is_stateless: bool = False
    """Whether every request describes itself in `_meta`, without a handshake or a session."""
    has_batches: bool = False
    """Whether several messages may come as one JSON array."""
    primes_streams: bool = False
    """Whether a stream of events begins with an empty event, whose id a client can resume from."""


VERSIONS: Final = {
    version.name: version
    for version in (
        ProtocolVersion(name="2024-11-05"),
        ProtocolVersion(name="2025-03-26", has_batches=True),
        ProtocolVersion(name="2025-06-18"),
        ProtocolVersion(name="2025-11-25", primes_streams=True),
        ProtocolVersion(name="2026-07-28", is_stateless=True),
    )
}
"""Every supported revision, oldest first."""
HANDSHAKE_VERSIONS: Final = tuple(name for name, version in VERSIONS.items() if not version.is_stateless)
STATELESS_VERSIONS: Final = tuple(name for name, version in VERSIONS.items() if version.is_stateless)
LATEST_HANDSHAKE: Final = HANDSHAKE_VERSIONS[-1]
LATEST_STATELESS: Final = STATELESS_VERSIONS[-1]
ASSUMED_VERSION: Final = "2025-03-26"
"""The version of an HTTP request without a session whose header names none."""

_RESERVED: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = _RESERVED + "protocolVersion"
CLIENT_INFO_KEY: Final = _RESERVED + "clientInfo"
CAPABILITIES_KEY: Final = _RESERVED + "clientCapabilities"
LOG_LEVEL_KEY: Final = _RESERVED + "logLevel"
SERVER_INFO_KEY: Final = _RESERVED + "serverInfo"
SUBSCRIPTION_KEY: Final = _RESERVED + "subscriptionId"

SERVER_CAPABILITIES: Final[JsonObject] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}
"""What a Trysquare server offers, in every version."""
SKILLS_EXTENSION: Final = _RESERVED + "skills"
TASKS_EXTENSION: Final = _RESERVED + "tasks"


def is_stateless(version: str) -> bool:
    """Whether every request describes itself in this version; False for an unknown one."""
    return version in STATELESS_VERSIONS


def negotiated(requested: str) -> str:
    """The version that a server answers a handshake with: the requested one, or the newest one that has a handshake."""
    return requested if requested in HANDSHAKE_VERSIONS else LATEST_HANDSHAKE


def has_extension(capabilities: JsonObject, name: str) -> bool:
    """Whether one side says in its capabilities that it supports an extension of the protocol."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, dict) and isinstance(cast(JsonObject, extensions).get(name), dict)


def takes_forms(elicitation: object) -> bool:
    """Whether a client's `elicitation` capability includes forms: an empty one does, one that lists modes may not."""
    return isinstance(elicitation, dict) and ("form" in elicitation or "url" not in elicitation)


def takes_urls(elicitation: object) -> bool:
    """Whether a client's `elicitation` capability includes pages to open."""
    return isinstance(elicitation, dict) and "url" in elicitation

"""The handshake: which era of the protocol a server speaks, and what it says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec

from trysquare.core.types import JsonObject
from trysquare.gateway.upstream import frames
from trysquare.gateway.upstream.channel import Loss, Unreachable
from trysquare.gateway.upstream.connection import Connection, Exchange, Lost, Refused
from trysquare.gateway.upstream.frames import NotAFrame

MODERN: Final = "2026-07-28"
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_PROBE_SECONDS = 2.0
"""How long the probe alone is waited for. Servers that ignore what they do not know get the handshake then."""
_META: Final = "io.modelcontextprotocol/"
LOG_LEVEL: Final = f"{_META}logLevel"


@dataclass(frozen=True, kw_only=True, slots=True)
class Introduction:
    """What we say of ourselves to a server."""

    name: str
    version: str
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def client_info(self) -> JsonObject:
        """Our name, as the protocol has it."""
        return {"name": self.name, "version": self.version}


@dataclass(frozen=True, kw_only=True, slots=True)
class Greeting:
    """What a server says of itself."""

    version: str
    """The version of the protocol that both sides speak."""
    name: str = ""
    server_version: str = ""
    instructions: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_modern(self) -> bool:
        """Whether every request has to say who we are, and questions come as results."""
        return self.version == MODERN

    def offers(self, capability: str, option: str | None = None) -> bool:
        """Whether the server says that it can do this."""
        found = self.capabilities.get(capability)
        if option is None or not isinstance(found, dict):
            return isinstance(found, dict)
        return bool(cast(JsonObject, found).get(option))


class Incompatible(Unreachable):
    """The server answered, and the two sides do not agree on how to go on."""


async def shake_hands(connection: Connection, own: Introduction, *, version: str | None, seconds: float) -> Greeting:
    """Agree on a version. One that is remembered from an earlier time is taken up without a probe.

    Raises `Unreachable` if the server does not answer in time, or not as a server of this protocol would.
    """
    try:
        async with asyncio.timeout(seconds):
            greeting = await _agreed(connection, own, version)
    except TimeoutError:
        raise Unreachable(_failed(f"The server was started and said nothing within {seconds:g} seconds.")) from None
    except Lost as error:
        raise Unreachable(_failed(error.loss.reason, error.loss)) from None
    except Refused as error:
        raise Incompatible(_failed(f"The server refused the handshake: {error.error.message}")) from None
    except NotAFrame as error:
        raise Incompatible(_failed(f"The server's answer to the handshake cannot be read: {error}")) from None
    connection.channel.settle(greeting.version)
    if not greeting.is_modern:
        connection.notify("notifications/initialized", {})
    return greeting


def stamp(own: Introduction, capabilities: Mapping[str, Any]) -> JsonObject:
    """What every request of the modern era says of its sender, in `_meta`."""
    return {
        f"{_META}protocolVersion": MODERN,
        f"{_META}clientInfo": own.client_info,
        f"{_META}clientCapabilities": dict(capabilities),
    }


async def _agreed(connection: Connection, own: Introduction, version: str | None) -> Greeting:
    if version is not None and version != MODERN:
        return _initialized(await _begin_initialize(connection, own).answered())
    probe = connection.begin("server/discover", frames.encode({"_meta": stamp(own, own.capabilities)}))
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            await probe.settled()
    except TimeoutError:
        return await _whichever_answers(connection, own, probe)
    return _discovered(probe) or _initialized(await _begin_initialize(connection, own).answered())


def _discovered(probe: Exchange) -> Greeting | None:
    """What the answer to the probe says, or None if the server is of the earlier era."""
    try:
        answer = frames.decode_object(probe.result())
    except Refused as error:
        _refuse_strangers(error)
        return None
    except Lost as error:
        if (
            error.loss.status is not None
            and 400 <= error.loss.status < 500
            and error.loss.status not in (401, 403, 429)
        ):
            return None
        raise
    supported = answer.get("supportedVersions")
    if not isinstance(supported, list) or MODERN not in supported:
        return None
    info = _object(_object(answer.get("_meta")).get(f"{_META}serverInfo"))
    return _greeting(MODERN, info, answer)


def _refuse_strangers(refused: Refused) -> None:
    """A server that names its versions, none of which we know, is not asked again."""
    supported = _object(refused.error.data).get("supported")
    if refused.error.code == frames.UNSUPPORTED_VERSION and isinstance(supported, list):
        names = [str(name) for name in cast(list[Any], supported)]
        if not {MODERN, *HANDSHAKE_VERSIONS} & set(names):
            raise refused


async def _whichever_answers(connection: Connection, own: Introduction, probe: Exchange) -> Greeting:
    """A server that is slow answers the probe first; one that ignores the probe answers the handshake."""
    handshake = _begin_initialize(connection, own)
    waits = {asyncio.ensure_future(exchange.settled()) for exchange in (probe, handshake)}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    greeting = None if probe.outcome is None else _discovered(probe)
    return greeting or _initialized(await handshake.answered())


def _begin_initialize(connection: Connection, own: Introduction) -> Exchange:
    params: JsonObject = {
        "protocolVersion": HANDSHAKE_VERSIONS[-1],
        "capabilities": dict(own.capabilities),
        "clientInfo": own.client_info,
    }
    return connection.begin("initialize", frames.encode(params))


def _initialized(raw: msgspec.Raw) -> Greeting:
    answer = frames.decode_object(raw)
    version = answer.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS:
        known = ", ".join((*HANDSHAKE_VERSIONS, MODERN))
        raise NotAFrame(f"it speaks version {version!r} of the protocol, and we speak {known}")
    return _greeting(version, _object(answer.get("serverInfo")), answer)


def _greeting(version: str, info: JsonObject, answer: JsonObject) -> Greeting:
    return Greeting(
        version=version,
        name=str(info.get("name") or ""),
        server_version=str(info.get("version") or ""),
        instructions=str(answer.get("instructions") or ""),
        capabilities=_object(answer.get("capabilities")),
    )


def _object(value: Any) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def _failed(reason: str, loss: Loss | None = None) -> Loss:
    return Loss(
        reason=reason,
        was_sent=False,
        status=None if loss is None else loss.status,
        instruction=None if loss is None else loss.instruction,
        retry_after=None if loss is None else loss.retry_after,
    )

"""Both sides agree on a version, or it is said why they cannot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from inline_snapshot import snapshot

from trysquare.gateway.upstream.channel import Listener, Loss, Outgoing, RequestId, Unreachable
from trysquare.gateway.upstream.connection import Connection, ServerRequest
from trysquare.gateway.upstream.handshake import (
    HANDSHAKE_VERSIONS,
    MODERN,
    Greeting,
    Incompatible,
    Introduction,
    shake_hands,
)

OWN = Introduction(name="test", version="1", capabilities={"elicitation": {}})
NOT_FOUND = {"error": {"code": -32601, "message": "Method not found"}}


class Script:
    """A channel to a server that answers each method as it is written; what is not written gets no answer."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.sent: list[str] = []
        self.version: str | None = None
        self._answers = answers
        self._listener: Listener | None = None

    async def open(self, listener: Listener) -> None:
        self._listener = listener

    def send(self, outgoing: Outgoing) -> None:
        assert self._listener is not None
        self.sent.append(str(outgoing.method))
        answer = self._answers.get(str(outgoing.method))
        if isinstance(answer, Loss):
            asyncio.get_running_loop().call_soon(self._listener.lose, answer, outgoing.request_id)
        elif answer is not None:
            message = json.dumps({"id": outgoing.request_id, **answer}).encode()
            asyncio.get_running_loop().call_soon(self._listener.hear, message)

    def settle(self, version: str) -> None:
        self.version = version

    def abandon(self, request_id: RequestId) -> None:
        return None

    def last_words(self) -> str:
        return ""

    async def close(self) -> None:
        return None


class Nobody:
    """Hears of nothing."""

    def notice(self, method: str, params: msgspec.Raw, about: RequestId | None = None) -> None:
        return None

    def asked(self, request: ServerRequest, about: RequestId | None) -> None:
        return None

    def lost(self, loss: Loss) -> None:
        return None


async def agreed(answers: Mapping[str, Any], *, version: str | None = None) -> tuple[Greeting, Script]:
    script = Script(answers)
    connection = Connection(script, Nobody())
    await connection.open()
    return await shake_hands(connection, OWN, version=version, seconds=0.5), script


def initialized(version: str) -> dict[str, Any]:
    return {"result": {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "2"}}}


def discovered(*versions: str) -> dict[str, Any]:
    info = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "2"}}
    return {"result": {"supportedVersions": versions, "capabilities": {"tools": {}}, "_meta": info}}


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_every_version_of_the_handshake_is_spoken(version: str) -> None:
    greeting, script = await agreed({"server/discover": NOT_FOUND, "initialize": initialized(version)})
    assert (greeting.version, greeting.name, greeting.server_version) == (version, "s", "2")
    assert script.version == version
    assert script.sent == ["server/discover", "initialize", "notifications/initialized"]


async def test_a_modern_server_needs_one_question_and_no_handshake() -> None:
    greeting, script = await agreed({"server/discover": discovered(MODERN)})
    assert greeting.is_modern
    assert greeting.offers("tools")
    assert not greeting.offers("prompts")
    assert script.sent == ["server/discover"]


async def test_a_remembered_version_needs_no_probe() -> None:
    _, script = await agreed({"initialize": initialized("2025-06-18")}, version="2025-06-18")
    assert script.sent == ["initialize", "notifications/initialized"]


@pytest.mark.parametrize(
    "probe",
    [
        discovered("2025-11-25"),
        {"result": {}},
        {"error": {"code": -32022, "message": "no", "data": {"supported": ["2025-11-25"]}}},
        Loss(reason="Bad request", status=400),
    ],
)
async def test_a_server_that_answers_the_probe_oddly_is_of_the_earlier_era(probe: object) -> None:
    greeting, _ = await agreed({"server/discover": probe, "initialize": initialized("2025-11-25")})
    assert greeting.version == "2025-11-25"


async def test_a_server_of_versions_that_nobody_knows_is_refused() -> None:
    strange = {"error": {"code": -32022, "message": "I speak 2031-01-01", "data": {"supported": ["2031-01-01"]}}}
    with pytest.raises(Incompatible) as caught:
        await agreed({"server/discover": strange})
    assert str(caught.value) == snapshot("The server refused the handshake: I speak 2031-01-01")
    with pytest.raises(Incompatible) as caught:
        await agreed({"server/discover": NOT_FOUND, "initialize": initialized("2031-01-01")})
    assert str(caught.value) == snapshot(
        "The server's answer to the handshake cannot be read: it speaks version '2031-01-01' of the protocol, and we "
        "speak 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"
    )


async def test_a_server_that_wants_a_login_is_not_taken_for_an_old_one() -> None:
    with pytest.raises(Unreachable) as caught:
        await agreed({"server/discover": Loss(reason="Sign in", status=401, instruction="trysquare gateway login")})
    assert caught.value.loss.instruction == "trysquare gateway login"


async def test_a_server_that_says_nothing_is_given_up() -> None:
    with pytest.raises(Unreachable, match=r"said nothing within 0\.5 seconds"):
        await agreed({})

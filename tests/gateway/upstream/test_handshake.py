"""Both sides agree on a version, or it is said why they cannot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from trysquare.gateway.upstream.connection import Connection, ServerRequest
from trysquare.gateway.upstream.session import ClientInfo, ServerInfo, UnsupportedProtocol, negotiate
from trysquare.gateway.upstream.transport import (
    DisconnectReason,
    OutgoingMessage,
    RequestId,
    Transport,
    TransportError,
    TransportListener,
)
from trysquare.protocol import HANDSHAKE_VERSIONS, LATEST_STATELESS

OWN = ClientInfo(name="test", version="1", capabilities={"elicitation": {}})
NOT_FOUND = {"error": {"code": -32601, "message": "Method not found"}}


class Script(Transport):
    """A channel to a server that answers each method as it is written; what is not written gets no answer."""

    owns_process = True

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.sent: list[str] = []
        self.version: str | None = None
        self._answers = answers
        self._listener: TransportListener | None = None

    async def open(self, listener: TransportListener) -> None:
        self._listener = listener

    def send(self, outgoing: OutgoingMessage) -> None:
        assert self._listener is not None
        self.sent.append(str(outgoing.method))
        answer = self._answers.get(str(outgoing.method))
        if isinstance(answer, DisconnectReason):
            asyncio.get_running_loop().call_soon(self._listener.on_disconnect, answer, outgoing.request_id)
        elif answer is not None:
            message = json.dumps({"id": outgoing.request_id, **answer}).encode()
            asyncio.get_running_loop().call_soon(self._listener.receive, message)

    def set_version(self, version: str) -> None:
        self.version = version

    def cancel(self, request_id: RequestId) -> None:
        return None

    def stderr_tail(self) -> str:
        return ""

    async def close(self) -> None:
        return None


class Nobody:
    """Hears of nothing."""

    def on_notification(self, method: str, params: msgspec.Raw, about: RequestId | None = None) -> None:
        return None

    def on_request(self, request: ServerRequest, about: RequestId | None) -> None:
        return None

    def on_disconnect(self, disconnect: DisconnectReason) -> None:
        return None


async def agreed(answers: Mapping[str, Any], *, version: str | None = None) -> tuple[ServerInfo, Script]:
    script = Script(answers)
    connection = Connection(script, Nobody())
    await connection.open()
    return await negotiate(connection, OWN, version=version, seconds=0.5), script


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
    greeting, script = await agreed({"server/discover": discovered(LATEST_STATELESS)})
    assert greeting.is_stateless
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
        DisconnectReason(reason="Bad request", status=400),
    ],
)
async def test_a_server_that_answers_the_probe_oddly_is_of_the_earlier_era(probe: object) -> None:
    greeting, _ = await agreed({"server/discover": probe, "initialize": initialized("2025-11-25")})
    assert greeting.version == "2025-11-25"


async def test_a_server_of_versions_that_nobody_knows_is_refused() -> None:
    strange = {"error": {"code": -32022, "message": "I speak 2031-01-01", "data": {"supported": ["2031-01-01"]}}}
    with pytest.raises(UnsupportedProtocol) as caught:
        await agreed({"server/discover": strange})
    assert "I speak 2031-01-01" in str(caught.value)
    with pytest.raises(UnsupportedProtocol) as caught:
        await agreed({"server/discover": NOT_FOUND, "initialize": initialized("2031-01-01")})
    assert "unsupported protocol version '2031-01-01'" in str(caught.value)


async def test_a_server_that_wants_a_login_is_not_taken_for_an_old_one() -> None:
    with pytest.raises(TransportError) as caught:
        await agreed(
            {"server/discover": DisconnectReason(reason="Sign in", status=401, instruction="trysquare gateway login")}
        )
    assert caught.value.disconnect.instruction == "trysquare gateway login"


async def test_a_server_that_says_nothing_is_given_up() -> None:
    with pytest.raises(TransportError, match=r"within 0\.5 seconds"):
        await agreed({})


class Slow(Script):
    """A server that started late: it finds the probe and the handshake, and answers the handshake first."""

    def send(self, outgoing: OutgoingMessage) -> None:
        assert self._listener is not None
        self.sent.append(str(outgoing.method))
        if outgoing.method == "initialize":
            for number, method in ((outgoing.request_id, "initialize"), (1, "server/discover")):
                message = json.dumps({"id": number, **self._answers[method]}).encode()
                asyncio.get_running_loop().call_soon(self._listener.receive, message)


@pytest.mark.parametrize("code", [-32022, -32601])
async def test_a_late_stateless_server_may_reject_the_handshake_before_it_answers_the_probe(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trysquare.gateway.upstream.session._PROBE_SECONDS", 0.01)
    refused = {"error": {"code": code, "message": "no handshake"}}
    script = Slow({"initialize": refused, "server/discover": discovered(LATEST_STATELESS)})
    connection = Connection(script, Nobody())
    await connection.open()
    found = await negotiate(connection, OWN, version=None, seconds=20)
    assert found.is_stateless
    assert script.sent == ["server/discover", "initialize"]


async def test_a_late_server_that_rejects_both_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trysquare.gateway.upstream.session._PROBE_SECONDS", 0.01)
    refused = {"error": {"code": -32022, "message": "no handshake"}}
    connection = Connection(Slow({"initialize": refused, "server/discover": NOT_FOUND}), Nobody())
    await connection.open()
    with pytest.raises(UnsupportedProtocol, match="no handshake"):
        await negotiate(connection, OWN, version=None, seconds=20)

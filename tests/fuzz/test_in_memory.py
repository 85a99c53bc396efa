"""Every request gets an answer, whatever is inside it, and none leaves a task behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator
from random import Random

import pytest

from tests.fuzz.frames import modern_meta, random_request
from tests.fuzz.properties import left_behind, require_no_traceback
from tests.fuzz.shares import share
from tests.fuzz.toolset import fuzz_toolset
from tests.support import size
from trysquare.core.json import JsonObject
from trysquare.server import Connection, build_server

pytestmark = pytest.mark.timeout(size(120, 1200))

ERAS = ("2025-11-25", "2026-07-28")
TOGETHER = 10
UNANSWERED = {"subscriptions/listen"}
"""A stream of its own, which ends when the client says so."""


class Conversation:
    """Requests and answers in memory."""

    def __init__(self) -> None:
        self._received: asyncio.Queue[bytes] = asyncio.Queue()
        self.connection = Connection(build_server(fuzz_toolset()), self._received.put_nowait)
        self.answers: dict[str | int, JsonObject] = {}

    async def send(self, message: JsonObject) -> None:
        self.connection.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())
        await asyncio.sleep(0)

    async def answer(self, request_id: str | int) -> JsonObject:
        """The answer to a request, once it is there; others that come first are kept."""
        async with asyncio.timeout(60):
            while request_id not in self.answers:
                received = await self._received.get()
                require_no_traceback(received.decode())
                message: JsonObject = json.loads(received)
                if "method" not in message:
                    self.answers[message["id"]] = message
        return self.answers.pop(request_id)

    async def ask(self, method: str, params: JsonObject, request_id: str | int) -> JsonObject:
        await self.send({"id": request_id, "method": method, "params": params})
        return await self.answer(request_id)


@contextlib.asynccontextmanager
async def conversation(era: str) -> AsyncGenerator[Conversation]:
    """A server that has chosen its era; it must have left nothing behind in the end."""
    before = asyncio.all_tasks()
    talk = Conversation()
    await _greet(talk, era)
    yield talk
    await talk.connection.close("the test has ended", grace=30)
    assert left_behind(before) == []


async def _greet(talk: Conversation, era: str) -> None:
    if era == "2026-07-28":
        assert "result" in await talk.ask("server/discover", {"_meta": modern_meta()}, "greeting")
        return
    client = {"name": "fuzz", "version": "1"}
    params: JsonObject = {"protocolVersion": era, "capabilities": {}, "clientInfo": client}
    assert "result" in await talk.ask("initialize", params, "greeting")
    await talk.send({"method": "notifications/initialized"})


@pytest.mark.parametrize("era", ERAS)
async def test_every_request_is_answered(era: str, caplog: pytest.LogCaptureFixture) -> None:
    random = Random(f"in memory {era}")
    caplog.set_level(logging.CRITICAL, "trysquare.call")
    async with conversation(era) as talk:
        for number in range(0, share("requests in memory") // len(ERAS), TOGETHER):
            sent = [await _sent(talk, random_request(random), number + step) for step in range(TOGETHER)]
            for request_id, message in sent:
                if request_id is not None and message["method"] not in UNANSWERED:
                    await _require_answer(talk, request_id, message)
            await _require_good_call(talk, era, number)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def _sent(talk: Conversation, message: JsonObject, number: int) -> tuple[str | int | None, JsonObject]:
    if message["method"].startswith("notifications/"):
        await talk.send({"method": message["method"], "params": message["params"]})
        return None, message
    await talk.send({"id": number, "method": message["method"], "params": message["params"]})
    return number, message


async def _require_answer(talk: Conversation, request_id: str | int, message: JsonObject) -> None:
    try:
        answer = await talk.answer(request_id)
    except TimeoutError:
        raise AssertionError(f"no answer to {message}") from None
    assert ("result" in answer) != ("error" in answer)


async def _require_good_call(talk: Conversation, era: str, number: int) -> None:
    params: JsonObject = {"name": "add", "arguments": {"left": number}}
    if era == "2026-07-28":
        params["_meta"] = modern_meta()
    answer = await talk.ask("tools/call", params, f"good-{number}")
    assert answer["result"]["structuredContent"]["result"] == number + 1, answer

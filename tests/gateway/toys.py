"""The toy server as an entry of a configuration, and short ways to call it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from trysquare import Answer as ClientAnswer
from trysquare import CallContext, Principal
from trysquare.core.context import Capability, ClientRequest, ElicitRequest, LogLevel
from trysquare.core.errors import InputRequired
from trysquare.gateway import ServerConfig
from trysquare.gateway.models import ConfigLocation, UpstreamResult
from trysquare.gateway.pool.pool import ServerPool

TOY = Path(__file__).with_name("toy_server.py")
ERAS = ("legacy", "modern")


def toy(name: str = "toy", *options: str, **fields: Any) -> ServerConfig:
    """An entry that starts the toy server."""
    return ServerConfig(
        name=name,
        tool_name=f"mcp_{name}",
        transport="stdio",
        location=ConfigLocation(file="mcp.json", line=3),
        command=sys.executable,
        args=("-I", "-S", str(TOY), *options),
        **fields,
    )


async def say(
    pool: ServerPool, tool: str, text: object = "", *, server: str = "toy", context: CallContext | None = None
) -> UpstreamResult:
    """Call a tool of a toy server with one text."""
    arguments = json.dumps({"text": str(text)}).encode()
    return await pool.call(server, tool, arguments, context or CallContext(), on_sent=lambda: None)


async def words(
    pool: ServerPool, tool: str, text: object = "", *, server: str = "toy", context: CallContext | None = None
) -> str:
    """The text that a tool of a toy server answers with."""
    return text_of(await say(pool, tool, text, server=server, context=context))


def text_of(answer: UpstreamResult) -> str:
    """The text of an answer."""
    return json.loads(answer.body)["content"][0]["text"]


def hear_nothing(server: str, kind: str) -> None:
    """For whoever does not care what changes."""


async def has_ended(pid: int) -> None:
    """Wait until a process is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)


class Person:
    """A caller of the 2025 era with a person behind it, who answers every question the same way."""

    def __init__(self, name: str = "Ada", *offered: Capability) -> None:
        self.name = name
        self.questions: list[ClientRequest] = []
        self.told: list[tuple[float, float | None]] = []
        self._offered = offered or ("elicitation", "sampling", "roots")

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.told.append((done, total))

    async def log(self, level: LogLevel, message: str) -> None:
        return None

    def can_ask(self) -> bool:
        return "elicitation" in self._offered

    def offers(self, capability: Capability) -> bool:
        return capability in self._offered

    async def ask(self, question: ElicitRequest) -> ClientAnswer:
        return (await self.request((question,)))[question.key]

    async def request(self, requests: Sequence[ClientRequest]) -> dict[str, ClientAnswer]:
        self.questions += requests
        return {request.key: self._answer(request) for request in requests}

    def _answer(self, request: ClientRequest) -> ClientAnswer:
        contents: dict[str, dict[str, Any]] = {
            "elicitation": {"name": self.name},
            "sampling": {"text": "Hello.", "model": "small"},
            "roots": {"roots": [{"uri": "file:///work"}]},
        }
        return ClientAnswer(action="accept", content=contents[request.needs])


class SlowPerson(Person):
    """A person who is shown the question and never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = anyio.Event()

    async def request(self, requests: Sequence[ClientRequest]) -> dict[str, ClientAnswer]:
        self.is_asked.set()
        await anyio.sleep_forever()
        raise AssertionError("nobody wakes up from this")


class AskedLater(Person):
    """A caller of the 2026 era: a question ends the call, and the client calls again with the answer."""

    def __init__(self, name: str = "Ada") -> None:
        super().__init__(name)
        self.has_answers = False

    async def request(self, requests: Sequence[ClientRequest]) -> dict[str, ClientAnswer]:
        if not self.has_answers:
            raise InputRequired({request.key: request for request in requests})
        return await super().request(requests)


def called_by(caller: Person, subject: str = "ada", **fields: Any) -> CallContext:
    """The context of a call by somebody."""
    return CallContext(caller=caller, principal=Principal(subject=subject), **fields)

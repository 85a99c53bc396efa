"""Sending: a call goes out once, stands in the ledger before it does, and every failure says what is known of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol, cast

from pydantic_core import PydanticSerializationError, to_json

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InputRequired, InvalidArguments, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.calls.ledger import Entry, Ledger
from trysquare.gateway.calls.retrying import pause_before_retry
from trysquare.gateway.server import Definition, ServerConfig
from trysquare.store.ledger_rows import CallState

MAX_WAITING = 1024
"""Calls that wait for a person's answer; the ledger entries of older ones stay open until the gateway ends."""


class Calls(Protocol):
    """What sending needs of the fleet of servers."""

    def call(
        self, server: str, tool: str, arguments_json: bytes, context: CallContext, *, on_sent: Callable[[], None]
    ) -> Awaitable[Answer]:
        """Send one call and wait for its answer. `on_sent` is told just before the server may see it."""
        ...


class Sent(NamedTuple):
    """A call that was answered. `replayed` says that the answer is that of an earlier call with the same key."""

    answer: Answer
    outcome: str = "done"
    replayed: bool = False
    tries: int = 1


class Sender:
    """The one way for a call to reach a server behind the gateway."""

    def __init__(self, calls: Calls, ledger: Ledger) -> None:
        self._calls = calls
        self._ledger = ledger
        self._waiting: dict[bytes, Entry] = {}
        self._endings: set[asyncio.Future[CallState]] = set()

    async def send(
        self,
        server: ServerConfig,
        definition: Definition,
        inputs: JsonObject,
        *,
        context: CallContext,
        request_key: str | None = None,
        arguments: JsonObject | None = None,
    ) -> Sent:
        """Send a call whose inputs were checked. `arguments` is what the ledger keeps, where that is shorter."""
        is_given = arguments is None or arguments is inputs
        # What stands in place of a reference can be long.
        body = encoded(inputs) if is_given else await run_in_thread(lambda: encoded(inputs))
        begun = self._resumed(server, definition, body, context) if self._waiting else None
        if begun is None and is_given and request_key is None:
            begun = self._ledger.begin_at_once(server, definition, inputs, body, context.principal.subject)
        if begun is None:
            begun = await self._ledger.begin(
                server,
                definition,
                inputs if arguments is None else arguments,
                principal=context.principal.subject,
                request_key=request_key,
                encoded=body if is_given else None,
            )
        if isinstance(begun, Answer):
            return Sent(answer=begun, replayed=True)
        try:
            answer, tries = await self._send(server, definition, body, begun, context)
        except InputRequired:
            # The server's question goes to the person. The call is still under way, and goes on when it comes again.
            self._keep_waiting(_call_key(server, definition, body, context), begun)
            raise
        except BaseException as error:
            await self._end_failed(begun, error)
            raise
        if not self._ledger.done_at_once(begun, answer):
            await self._ledger.done(begun, answer)
        return Sent(answer=answer, tries=tries)

    async def _send(
        self, server: ServerConfig, definition: Definition, body: bytes, entry: Entry, context: CallContext
    ) -> tuple[Answer, int]:
        tries = 0
        while True:
            tries += 1
            try:
                answer = await self._calls.call(server.name, definition.name, body, context, on_sent=entry.sent)
            except ToolError as error:
                pause = pause_before_retry(definition, error, tries, context)
                if pause is None:
                    raise
                await asyncio.sleep(pause)
            else:
                return answer, tries

    async def _end_failed(self, entry: Entry, error: BaseException) -> None:
        # Shielded: a call that is taken back is put down as well.
        ending = asyncio.ensure_future(self._ledger.failed(entry, error))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        outcome = await asyncio.shield(ending)
        if isinstance(error, ToolError) and "outcome" not in error.fields:
            error.fields = {**error.fields, "outcome": outcome}

    def _resumed(self, server: ServerConfig, definition: Definition, body: bytes, context: CallContext) -> Entry | None:
        """The entry of the same call, if it is under way and waited for a person's answer."""
        return self._waiting.pop(_call_key(server, definition, body, context), None)

    def _keep_waiting(self, call: bytes, entry: Entry) -> None:
        self._waiting[call] = entry
        while len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]


def encoded(inputs: JsonObject) -> bytes:
    """Inputs as JSON, also where a text in them holds halves of characters. Raises for a number that JSON lacks."""
    try:
        body = to_json(inputs)
    except PydanticSerializationError:
        body = json.dumps(inputs).encode()
    if b"NaN" in body or b"Infinity" in body:
        _require_finite(inputs)
    return body


def _require_finite(inputs: JsonObject) -> None:
    """Servers that are told `Infinity` or `NaN` cannot read the call, and never answer it."""
    waiting: list[tuple[str, Any]] = list(inputs.items())
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidArguments(
                f"`{place[:200]}` is {value}, which JSON cannot say; nothing was sent.",
                code=ErrorCode.VALIDATION_INVALID_PARAM,
                instruction="Send a finite number, or leave it out.",
                fields={"outcome": "not_sent", "argument": place[:200]},
            )
        if isinstance(value, dict):
            waiting += [(f"{place}.{name}", part) for name, part in cast(JsonObject, value).items()]
        elif isinstance(value, list):
            waiting += [(f"{place}[{number}]", part) for number, part in enumerate(cast(list[Any], value))]


def _call_key(server: ServerConfig, definition: Definition, body: bytes, context: CallContext) -> bytes:
    who = to_json([context.principal.subject, server.name, definition.name])
    return hashlib.sha256(who + body).digest()

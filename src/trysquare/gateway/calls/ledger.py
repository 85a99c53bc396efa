"""The ledger of calls: every call is put down before it is sent, and its outcome before it is told."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import clean
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.calls.redaction import redacted
from trysquare.gateway.server import Definition, ServerConfig
from trysquare.store.ledger import CallLedger
from trysquare.store.ledger_rows import CallEnd, CallRecord, CallState, KeyedCall, NewCall

LONG = 256 * 1024
"""Bytes from which on an answer's digest is made in a thread."""
KEPT_RESULT = 1024 * 1024
"""Bytes up to which the answer to a call with a request key is kept for whoever sends it again."""
_NOTE = 300


@dataclass(kw_only=True, slots=True, eq=False)
class Entry:
    """A call that is under way."""

    id: str
    request_key: str | None = None
    is_sent: bool = False

    def sent(self) -> None:
        """Take note that from here on the server may have seen the call."""
        self.is_sent = True


Begun: TypeAlias = Entry | Answer
"""A call to be sent, or the answer that it had when it was sent before with the same key."""


class Ledger:
    """What the gateway's calls put down, and read again."""

    def __init__(self, calls: CallLedger, *, clock: Callable[[], float] = time.time) -> None:
        self._calls = calls
        self._clock = clock
        self._is_open = False

    def begin_at_once(
        self, server: ServerConfig, definition: Definition, inputs: JsonObject, encoded: bytes, principal: str
    ) -> Entry | None:
        """Put down a call without a key before it is sent; None where the ledger has to be opened first."""
        if not self._is_open:
            return None
        return Entry(id=self._calls.begin(_new_call(server, definition, inputs, encoded, principal)))

    async def begin(
        self,
        server: ServerConfig,
        definition: Definition,
        inputs: JsonObject,
        *,
        principal: str,
        request_key: str | None = None,
        encoded: bytes | None = None,
    ) -> Begun:
        """Put down a call before it is sent. With a key that was used before, return its answer instead.

        `encoded` is the inputs as JSON, where that is known already.
        """
        if not self._is_open:
            await run_in_thread(self._calls.open)
            self._is_open = True
        if request_key is not None or encoded is None:
            # In one order, so that the same call has the same digest whoever writes it.
            encoded = json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()
        call = _new_call(server, definition, inputs, encoded, principal)
        if request_key is None:
            return Entry(id=self._calls.begin(call))
        return await self._claim(call, request_key)

    def done_at_once(self, entry: Entry, answer: Answer) -> bool:
        """The server answered: put that down, if it takes no waiting."""
        if entry.request_key is not None or len(answer.body) > LONG:
            return False
        self._calls.end(entry.id, self._done(answer, _digest(answer.body)))
        return True

    async def done(self, entry: Entry, answer: Answer) -> None:
        """The server answered."""
        body = answer.body
        digest = await run_in_thread(lambda: _digest(body)) if len(body) > LONG else _digest(body)
        await self._end(entry, self._done(answer, digest), body if len(body) <= KEPT_RESULT else None)

    def _done(self, answer: Answer, digest: str) -> CallEnd:
        return CallEnd("done", self._clock(), answer.is_error, digest, len(answer.body))

    async def failed(self, entry: Entry, error: BaseException) -> CallState:
        """The call failed before an answer came; returns what is known of it now."""
        state = _outcome(entry, error)
        await self._end(entry, CallEnd(state=state, ended=self._clock(), note=_note(error)), None)
        return state

    async def recent(self, *, limit: int = 100, server: str | None = None) -> list[CallRecord]:
        """The latest calls, latest first."""
        return await run_in_thread(lambda: self._calls.recent(limit=limit, server=server))

    async def close(self) -> None:
        """Carry everything over and let go of the file."""
        await run_in_thread(self._calls.close)

    async def _claim(self, call: NewCall, key: str) -> Begun:
        claiming = asyncio.ensure_future(run_in_thread(lambda: self._calls.claim(call, key)))
        try:
            found = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # Nothing was sent: the key must not stay claimed by a call that nobody waits for.
            claiming.add_done_callback(self._release)
            raise
        if isinstance(found, str):
            return Entry(id=found, request_key=key)
        return _earlier_answer(found, call, key)

    def _release(self, claiming: asyncio.Future[str | KeyedCall]) -> None:
        if not claiming.cancelled() and claiming.exception() is None and isinstance(id := claiming.result(), str):
            self._calls.end_claimed(id, CallEnd(state="not_sent", ended=self._clock(), note="taken back"))

    async def _end(self, entry: Entry, end: CallEnd, result: bytes | None) -> None:
        if entry.request_key is None:
            self._calls.end(entry.id, end)
        else:
            await run_in_thread(lambda: self._calls.end_claimed(entry.id, end, result))


def _new_call(
    server: ServerConfig, definition: Definition, inputs: JsonObject, encoded: bytes, principal: str
) -> NewCall:
    shown = redacted(inputs, encoded.decode(), definition.input_schema, server.redact)
    return NewCall(principal, server.name, definition.name, shown, hashlib.sha256(encoded).hexdigest())


def _outcome(entry: Entry, error: BaseException) -> CallState:
    told: Any = error.fields.get("outcome") if isinstance(error, ToolError) else None
    if told in ("not_sent", "sent_unknown", "done"):
        return told
    return "sent_unknown" if entry.is_sent else "not_sent"


def _note(error: BaseException) -> str:
    told = " ".join(str(error).split()) or type(error).__name__
    return clean(told[:_NOTE])


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _earlier_answer(found: KeyedCall, call: NewCall, key: str) -> Answer:
    """The answer that a key had before, or an error that says why there is none."""
    shown = key if len(key) <= 80 else key[:79] + "…"
    if found.digest != call.digest:
        raise _conflict(
            f"Request key `{shown}` was used for `{call.tool}` with other inputs.",
            "Use a new request key for a new call, or repeat the first call exactly.",
            "not_sent",
        )
    if found.state == "sending":
        raise _conflict(
            f"The call with request key `{shown}` is still running.",
            "Wait, then send the same call with the same key to get its answer.",
            "not_sent",
        )
    if found.state == "sent_unknown":
        why = f" ({found.note})" if found.note else ""
        raise _conflict(
            f"The call with request key `{shown}` was sent, and nobody knows whether it took effect{why}.",
            "Look at the present state first. If the change is not there, send the call with a new key.",
            "sent_unknown",
        )
    if found.result is None:
        raise _conflict(
            f"The call with request key `{shown}` was done. Its answer of {found.result_bytes} bytes was too large to"
            " keep.",
            "Do not send it again for its effect; read what you need with another call.",
            "done",
        )
    return Answer(body=found.result, is_error=found.is_error)


def _conflict(message: str, instruction: str, outcome: str) -> ToolError:
    return ToolError(message, code=ErrorCode.STATE_CONFLICT, instruction=instruction, fields={"outcome": outcome})

"""Sender of calls: ledger before sending, send once, retry, outcome."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

from pydantic_core import PydanticSerializationError, to_json

from trysquare.core.context import CallContext
from trysquare.core.errors import CallCancelled, DeadlineExceeded, ErrorCode, InputRequired, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.redaction import mask_tokens, redact_text, redacted_json
from trysquare.core.text import encodable, truncate
from trysquare.core.threads import run_in_thread
from trysquare.gateway.models import ServerConfig, ToolDefinition, UpstreamResult
from trysquare.gateway.upstream.request import CHECKPOINT, UpstreamRequest
from trysquare.store.call_ledger import CallEnd, CallLedger, CallState, KeyedCall, NewCall

THREAD_BYTES = 256 * 1024
"""Size of a result from which its digest is made in a thread."""
MAX_STORED_RESULT = 1024 * 1024
"""Maximum bytes of a result that is stored for a repeated request key."""
PAUSES = (0.05, 0.5)
"""Seconds before the second and the third attempt."""
LONGEST_PAUSE = 30.0
"""Longest `Retry-After` that a call waits for."""
MAX_WAITING = 1024
"""Maximum number of calls that wait for user input; the ledger entries of older ones stay open until shutdown."""
_NOTE = 300
_NOTED_BYTES = 64 * 1024
"""Size of a failed result up to which its text is noted."""

SendCall: TypeAlias = Callable[..., Awaitable[UpstreamResult]]
"""`ServerPool.call`: `on_sent` is called just before the server may see the call."""

CancelTask: TypeAlias = Callable[[str, str, CallContext], Awaitable[None]]
"""`ServerPool.cancel_task`."""


class SendResult(NamedTuple):
    """The result of a call; `replayed` if it is that of an earlier call with the same request key."""

    answer: UpstreamResult
    replayed: bool = False


@dataclass(kw_only=True, slots=True, eq=False)
class LedgerEntry:
    """A call in the ledger that has not ended yet."""

    id: str
    request_key: str | None = None
    is_sent: bool = False

    def sent(self) -> None:
        """Record that the server may have seen the call from here on."""
        self.is_sent = True


class CallSender:
    """Sends calls to servers: ledger entry first, one attempt, and a retry only where it does no harm."""

    def __init__(self, call: SendCall, ledger: CallLedger, cancel: CancelTask, *, kept_characters: int = 0) -> None:
        self._call, self.ledger = call, ledger
        self._cancel = cancel
        self._kept_characters = kept_characters
        """Characters of a result's text, without secrets, that the ledger keeps."""
        self._is_open = False
        self._waiting: dict[bytes, LedgerEntry] = {}
        self._endings: set[asyncio.Future[CallState]] = set()

    async def send(
        self,
        server: ServerConfig,
        definition: ToolDefinition,
        inputs: JsonObject,
        *,
        context: CallContext,
        request_key: str | None = None,
        arguments: JsonObject | None = None,
    ) -> SendResult:
        """Send a call with validated inputs. `arguments` are the inputs with their references, for the ledger."""
        has_references = arguments is not None and arguments is not inputs
        # A resolved reference can be long.
        body = await run_in_thread(lambda: encode_inputs(inputs)) if has_references else encode_inputs(inputs)
        entry = self._resumed(server, definition, body, context, request_key) if context.checkpoints else None
        if entry is None:
            entry = self._waiting.pop(_call_key(server, definition, body, context), None) if self._waiting else None
        if entry is None:
            shown, encoded = inputs if arguments is None else arguments, None if has_references else body
            begun = await self._begin(server, definition, shown, encoded, context.principal.subject, request_key)
            if isinstance(begun, UpstreamResult):
                return SendResult(begun, replayed=True)
            entry = begun
        try:
            answer = await self._send(server, definition, body, entry, context)
        except InputRequired:
            # The call is still pending at the server, and resumes when the client sends it again.
            self._waiting[_call_key(server, definition, body, context)] = entry
            while len(self._waiting) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]
            raise
        except BaseException as error:
            # Shielded: a cancelled call is recorded as well.
            ending = asyncio.ensure_future(self._record_failure(entry, error))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            outcome = await asyncio.shield(ending)
            if isinstance(error, ToolError) and "outcome" not in error.fields:
                error.fields = {**error.fields, "outcome": outcome}
            raise
        await self._record_result(entry, answer, server, definition, inputs)
        return SendResult(answer)

    async def cancel(self, checkpoints: Mapping[str, Any], context: CallContext) -> None:
        """Cancel the tasks that servers answered the calls of a cancelled task with."""
        for key, kept in checkpoints.items():
            if key.startswith(CHECKPOINT):
                await self._cancel(kept["server"], kept["task"], context)
                end = CallEnd(state="sent_unknown", ended=time.time(), note="cancelled by the caller")
                await run_in_thread(self.ledger.open)
                await self._end(LedgerEntry(id=kept["ledger"], request_key=kept["request_key"]), end, None)

    def _resumed(
        self,
        server: ServerConfig,
        definition: ToolDefinition,
        body: bytes,
        context: CallContext,
        request_key: str | None,
    ) -> LedgerEntry | None:
        """The entry of a call that an earlier run of this task has sent, and that its server runs as a task."""
        key = UpstreamRequest.of_tool(definition.name, body).checkpoint_key(server.name)
        kept = context.checkpoints.get(key)
        return None if kept is None else LedgerEntry(id=kept["ledger"], request_key=request_key, is_sent=True)

    async def close(self) -> None:
        await run_in_thread(self.ledger.close)

    async def _send(
        self, server: ServerConfig, definition: ToolDefinition, body: bytes, entry: LedgerEntry, context: CallContext
    ) -> UpstreamResult:
        tries = 0
        while True:
            tries += 1
            try:
                return await self._call(
                    server.name, definition.name, body, context, on_sent=entry.sent,
                    checkpoint={"ledger": entry.id, "request_key": entry.request_key},
                )  # fmt: skip
            except ToolError as error:
                pause = pause_before_retry(definition, error, tries, context)
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    async def _begin(
        self,
        server: ServerConfig,
        definition: ToolDefinition,
        inputs: JsonObject,
        encoded: bytes | None,
        principal: str,
        request_key: str | None,
    ) -> LedgerEntry | UpstreamResult:
        """Record a call before it is sent, or return the stored result of its request key.

        `encoded` is the inputs as JSON, where they are encoded already.
        """
        if not self._is_open:
            await run_in_thread(self.ledger.open)
            self._is_open = True
        if request_key is not None or encoded is None:
            # With sorted keys, so that equal calls have equal digests.
            encoded = json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()
        shown = redacted_json(
            inputs, encoded.decode(), definition.input_schema, server.redact, is_marked=definition.marks_secrets
        )
        call = NewCall(principal, server.name, definition.name, shown, _digest(encoded))
        if request_key is None:
            return LedgerEntry(id=self.ledger.begin(call))
        claiming = asyncio.ensure_future(run_in_thread(lambda: self.ledger.claim(call, request_key)))
        try:
            found = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # Nothing was sent: the key must not stay claimed by a cancelled call.
            claiming.add_done_callback(self._release)
            raise
        if isinstance(found, str):
            return LedgerEntry(id=found, request_key=request_key)
        return _stored_result(found, call, request_key)

    def _release(self, claiming: asyncio.Future[str | KeyedCall]) -> None:
        if not claiming.cancelled() and claiming.exception() is None and isinstance(id := claiming.result(), str):
            self.ledger.end_claimed(id, CallEnd(state="not_sent", ended=time.time(), note="cancelled"))

    async def _record_result(
        self,
        entry: LedgerEntry,
        answer: UpstreamResult,
        server: ServerConfig,
        definition: ToolDefinition,
        inputs: JsonObject,
    ) -> None:
        body = answer.body
        digest = await run_in_thread(lambda: _digest(body)) if len(body) > THREAD_BYTES else _digest(body)
        # What a failure says is kept, since the digest alone explains nothing. Secrets of the user's own naming may be
        # anywhere in it.
        kept = max(self._kept_characters, _NOTE if answer.is_error else 0)
        note = _said(body, inputs, definition.input_schema, kept) if kept and not server.redact else None
        end = CallEnd(time.time(), "done", answer.is_error, digest, len(body), note)
        await self._end(entry, end, body if len(body) <= MAX_STORED_RESULT else None)

    async def _record_failure(self, entry: LedgerEntry, error: BaseException) -> CallState:
        """Record a failure and return its outcome."""
        named: Any = error.fields.get("outcome") if isinstance(error, ToolError) else None
        state: CallState = "sent_unknown" if entry.is_sent else "not_sent"
        if named in ("not_sent", "sent_unknown", "done"):
            state = named
        # The text of a cancellation is that of the event loop, which says nothing to a reader.
        said = "cancelled by the caller" if isinstance(error, asyncio.CancelledError) else " ".join(str(error).split())
        note = encodable((said or type(error).__name__)[:_NOTE])
        await self._end(entry, CallEnd(state=state, ended=time.time(), note=note), None)
        return state

    async def _end(self, entry: LedgerEntry, end: CallEnd, result: bytes | None) -> None:
        if entry.request_key is None:
            self.ledger.end(entry.id, end)
        else:
            await run_in_thread(lambda: self.ledger.end_claimed(entry.id, end, result))


def _said(body: bytes, inputs: JsonObject, schema: JsonObject, kept: int) -> str | None:
    """The start of what a call's result says, without secrets; None for a large result, or one without text."""
    if len(body) > _NOTED_BYTES:
        return None
    from trysquare.gateway.results.parts import split, texts_of

    texts = (json.loads(bytes(text)) for text in texts_of(split(body)))
    said = mask_tokens(redact_text(" ".join(" ".join(texts).split()), inputs, schema))
    return encodable(said[:kept]) or None


def _call_key(server: ServerConfig, definition: ToolDefinition, body: bytes, context: CallContext) -> bytes:
    identity = to_json([context.principal.subject, server.name, definition.name])
    return hashlib.sha256(identity + body).digest()


def encode_inputs(inputs: JsonObject) -> bytes:
    """Inputs as JSON, also with lone surrogates in a string. Raises for NaN and infinite numbers."""
    try:
        body = to_json(inputs)
    except PydanticSerializationError:
        body = json.dumps(inputs).encode()
    if b"NaN" in body or b"Infinity" in body:
        _require_finite(inputs)
    return body


def _require_finite(inputs: JsonObject) -> None:
    """Reject `NaN` and `Infinity`: a server cannot parse such a call, and never responds to it."""
    waiting: list[tuple[str, Any]] = list(inputs.items())
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidArguments(
                f"`{path[:200]}` is {value}, which is not a JSON number. Nothing was sent.",
                code=ErrorCode.VALIDATION_INVALID_PARAM,
                instruction="Send a finite number, or omit the argument.",
                fields={"outcome": "not_sent", "argument": path[:200]},
            )
        if isinstance(value, dict):
            waiting += [(f"{path}.{name}", part) for name, part in cast(JsonObject, value).items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{number}]", part) for number, part in enumerate(cast(list[Any], value))]


def pause_before_retry(definition: ToolDefinition, error: ToolError, tries: int, context: CallContext) -> float | None:
    """Seconds until a call is sent again, or None for no retry.

    Only a tool whose server declares it repeatable is retried, and only if the connection was lost during the call:
    never after a rejection, a timeout or a cancellation.
    """
    is_lost = error.fields.get("outcome") == "sent_unknown" and error.code != ErrorCode.TOOL_TIMEOUT
    if isinstance(error, (DeadlineExceeded, CallCancelled)) or not (is_lost and definition.is_repeatable):
        return None
    if tries > len(PAUSES):
        return None
    asked = _asked_pause(error)
    if asked is not None:
        return asked if _fits(asked, context) else None
    pause, left = PAUSES[tries - 1], context.remaining()
    return pause if left is None or left > 2 * pause else None


def pause_of_unsent(error: ToolError, tries: int, context: CallContext) -> float | None:
    """Seconds until a request that a busy server rejected unread is sent again, or None for no retry."""
    asked = _asked_pause(error) if error.fields.get("outcome") == "not_sent" else None
    return asked if asked is not None and tries <= len(PAUSES) and _fits(asked, context) else None


def _asked_pause(error: ToolError) -> float | None:
    """The `Retry-After` of a busy server."""
    seconds = error.fields.get("retry_after_seconds") if "status" in error.fields else None
    return seconds if isinstance(seconds, (int, float)) else None


def _fits(pause: float, context: CallContext) -> bool:
    left = context.remaining()
    return pause <= LONGEST_PAUSE and (left is None or pause < left)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _stored_result(found: KeyedCall, call: NewCall, key: str) -> UpstreamResult:
    """The stored result of a request key, or an error that says why there is none."""
    shown, outcome = truncate(key), "not_sent"
    if found.digest != call.digest:
        problem = f"Request key `{shown}` was already used for `{call.tool}` with other inputs."
        instruction = "Use a new request key for a new call, or repeat the first call exactly."
    elif found.state == "sending":
        problem = f"The call with request key `{shown}` is still running."
        instruction = "Wait, then send the same call with the same key to get its result."
    elif found.state == "sent_unknown":
        why = f" ({found.note})" if found.note else ""
        outcome = "sent_unknown"
        problem = f"The call with request key `{shown}` was sent, and it is unknown whether it took effect{why}."
        instruction = "Check the current state first. If the change is missing, send the call with a new key."
    elif found.result is None:
        size = found.result_bytes
        problem = f"The call with request key `{shown}` is done. Its result of {size} bytes was too large to store."
        instruction, outcome = "Do not send it again for its effect; read what you need with another call.", "done"
    else:
        return UpstreamResult(body=found.result, is_error=found.is_error)
    raise ToolError(problem, code=ErrorCode.STATE_CONFLICT, instruction=instruction, fields={"outcome": outcome})

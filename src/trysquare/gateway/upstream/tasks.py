"""Calls that a server runs as tasks: followed, answered and cancelled as the caller's own call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import msgspec

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.context import CallContext
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.gateway.models import ServerConfig, UpstreamResult
from trysquare.gateway.upstream import errors as failures
from trysquare.gateway.upstream.codec import LARGE, InvalidFrame, decode_fields
from trysquare.gateway.upstream.connection import Disconnected
from trysquare.gateway.upstream.request import (
    MAX_ROUNDS,
    ServerTask,
    UpstreamRequest,
    answer_to_wire,
    open_call_result,
    pause_of,
    questions_from_wire,
)
from trysquare.gateway.upstream.transport import DisconnectReason, TransportError
from trysquare.protocol.messages import RpcError, decode_any, read_error

Ask: TypeAlias = Callable[[str, JsonObject, CallContext], Awaitable[msgspec.Raw]]
"""Sends a request about a task over a session of its caller, started again where it ended."""
_PATIENCE: Final = 60.0
"""Seconds for which a server that runs a task may be out of reach."""
_NO_RESPONSE = (Disconnected, TransportError, TimeoutError)


@dataclass(slots=True, eq=False)
class FollowedTask:
    """The call behind a server's task. After `InputRequired` the task goes on, and `finish` follows it again."""

    task: ServerTask
    request: UpstreamRequest
    config: ServerConfig
    ask: Ask
    background: BackgroundTasks
    _context: CallContext = field(default_factory=CallContext)
    _looks: int = 0
    _asked: int = 0
    _unreachable: float = 0.0
    """Since when the server does not respond; 0 while it does."""

    async def finish(self, context: CallContext) -> UpstreamResult:
        """Wait for the end of the task, with its questions and progress relayed meanwhile.

        It is cancelled at the server when this is, unless the call goes on in another process.
        """
        self._context = context
        try:
            async with asyncio.timeout(None if await context.become_task() else self.config.timeout):
                return await self._follow(context)
        except InputRequired:
            raise
        except TimeoutError:
            await self.cancel_now(context)
            raise failures.timed_out(self.config.name, self.request.title, self.config.timeout) from None
        except BaseException:
            if not context.runs_again:
                self.cancel()
            raise

    def cancel(self) -> None:
        """Cancel it at the server, without waiting for that."""
        self.background.start(self.cancel_now(self._context))

    async def cancel_now(self, context: CallContext) -> None:
        """Cancel it at the server, as far as that can be reached."""
        try:
            async with asyncio.timeout(self.config.timeout):
                await self.ask("tasks/cancel", {"taskId": self.task.id}, context)
        except (RpcError, ToolError, *_NO_RESPONSE):
            return

    async def _follow(self, context: CallContext) -> UpstreamResult:
        reported, pause = None, self.task.pause
        while True:
            fields = await self._look(context)
            if fields is None:
                await asyncio.sleep(pause)
                continue
            status, message = _text(fields, "status"), _text(fields, "statusMessage")
            if status == "input_required":
                await self._answer(decode_any(fields.get("inputRequests", msgspec.Raw(b"null"))), context)
            elif status in ("completed", "failed", "cancelled"):
                return await self._ended(status, fields)
            elif status != "working":
                raise failures.unreadable(self.config.name, self.request.title, "a task without a known `status`")
            if message and message != reported:
                reported, self._looks = message, self._looks + 1
                await context.progress(self._looks, None, message)
            pause = pause_of(decode_any(fields.get("pollIntervalMs", msgspec.Raw(b"null"))))
            await asyncio.sleep(pause)

    async def _look(self, context: CallContext) -> Mapping[str, msgspec.Raw] | None:
        """The task as it is now; None where the server cannot be reached for the moment."""
        try:
            found = decode_fields(await self.ask("tasks/get", {"taskId": self.task.id}, context))
        except RpcError as error:
            raise failures.task_lost(self.config.name, self.request.title, error.message) from error
        except InvalidFrame as error:
            raise failures.malformed(self.config.name, self.request.title, str(error)) from None
        except (ToolError, *_NO_RESPONSE) as error:
            # The task goes on meanwhile.
            loop = asyncio.get_running_loop()
            self._unreachable = self._unreachable or loop.time()
            if loop.time() - self._unreachable > _PATIENCE:
                reason = DisconnectReason(reason=str(error) or "The server did not respond.")
                raise failures.connection_lost(self.config.name, reason) from None
            return None
        self._unreachable = 0.0
        return found

    async def _answer(self, requests: Any, context: CallContext) -> None:
        """Relay the questions of a task. Raises `InputRequired` where the client answers in a new call."""
        if not isinstance(requests, dict) or not requests:
            return
        if self._asked >= MAX_ROUNDS:
            raise failures.unreadable(self.config.name, self.request.title, f"it asked for input {MAX_ROUNDS} times")
        questions = questions_from_wire(
            cast(Mapping[str, Any], requests), self.config, self.request.title, f"{self.task.id[:8]}"
        )
        answers = await context.request(*questions.values())
        self._asked += 1
        responses = {name: answer_to_wire(question, answers[question.key]) for name, question in questions.items()}
        try:
            await self.ask("tasks/update", {"taskId": self.task.id, "inputResponses": responses}, context)
        except RpcError as error:
            raise failures.task_lost(self.config.name, self.request.title, error.message) from error
        except _NO_RESPONSE:
            # The next look shows whether it got them.
            return

    async def _ended(self, status: str, fields: Mapping[str, msgspec.Raw]) -> UpstreamResult:
        name, title = self.config.name, self.request.title
        if status == "cancelled":
            raise failures.task_lost(name, title, "the task was cancelled at the server")
        if status == "failed":
            raise failures.refused(name, title, read_error(decode_any(fields.get("error", msgspec.Raw(b"{}")))))
        result = fields.get("result", msgspec.Raw())
        try:
            is_large = len(result) > LARGE
            head, body = await run_in_thread(lambda: open_call_result(result)) if is_large else open_call_result(result)
        except InvalidFrame as error:
            raise failures.malformed(name, title, str(error)) from None
        return UpstreamResult(body=body, is_error=bool(head.is_error))


def _text(fields: Mapping[str, msgspec.Raw], name: str) -> str | None:
    value = decode_any(fields[name]) if name in fields else None
    return value if isinstance(value, str) else None

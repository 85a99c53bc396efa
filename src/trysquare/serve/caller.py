"""McpCaller: the client of one request, as a tool sees it. The one place where asking differs by protocol version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

from trysquare.core.client_requests import (
    Answer,
    Capability,
    ClientRequest,
    ModelRequest,
    Question,
    RootsRequest,
    Visit,
)
from trysquare.core.context import LogLevel
from trysquare.core.errors import ErrorCode, NobodyToAsk, ToolError
from trysquare.serve.answers import Answers
from trysquare.serve.eras import Request, connection_of, is_modern
from trysquare.wire.questions import answer_from_wire, request_to_wire
from trysquare.wire.surrogates import replaced

LOG_LEVEL: Final = "trysquare.log_level"
"""Where a connection of the handshake era keeps the level that its client set."""
_SEVERITY: Final = {
    level: rank
    for rank, level in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    )
}  # fmt: skip


class McpCaller:
    """The client that made a request, and the person behind it."""

    __slots__ = ("_answers", "request_context")

    def __init__(self, request: Request) -> None:
        self.request_context = request
        """The SDK's own view of the request, for what Trysquare has no word for."""
        self._answers: Answers | None = None

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        await self.request_context.session.report_progress(done, total, message)

    async def log(self, level: LogLevel, message: str) -> None:
        await self.relay_log(level, message, "trysquare")

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        if not self._wants(level):
            return
        params = types.LoggingMessageNotificationParams(level=level, data=replaced(data), logger=replaced(logger))
        await self.request_context.session.send_notification(
            types.LoggingMessageNotification(params=params), related_request_id=self.request_context.request_id
        )

    def can_ask(self) -> bool:
        return self.offers("elicitation")

    def offers(self, capability: Capability) -> bool:
        session = self.request_context.session
        if session.client_capabilities is None or not (is_modern(self.request_context) or session.can_send_request):
            return False
        if capability == "elicitation":
            return _asks_by_form(session.client_capabilities.elicitation)
        if capability == "elicitation.url":
            elicitation = session.client_capabilities.elicitation
            return elicitation is not None and elicitation.url is not None
        return getattr(session.client_capabilities, capability) is not None

    async def ask(self, question: Question) -> Answer:
        if not self.can_ask():
            raise NobodyToAsk(question.message)
        return (await self.request((question,)))[question.key]

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        if is_modern(self.request_context):
            return self.answers.take(requests)
        return {request.key: await self._send(request) for request in requests}

    @property
    def answers(self) -> Answers:
        """What has been answered in earlier tries of this call."""
        if self._answers is None:
            params = self.request_context.params or {}
            self._answers = Answers(params.get("requestState"), params.get("inputResponses"))
        return self._answers

    @property
    def asks_by(self) -> str:
        """How a receipt says that a human was asked."""
        return "input_required" if is_modern(self.request_context) else "elicitation"

    @property
    def waits(self) -> bool:
        """Whether this run of the call has asked for something that it did not get."""
        return self._answers is not None and bool(self._answers.open)

    def continue_with(self, used: str, fresh: str) -> None:
        self.answers.renew(used, fresh)

    async def _send(self, request: ClientRequest) -> Answer:
        typed, result_type = _typed_request(request)
        metadata = ServerMessageMetadata(related_request_id=self.request_context.request_id)
        try:
            result = await self.request_context.session.send_request(typed, result_type, metadata=metadata)
        except (MCPError, ValidationError) as error:
            told = error.message if isinstance(error, MCPError) else "its answer does not fit the protocol"
            raise ToolError(
                f"The client did not answer: {told}",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction="Ask the person in the conversation instead.",
            ) from None
        return answer_from_wire(request, result.model_dump(by_alias=True, mode="json", exclude_none=True))

    def lowest_log_level(self) -> LogLevel | None:
        if is_modern(self.request_context):
            lowest: Any = (self.request_context.meta or {}).get(types.LOG_LEVEL_META_KEY)
        else:
            lowest = connection_of(self.request_context).state.get(LOG_LEVEL, "debug")
        return lowest if lowest in _SEVERITY else None

    def _wants(self, level: LogLevel) -> bool:
        lowest = self.lowest_log_level()
        return lowest is not None and _SEVERITY[level] >= _SEVERITY[lowest]


def _asks_by_form(capability: types.ElicitationCapability | None) -> bool:
    # An empty capability means forms; a client that lists its modes may have left them out.
    return capability is not None and (capability.form is not None or capability.url is None)


def _typed_request(request: ClientRequest) -> tuple[types.ServerRequest, type[BaseModel]]:
    wire = request_to_wire(request)
    match request:
        case Question() | Visit():
            return types.ElicitRequest.model_validate(wire), types.ElicitResult
        case ModelRequest():
            return types.CreateMessageRequest.model_validate(wire), types.CreateMessageResult
        case RootsRequest():
            return types.ListRootsRequest.model_validate(wire), types.ListRootsResult

"""The caller of a tool that runs inside a FastMCP server: questions, progress and log lines through its context."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from trysquare.core.client_requests import Answer, Capability, ClientRequest, Question
from trysquare.core.context import LogLevel, SilentCaller
from trysquare.core.errors import InputRequired
from trysquare.core.types import JsonObject
from trysquare.wire.questions import answer_from_wire, request_to_wire

try:
    import mcp_types
    from fastmcp.server.context import Context
    from fastmcp.server.dependencies import get_context
    from mcp.shared.message import ServerMessageMetadata
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import TypeAdapter
except ImportError as error:
    raise ImportError("TrysquareProvider needs FastMCP 4. Install it with: pip install 'trysquare[fastmcp]'") from error

_REQUEST: TypeAdapter[mcp_types.InputRequest] = TypeAdapter(mcp_types.InputRequest)
_RESULTS: Mapping[str, type[mcp_types.Result]] = {
    "elicitation": mcp_types.ElicitResult,
    "sampling": mcp_types.CreateMessageResult,
    "roots": mcp_types.ListRootsResult,
}


class FastMcpCaller:
    """The client on the other side of FastMCP's context, in both eras."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known = _answers_so_far(context)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._context.report_progress(done, total, message)

    async def log(self, level: LogLevel, message: str) -> None:
        if self._context.request_context is not None:
            await self._context.log(message, level)

    def can_ask(self) -> bool:
        return self.offers("elicitation")

    def offers(self, capability: Capability) -> bool:
        """Whether the client said that it can do this."""
        if self._context.request_context is None:
            return False
        capabilities = self._context.session.client_capabilities
        return capabilities is not None and getattr(capabilities, capability) is not None

    async def ask(self, question: Question) -> Answer:
        if not self.can_ask():
            return await SilentCaller().ask(question)
        return (await self.request((question,)))[question.key]

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        """Put all of them to the client; in the 2026-07-28 era it answers with its next call."""
        open_ones = {wanted.key: wanted for wanted in requests if wanted.key not in self._known}
        if open_ones and is_modern(self._context):
            raise InputRequired(open_ones)
        for wanted in open_ones.values():
            self._known[wanted.key] = await self._put(wanted)
        return {wanted.key: answer_from_wire(wanted, self._known[wanted.key]) for wanted in requests}

    async def _put(self, wanted: ClientRequest) -> JsonObject:
        request = _REQUEST.validate_python(request_to_wire(wanted))
        result = await self._context.session.send_request(
            request,
            _RESULTS[wanted.needs],
            metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
        )
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def asking(self, needed: InputRequired) -> mcp_types.InputRequiredResult:
        """The answer to this call that carries the open questions, and what is known already."""
        requests = {key: _REQUEST.validate_python(request_to_wire(wanted)) for key, wanted in needed.questions.items()}
        state = json.dumps({"asked": sorted(requests), "answers": self._known})
        return mcp_types.InputRequiredResult(input_requests=requests, request_state=state)


def active_context() -> Context | None:
    """FastMCP's context of the request that is being served; None at start-up and outside a server."""
    try:
        return get_context()
    except RuntimeError:
        return None


def is_modern(context: Context) -> bool:
    """Whether the client speaks the era in which it is asked by an answer and calls again."""
    request = context.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def _answers_so_far(context: Context) -> dict[str, JsonObject]:
    """What this call's client has answered in earlier rounds.

    FastMCP seals the state, so it proves what was asked. An answer to a question that was not asked counts for nothing.
    """
    if not is_modern(context) or (state := context.request_state) is None:
        return {}
    told = cast(JsonObject, json.loads(state))
    known: dict[str, Any] = dict(told["answers"])
    for key, answer in (context.input_responses or {}).items():
        if key in told["asked"]:
            known[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    return known

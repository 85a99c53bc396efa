"""The caller of a tool that runs inside a FastMCP server: questions, progress and log lines through its context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trysquare.core.client_requests import Answer, Capability, ClientRequest, Question
from trysquare.core.context import LogLevel
from trysquare.core.errors import ErrorCode, NobodyToAsk, ToolError
from trysquare.serve.answers import Answers
from trysquare.wire.questions import answer_from_wire, request_to_wire

try:
    import mcp_types
    from fastmcp.server.context import Context
    from fastmcp.server.dependencies import get_context
    from mcp.shared.exceptions import MCPError
    from mcp.shared.message import ServerMessageMetadata
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import TypeAdapter, ValidationError
except ImportError as error:
    raise ImportError("TrysquareProvider needs FastMCP 4. Install it with: pip install 'trysquare[fastmcp]'") from error

_REQUEST: TypeAdapter[mcp_types.InputRequest] = TypeAdapter(mcp_types.InputRequest)
_RESULTS: Mapping[str, type[mcp_types.Result]] = {
    "elicitation": mcp_types.ElicitResult,
    "elicitation.url": mcp_types.ElicitResult,
    "sampling": mcp_types.CreateMessageResult,
    "roots": mcp_types.ListRootsResult,
}


class FastMcpCaller:
    """The client on the other side of FastMCP's context, in both protocol versions."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answers = _answers_so_far(context)

    @property
    def asks_by(self) -> str:
        """How a receipt says that a human was asked."""
        return "input_required" if is_modern(self._context) else "elicitation"

    @property
    def waits(self) -> bool:
        """Whether this run of the call has asked for something that it did not get."""
        return bool(self._answers.open)

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
        if capability == "elicitation.url":
            elicitation = None if capabilities is None else capabilities.elicitation
            return elicitation is not None and elicitation.url is not None
        return capabilities is not None and getattr(capabilities, capability) is not None

    async def ask(self, question: Question) -> Answer:
        if not self.can_ask():
            raise NobodyToAsk(question.message)
        return (await self.request((question,)))[question.key]

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        """Put all of them to the client; in 2026-07-28 it answers with its next call."""
        if is_modern(self._context):
            return self._answers.take(requests)
        return {wanted.key: await self._put(wanted) for wanted in requests}

    def continue_with(self, used: str, fresh: str) -> None:
        self._answers.renew(used, fresh)

    async def _put(self, wanted: ClientRequest) -> Answer:
        request = _REQUEST.validate_python(request_to_wire(wanted))
        try:
            result = await self._context.session.send_request(
                request,
                _RESULTS[wanted.needs],
                metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
            )
        except (MCPError, ValidationError) as error:
            told = error.message if isinstance(error, MCPError) else "its answer does not fit the protocol"
            raise ToolError(
                f"The client did not answer: {told}",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction="Ask the user in the conversation instead.",
            ) from None
        return answer_from_wire(wanted, result.model_dump(by_alias=True, mode="json", exclude_none=True))

    def asking(self) -> mcp_types.InputRequiredResult:
        """The answer to this call that carries the open questions, and what is known already."""
        requests = {slot: _REQUEST.validate_python(wanted) for slot, wanted in self._answers.wire().items()}
        return mcp_types.InputRequiredResult(input_requests=requests, request_state=self._answers.state())


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


def _answers_so_far(context: Context) -> Answers:
    """What this call's client has answered in earlier rounds. FastMCP seals the state, so it proves what was asked."""
    if not is_modern(context):
        return Answers(None, None)
    responses = {
        slot: answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        for slot, answer in (context.input_responses or {}).items()
    }
    return Answers(context.request_state, responses)

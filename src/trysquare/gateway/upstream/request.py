"""One call of a server, and the requests that the server sends to the client during it."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, cast, get_args

import msgspec

from trysquare.core.context import (
    Answer,
    CallContext,
    ClientRequest,
    ElicitRequest,
    LogLevel,
    RootsRequest,
    SamplingRequest,
    Visit,
)
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import cleaned_text, cleaned_value
from trysquare.gateway.models import ServerConfig, UpstreamResult
from trysquare.gateway.upstream import errors as failures
from trysquare.gateway.upstream.codec import (
    LARGE,
    InvalidFrame,
    MalformedResult,
    ResultHead,
    decode_object,
    open_result,
    read_call_result,
)
from trysquare.gateway.upstream.connection import Disconnected, Malformed, PendingRequest, ServerRequest
from trysquare.gateway.upstream.session import UpstreamSession
from trysquare.gateway.upstream.transport import DisconnectReason, TransportError
from trysquare.protocol.messages import METHOD_NOT_FOUND, RpcError, encode, explained
from trysquare.protocol.methods import CLIENT_REQUESTS, CreateMessageParams

CHECKPOINT: Final = "gateway:"
_SHORTEST_LOOK, _LONGEST_LOOK, USUAL_LOOK = 0.05, 30.0, 1.0
"""Seconds between two looks at a task of a server."""
_WEB: Final = ("https://", "http://")
_SAMPLING_FIELDS: Final = frozenset(
    {"messages", "modelPreferences", "systemPrompt", "temperature", "maxTokens", "stopSequences", "metadata"}
)
"""Members of a sampling request that are relayed; `includeContext` would refer to our own connection."""
_MAX_LOG = 16_000
_MAX_LOGGER = 80
MAX_ROUNDS = 16
"""Maximum number of input requests of a server in one call."""
_TIMED_OUT: Final = DisconnectReason(reason="Timeout.")
_MAY_ASK: Final = frozenset(name for name, method in CLIENT_REQUESTS.items() if method.may_ask)
_PAUSE_SECONDS = 0.1


class CannotAsk(Exception):
    """A request of the server that cannot be relayed; the message is for the server."""


def question_from_wire(method: str, params: JsonObject, *, server: str, key: str) -> ClientRequest:
    """A server's request as a request to our client; the message names the server."""
    match method:
        case "elicitation/create":
            return _elicitation(params, server, key)
        case "sampling/createMessage":
            return _sampling(params, key)
        case "roots/list":
            return RootsRequest(key=key)
        case _:
            raise CannotAsk(f"Method not found: {method}")


def answer_to_wire(request: ClientRequest, answer: Answer) -> JsonObject:
    """The client's answer as a result for the server."""
    match request:
        case ElicitRequest() if answer.action == "accept":
            return {"action": answer.action, "content": dict(answer.content)}
        case ElicitRequest() | Visit():
            return {"action": answer.action}
        case SamplingRequest():
            if isinstance(whole := answer.content.get("whole"), dict):
                return cast(JsonObject, whole)
            return {
                "role": "assistant",
                "content": {"type": "text", "text": str(answer.content.get("text", ""))},
                "model": str(answer.content.get("model") or "unknown"),
                "stopReason": "endTurn",
            }
        case RootsRequest():
            return {"roots": answer.content.get("roots") or []}


def log_from_wire(params: JsonObject, server: str) -> tuple[LogLevel, Any, str] | None:
    """A log message: level, cleaned and bounded data, logger with the server's name; None for an unknown level."""
    level, given = params.get("level"), params.get("logger")
    if level is None or level not in get_args(LogLevel):
        return None
    from trysquare.core.result import dump_json
    from trysquare.core.text import truncate

    data = cleaned_value(params.get("data"))
    text = data if isinstance(data, str) else dump_json(data)
    own = truncate(cleaned_text(given), _MAX_LOGGER) if isinstance(given, str) else ""
    logger = "/".join(part for part in (server, own) if part)
    return level, data if len(text) <= _MAX_LOG else truncate(text, _MAX_LOG), logger


def _elicitation(params: JsonObject, server: str, key: str) -> ElicitRequest | Visit:
    message = f"{server} asks: {params.get('message', '')}" if server else str(params.get("message", ""))
    if params.get("mode", "form") == "url":
        url, name = params.get("url"), params.get("elicitationId")
        if not isinstance(url, str) or not url.lower().startswith(_WEB):
            raise CannotAsk("`url` must be an http or https URL.")
        return Visit(message=message, url=url, id=name if isinstance(name, str) else "", key=key)
    schema = params.get("requestedSchema")
    if params.get("mode", "form") != "form" or not isinstance(schema, dict):
        raise CannotAsk("`requestedSchema` is missing, or `mode` is not supported.")
    return ElicitRequest(message=message, schema=cast(JsonObject, schema), key=key)


def _sampling(params: JsonObject, key: str) -> SamplingRequest:
    """Relay the request without what refers to our own connection."""
    if params.get("tools") or params.get("task"):
        raise CannotAsk("Sampling with tools or tasks is not supported.")
    whole = {name: part for name, part in params.items() if name in _SAMPLING_FIELDS and part is not None}
    _require_messages(whole)
    system = whole.get("systemPrompt")
    return SamplingRequest(
        prompt="\n\n".join(_texts(cast(list[Any], whole["messages"]))),
        max_tokens=cast(int, whole["maxTokens"]),
        system=system if isinstance(system, str) else None,
        whole=whole,
        key=key,
    )


def _require_messages(whole: JsonObject) -> None:
    try:
        msgspec.convert(whole, CreateMessageParams)
    except msgspec.ValidationError as error:
        raise CannotAsk(f"Invalid request: {explained(error, 'params')}.") from None


def _texts(messages: list[Any]) -> Iterator[str]:
    """The texts of the messages, for clients that support nothing else."""
    for message in messages:
        content: Any = cast(Mapping[str, Any], message).get("content")
        blocks = cast(list[Any], content if isinstance(content, list) else [content])
        yield "\n".join(cast(JsonObject, block).get("text", "") for block in blocks if isinstance(block, dict))


def questions_from_wire(
    requests: Mapping[str, Any], config: ServerConfig, tool: str, round: str
) -> dict[str, ClientRequest]:
    """The questions of a stateless server by their names. `round` tells those of one call apart."""
    server = config.attribution
    try:
        return {
            name: question_from_wire(
                str(request.get("method")), request.get("params") or {}, server=server, key=f"{server}.{round}.{name}"
            )
            for name, request in requests.items()
        }
    except (CannotAsk, AttributeError) as error:
        raise failures.unreadable(config.name, tool, f"unsupported input request: {error}") from None


class UpstreamRequest(NamedTuple):
    """A request to a server, independent of its session."""

    method: str
    about: str
    """The tool, prompt or resource; empty for none."""
    fields: bytes
    """The members of the parameters in JSON, without the braces."""

    @property
    def title(self) -> str:
        """Its name in an error."""
        return self.about or self.method

    @classmethod
    def of_tool(cls, tool: str, arguments_json: bytes) -> UpstreamRequest:
        return cls("tools/call", tool, b'"name":%s,"arguments":%s' % (encode(tool), arguments_json))

    def checkpoint_key(self, server: str) -> str:
        """The name under which the caller's task stores the server's task for this call."""
        return CHECKPOINT + hashlib.sha256(b"%s %s" % (encode([server, self.method]), self.fields)).hexdigest()


class ServerTask(NamedTuple):
    """A task that a server answered a call with."""

    id: str
    pause: float = USUAL_LOOK
    """Seconds between two looks at it."""

    @classmethod
    def read(cls, body: bytes) -> ServerTask:
        """Raises `InvalidFrame` for one without an id."""
        found = decode_object(body)
        id = found.get("taskId")
        if not isinstance(id, str) or not id:
            raise InvalidFrame("a task without `taskId`")
        return cls(id, pause_of(found.get("pollIntervalMs")))


def pause_of(milliseconds: Any) -> float:
    """Seconds until the next look at a task, as its server wishes, within limits."""
    if not isinstance(milliseconds, (int, float)):
        return USUAL_LOOK
    return min(max(milliseconds / 1000, _SHORTEST_LOOK), _LONGEST_LOOK)


class UpstreamCall:
    """One call. After `InputRequired` it stays pending, and `finish` resumes it."""

    def __init__(self, session: UpstreamSession, request: UpstreamRequest, *, timeout: float | None = None) -> None:
        self.session = session
        self.request = request
        self._timeout = session.config.timeout if timeout is None else timeout
        self.context: CallContext | None = None
        self.notes: list[str] = []
        self._resumption = b""
        self._asked = 0
        self._time_left = self._timeout
        self._pending_request: PendingRequest | None = None

    @property
    def pending(self) -> PendingRequest:
        assert self._pending_request is not None
        return self._pending_request

    @property
    def may_ask(self) -> bool:
        """Whether the server may send requests during it."""
        return self.request.method in _MAY_ASK

    @property
    def is_answered(self) -> bool:
        """Whether there is a response; an input request in it can be answered over any session."""
        return self.pending.outcome is not None

    def begin(self, context: CallContext, on_sent: Callable[[], None]) -> None:
        """Send it. Raises `TransportError` where nothing was sent."""
        self.context = context
        on_sent()
        self._send(context)

    async def finish(self, context: CallContext) -> UpstreamResult | ServerTask:
        """Wait for the result, relaying requests, progress and logs meanwhile.

        Raises `InputRequired` for a question that the client answers in a new call, and `TransportError` if the server
        never saw the call.
        """
        self.context = context
        while True:
            try:
                await self._wait(context)
            except InputRequired:
                raise
            except BaseException:
                self.cancel()
                raise
            result = await self._result()
            if result is not None:
                return result
            await self._send_inputs(context)

    def cancel(self) -> None:
        """Cancel it at the server."""
        self.session.end(self)

    def ask(self, request: ServerRequest) -> None:
        """Queue a request of the server for the client."""
        self.pending.questions.append(request)
        self.pending.wake()

    def _send(self, context: CallContext) -> None:
        about = self.request.about or None
        self._pending_request = self.session.begin(self, self.request.method, self._params(context), about)

    def _params(self, context: CallContext) -> bytes:
        meta = self.session.client_meta_for(context)
        if "traceparent" in context.meta or "opentelemetry.trace" in sys.modules:
            from trysquare.middleware.tracing import trace_meta

            if trace := trace_meta(context):
                meta = b",".join([part for part in (meta, encode(trace)[1:-1]) if part])
        if context.meta and ("progress_token" in context.meta or "progressToken" in context.meta):
            token = b'"progressToken":%d' % self.session.connection.next_id
            meta = meta + b"," + token if meta else token
        parts = [self.request.fields, self._resumption, b'"_meta":{%s}' % meta if meta else b""]
        return b"{" + b",".join([part for part in parts if part]) + b"}"

    async def _wait(self, context: CallContext) -> None:
        """Wait for the response within the time limit. Time that the user takes to answer does not count."""
        pending, timeouts, loop = self.pending, self.session.timeouts, asyncio.get_running_loop()
        while pending.outcome is None:
            began, rest = loop.time(), context.remaining()
            seconds = self._time_left if rest is None else min(rest, self._time_left)
            timeouts.schedule(pending, seconds, partial(pending.resolve, _TIMED_OUT))
            try:
                while not pending.has_event:
                    await pending.next_event()
            finally:
                timeouts.cancel(pending)
                self._time_left -= loop.time() - began
            await self._relay_events(pending, context)
            if pending.questions and pending.outcome is None:
                await self._relay_request(pending.questions[0], context)
                pending.questions.popleft()
        # Events that came with the response.
        await self._relay_events(pending, context)

    async def _relay_events(self, pending: PendingRequest, context: CallContext) -> None:
        for progress in pending.take_progress():
            await context.progress(progress.progress, progress.total, progress.message)
        while pending.logs:
            log = log_from_wire(pending.logs.popleft(), self.session.config.attribution)
            if log is not None:
                await context.relay_log(*log)

    async def _relay_request(self, request: ServerRequest, context: CallContext) -> None:
        """Relay a request of a session server to the client, and the answer back."""
        server = self.session.config.attribution
        try:
            params = decode_object(request.params)
            question = question_from_wire(request.method, params, server=server, key=f"{server}.{self._asked}")
            answers = await self._ask_client(question, context)
        except (CannotAsk, InvalidFrame, ToolError) as error:
            self.session.connection.refuse(request, METHOD_NOT_FOUND, str(error))
        else:
            if answers is not None:
                self.session.connection.answer(request, answer_to_wire(question, answers[question.key]))
        self._asked += 1

    async def _ask_client(self, question: ClientRequest, context: CallContext) -> Mapping[str, Answer] | None:
        """The client's answers; None if the call ends before."""
        asking = asyncio.ensure_future(context.request(question))
        ending = asyncio.ensure_future(self.pending.wait())
        try:
            await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()
            ending.cancel()

    async def _result(self) -> UpstreamResult | ServerTask | None:
        """The result or its task, or None if it is an input request of a stateless server."""
        config = self.session.config
        if self.pending.outcome is _TIMED_OUT:
            self.session.on_timeout(self)
            raise failures.timed_out(config.name, self.request.title, self._timeout)
        self.session.end(self)
        try:
            result = self.pending.result()
            if self.pending.flaw and not self.request.method.endswith("/list"):
                # Of a list only the invalid entries are left out.
                raise Malformed(self.pending.flaw)
            opened = open_call_result if self.request.method == "tools/call" else open_result
            is_large = len(result) > LARGE
            head, body = await run_in_thread(partial(opened, result)) if is_large else opened(result)
        except Disconnected as error:
            raise self._lost(error.disconnect) from None
        except RpcError as error:
            raise failures.refused(config.name, self.request.title, error) from error
        except InvalidFrame as error:
            raise failures.malformed(config.name, self.request.title, str(error)) from None
        if head.result_type == "input_required":
            return None
        if head.result_type == "task" and self.session.offers_tasks:
            try:
                return ServerTask.read(body)
            except InvalidFrame as error:
                raise failures.malformed(config.name, self.request.title, str(error)) from None
        return UpstreamResult(body=body, is_error=bool(head.is_error), notes=tuple(self.notes))

    def _lost(self, disconnect: DisconnectReason) -> Exception:
        if not disconnect.was_sent and not self._asked:
            return TransportError(disconnect)
        stderr_tail = self.session.connection.transport.stderr_tail()
        return failures.connection_lost(self.session.config.name, disconnect, stderr_tail=stderr_tail)

    async def _send_inputs(self, context: CallContext) -> None:
        """Send the request to a stateless server again, with the inputs that it asked for."""
        try:
            asked = decode_object(self.pending.result())
        except InvalidFrame as error:
            raise failures.malformed(self.session.config.name, self.request.title, str(error)) from None
        if self._asked >= MAX_ROUNDS:
            raise failures.unreadable(
                self.session.config.name, self.request.title, f"it asked for input {MAX_ROUNDS} times"
            )
        responses = await self._responses(asked.get("inputRequests"), context)
        parts = [b'"inputResponses":' + encode(responses)] if responses else []
        if asked.get("requestState") is not None:
            parts.append(b'"requestState":' + encode(asked["requestState"]))
        self._resumption = b",".join(parts)
        self._asked += 1
        try:
            self._send(context)
        except TransportError as error:
            raise failures.not_sent(self.session.config.name, error.disconnect) from None

    async def _responses(self, requests: Any, context: CallContext) -> JsonObject:
        if not isinstance(requests, dict) or not requests:
            # The server only asks for a retry.
            await asyncio.sleep(_PAUSE_SECONDS)
            return {}
        config, asked = self.session.config, cast(Mapping[str, Any], requests)
        questions = questions_from_wire(asked, config, self.request.title, str(self._asked))
        answers = await context.request(*questions.values())
        return {name: answer_to_wire(question, answers[question.key]) for name, question in questions.items()}


def open_call_result(result: msgspec.Raw) -> tuple[ResultHead, bytes]:
    """As `open_result`, for `tools/call`: `InvalidFrame` also for an invalid result."""
    try:
        head, body = read_call_result(result)
    except MalformedResult as error:
        raise InvalidFrame(str(error)) from None
    return ResultHead(is_error=head.isError, result_type=head.resultType), bytes(body).replace(b"\n", b" ")

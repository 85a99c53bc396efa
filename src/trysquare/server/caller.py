"""Sessions and requests of clients, and the caller that a tool sees: progress, logs, and questions to the client."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar, cast

from msgspec import Raw

from trysquare.catalog import ProfileChoice
from trysquare.core.call import guard_crash
from trysquare.core.context import (
    Answer,
    CallContext,
    Capability,
    ClientRequest,
    ElicitRequest,
    FastCall,
    LogLevel,
    Principal,
    Visit,
)
from trysquare.core.errors import DeadlineExceeded, ErrorCode, InputRequired, NobodyToAsk, ToolError
from trysquare.core.host_paths import remote_error, remote_failure, sent_text, value_without_host_paths
from trysquare.core.json import JsonObject, as_object
from trysquare.core.result import Result, dump_json
from trysquare.core.text import encodable_value
from trysquare.net.rpc import ConnectionLost
from trysquare.protocol.envelope import progress_token
from trysquare.protocol.messages import RequestId, RpcError, decode_any, encode_notification
from trysquare.protocol.methods import SEVERITY, progress_params
from trysquare.protocol.versions import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    STATELESS_VERSIONS,
    takes_forms,
    takes_urls,
)
from trysquare.server.convert import answer_from_wire, request_to_wire
from trysquare.server.options import ServeOptions

T = TypeVar("T")

_NO_META: Final[JsonObject] = {}


class BackChannel(Protocol):
    """The way to the client while its request is open: a pipe, or the response of an HTTP request."""

    async def notify(self, message: bytes, *, is_progress: bool = False) -> None:
        """Send a notification that belongs to the request."""
        ...

    async def ask(self, method: str, params: JsonObject) -> Raw:
        """Send a request to the client and wait for its result. Raises `RpcError` or `ConnectionLost`."""
        ...


class Session:
    """What the handshake of a client established, for as long as its connection or session lives."""

    def __init__(self) -> None:
        self.version: str | None = None
        """The negotiated version; None before `initialize`."""
        self.client_info: JsonObject = {}
        self.capabilities: JsonObject = {}
        self.log_level = "debug"
        self.subscribed: set[str] = set()
        """URIs of the resources whose updates the client subscribed to."""
        self.can_ask = True
        """Whether requests can be sent to the client."""
        self.is_ready = False
        """Whether the client has sent `notifications/initialized`."""


class Request:
    """One request. `session` is None in 2026-07-28, where the request describes itself in `_meta`."""

    __slots__ = (
        "channel", "headers", "id", "is_authenticated", "is_remote", "meta", "method", "params", "principal",
        "profiles", "session",
    )  # fmt: skip

    def __init__(
        self,
        request_id: RequestId,
        method: str,
        params: Any,
        *,
        session: Session | None,
        channel: BackChannel,
        principal: Principal,
        profiles: ProfileChoice,
        is_authenticated: bool = False,
        headers: Sequence[tuple[bytes, bytes]] = (),
        is_remote: bool = False,
    ) -> None:
        self.headers = headers
        """Those of the HTTP request, as ASGI has them."""
        self.id = request_id
        self.method = method
        self.params = params
        self.meta: JsonObject = params.meta or _NO_META
        self.session = session
        self.channel = channel
        self.principal = principal
        self.profiles = profiles
        self.is_authenticated = is_authenticated
        """Whether the principal is that of a token."""
        self.is_remote = is_remote
        """Whether it came over a network: the paths of this machine are left out of errors then."""

    @property
    def is_stateless(self) -> bool:
        """Whether the request is of 2026-07-28: a client that is asked something calls again with its answers."""
        return self.session is None

    @property
    def version(self) -> str:
        """The protocol version of the request."""
        if self.session is None:
            return STATELESS_VERSIONS[-1]
        return self.session.version or ""

    @property
    def capabilities(self) -> JsonObject:
        """What the client says it can do."""
        # Checked with the envelope.
        return self.meta[CAPABILITIES_KEY] if self.session is None else self.session.capabilities

    @property
    def client_info(self) -> JsonObject:
        """What the client says of itself."""
        return self.meta.get(CLIENT_INFO_KEY, _NO_META) if self.session is None else self.session.client_info

    @property
    def client_name(self) -> str | None:
        """The name of the client program, where it says so."""
        name = self.client_info.get("name")
        return name if isinstance(name, str) else None

    @property
    def log_level(self) -> str | None:
        """The least severe log messages that the client wants; None for none."""
        level = self.meta.get(LOG_LEVEL_KEY) if self.session is None else self.session.log_level
        return level if isinstance(level, str) and level in SEVERITY else None


# In 2026-07-28 a call that needs an answer ends with its questions, and the client calls again: the tool runs from
# its start. What was asked and answered before travels in `requestState`, which is sealed: bound to the method,
# the tool, the arguments, the principal and this server. So only an answer to a question that we put in
# this very call counts.
#
# The n-th question under a key gets the n-th answer under it, whatever its words are now: they may tell a time or a
# count. An answer is not used for a question of another kind or schema, nor twice in one run; where the same words
# were asked under another number, as happens to questions at the same time, they find their answer by their words. An
# exact question gets an answer to these very words only.


class ElicitationAnswers:
    """The answers of one call, and the questions that are still open, each in a slot of its own."""

    def __init__(self, state: str | None, responses: Mapping[str, Any] | None) -> None:
        stored = _read_state(state)
        self._answered: dict[str, JsonObject] = stored.get("answered", {})
        self._count: dict[str, int] = {}
        self._used: set[str] = set()
        self.open: dict[str, ClientRequest] = {}
        """What was asked in this run and has no answer."""
        asked: dict[str, JsonObject] = stored.get("asked", {})
        for slot, response in (responses or {}).items():
            # Without the sealed note that we asked, a response proves nothing and is as good as none.
            if slot in asked and isinstance(response, dict):
                self._answered[slot] = {**asked[slot], "answer": response}

    def take(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        """The answers to these requests, by their keys. Raises `InputRequired` with all that is open in this run."""
        found = {request.key: self._find(request) for request in requests}
        if any(answer is None for answer in found.values()):
            raise InputRequired(dict(self.open))
        return {key: answer for key, answer in found.items() if answer is not None}

    def renew(self, used: str, fresh: str) -> None:
        """Put a fresh ticket in place of a used one."""
        for entry in self._answered.values():
            if entry.get("ticket") == used:
                entry["ticket"] = fresh

    def state(self) -> str:
        """What the client carries to its next try: the answers so far, and what is asked now."""
        asked = {slot: _note(request) for slot, request in self.open.items()}
        return json.dumps({"asked": asked, "answered": self._answered}, separators=(",", ":"))

    def wire(self) -> JsonObject:
        """The open questions as requests of 2026-07-28, which has no ids of pages."""
        wire = {slot: request_to_wire(request) for slot, request in self.open.items()}
        for request in wire.values():
            request["params"].pop("elicitationId", None)
        return wire

    def _find(self, request: ClientRequest) -> Answer | None:
        number = self._count[request.key] = self._count.get(request.key, 0) + 1
        slot = self._answered_slot(request, number)
        if slot is None:
            self.open[self._free_slot(request.key, number)] = request
            return None
        self._used.add(slot)
        entry = self._answered[slot]
        answer = answer_from_wire(request, entry["answer"])
        ticket = entry.get("ticket")
        return answer if ticket is None else Answer(action=answer.action, content=answer.content, ticket=ticket)

    def _answered_slot(self, request: ClientRequest, number: int) -> str | None:
        note, own = _note(request), _slot(request.key, number)
        others = (slot for slot, entry in self._answered.items() if entry["key"] == request.key)
        for slot in (own, *others):
            if self._fits(slot, note, exactly=True):
                return slot
        is_exact = isinstance(request, ElicitRequest) and request.exact
        return own if not is_exact and self._fits(own, note, exactly=False) else None

    def _fits(self, slot: str, note: JsonObject, *, exactly: bool) -> bool:
        entry = self._answered.get(slot)
        if entry is None or slot in self._used:
            return False
        return entry["shape"] == note["shape"] and (not exactly or entry["words"] == note["words"])

    def _free_slot(self, key: str, number: int) -> str:
        while (slot := _slot(key, number)) in self._answered or slot in self.open:
            number += 1
        return slot


def _slot(key: str, number: int) -> str:
    """The name of a question on the wire; no two of a call have the same."""
    plain = key.replace("#", "##")
    return plain if number == 1 else f"{plain}#{number}"


def _note(request: ClientRequest) -> JsonObject:
    """What is remembered of a question: its kind and schema, and its words."""
    wire = request_to_wire(request)
    shape: JsonObject = {"method": wire["method"]}
    ticket = None
    if isinstance(request, ElicitRequest):
        shape["schema"], ticket = request.schema, request.ticket
    note: JsonObject = {"key": request.key, "shape": _fingerprint(shape), "words": _fingerprint(wire)}
    return note if ticket is None else {**note, "ticket": ticket}


def _read_state(state: str | None) -> JsonObject:
    # The boundary has verified the seal, so this is what `state` wrote.
    return cast(JsonObject, json.loads(state)) if state else {}


def _fingerprint(value: JsonObject) -> str:
    return hashlib.sha256(dump_json(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def shown_to(request: Request, failure: Result[Any]) -> Result[Any]:
    """A failure as the client may read it: a remote one gets no path of this machine."""
    return remote_failure(failure, _sent(request)) if request.is_remote else failure


def error_for(request: Request, error: ToolError) -> ToolError:
    """The same for an error that is not the result of a tool."""
    return remote_error(error, _sent(request)) if request.is_remote else error


def _sent(request: Request) -> str:
    return sent_text([getattr(request.params, name, None) for name in ("name", "uri", "arguments")])


class McpCaller:
    """The client that made a request, and its user."""

    __slots__ = ("_answers", "request_context")

    def __init__(self, request: Request) -> None:
        self.request_context = request
        """The request itself, for what the context of a call has no name for."""
        self._answers: ElicitationAnswers | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in self.request_context.headers)
        # The token is ours, and who it stands for is the principal.
        return {name: value for name, value in headers if name != "authorization"}

    @property
    def is_remote(self) -> bool:
        return self.request_context.is_remote

    def visible(self, data: Any) -> Any:
        """Log messages and questions as this caller may read them."""
        return value_without_host_paths(data, _sent(self.request_context)) if self.is_remote else data

    @property
    def client_info(self) -> Mapping[str, Any]:
        return self.request_context.client_info

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        return self.request_context.capabilities

    @property
    def protocol_version(self) -> str:
        return self.request_context.version

    @property
    def reads_progress(self) -> bool:
        return progress_token(self.request_context.meta) is not None

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        token = progress_token(self.request_context.meta)
        if token is not None:
            params = progress_params(token, done, total, self.visible(message))
            notification = encode_notification("notifications/progress", params)
            await self.request_context.channel.notify(notification, is_progress=True)

    async def log(self, level: LogLevel, message: str) -> None:
        await self.relay_log(level, message, "trysquare")

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        lowest = self.request_context.log_level
        if lowest is not None and SEVERITY[level] >= SEVERITY[lowest]:
            params = {"level": level, "data": self.visible(data), "logger": logger}
            await self.request_context.channel.notify(encode_notification("notifications/message", params))

    def lowest_log_level(self) -> LogLevel | None:
        return cast(LogLevel | None, self.request_context.log_level)

    def can_ask(self) -> bool:
        return self.offers("elicitation")

    def offers(self, capability: Capability) -> bool:
        request = self.request_context
        if request.session is not None and not request.session.can_ask:
            return False
        declared = request.capabilities
        if capability == "elicitation":
            return takes_forms(declared.get("elicitation"))
        if capability == "elicitation.url":
            return takes_urls(declared.get("elicitation"))
        return declared.get(capability) is not None

    async def ask(self, question: ElicitRequest) -> Answer:
        if not self.can_ask():
            raise NobodyToAsk(question.message)
        return (await self.request((question,)))[question.key]

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        if self.request_context.is_stateless:
            return self.answers.take(requests)
        return {request.key: await self._send(request) for request in requests}

    @property
    def answers(self) -> ElicitationAnswers:
        """What has been answered in earlier tries of this call."""
        if self._answers is None:
            params = self.request_context.params
            self._answers = ElicitationAnswers(params.request_state, params.input_responses)
        return self._answers

    @property
    def asks_by(self) -> str:
        """How a receipt says that a human was asked."""
        return "input_required" if self.request_context.is_stateless else "elicitation"

    @property
    def waits(self) -> bool:
        """Whether this run of the call has asked for something that it did not get."""
        return self._answers is not None and bool(self._answers.open)

    def continue_with(self, used: str, fresh: str) -> None:
        self.answers.renew(used, fresh)

    async def _send(self, request: ClientRequest) -> Answer:
        if isinstance(request, Visit) and not request.id:
            # Protocol 2025-11-25 demands one; 2026-07-28 has none.
            request = replace(request, id=secrets.token_urlsafe(16))
        wire = request_to_wire(request)
        try:
            result = decode_any(await self.request_context.channel.ask(wire["method"], encodable_value(wire["params"])))
        except (RpcError, ConnectionLost) as error:
            raise _not_answered(str(error)) from None
        answer = as_object(result)
        if isinstance(request, (ElicitRequest, Visit)) and answer.get("action") not in ("accept", "decline", "cancel"):
            raise _not_answered("its answer has no `action`")
        return answer_from_wire(request, answer)


def _not_answered(reason: str) -> ToolError:
    return ToolError(
        f"The client did not answer: {reason}",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction="Ask the user in the conversation instead.",
    )


def call_context(caller: McpCaller, options: ServeOptions, direct: FastCall, task_id: str | None = None) -> CallContext:
    """The context of one request, or of one run of a task. `direct` is the way to other tools."""
    request = caller.request_context
    timeout = options.call_timeout
    return CallContext(
        principal=request.principal,
        caller=caller,
        handles=options.handles,
        deadline=None if timeout is None else time.monotonic() + timeout,
        request_id=task_id or str(request.id),
        task_id=task_id,
        client=request.client_name,
        meta=request.meta,
        direct=direct,
        approvals=options.approvals,
    )


async def bounded(what: str, work: Awaitable[T], context: CallContext, *, arguments: Any = None) -> T:
    """Await the work of a prompt or resource until the context's deadline; its crash tells an incident id only."""
    try:
        async with asyncio.timeout(context.remaining()):
            return await guard_crash(what, work, arguments=arguments)
    except TimeoutError:
        raise DeadlineExceeded(f"{what} took longer than it may and was stopped.") from None

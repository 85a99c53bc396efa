"""CallContext: all that a call may see of the world around it."""

from __future__ import annotations

import functools
import getpass
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeGuard, final, runtime_checkable

from trysquare.core.client_requests import (
    Answer,
    Capability,
    ClientRequest,
    ModelRequest,
    Question,
    RequestingCaller,
    RootsRequest,
)
from trysquare.core.errors import (
    CallCancelled,
    CapabilityMissing,
    DeadlineExceeded,
    ErrorCode,
    NobodyToAsk,
    ToolError,
)
from trysquare.core.handles import Handles, MemoryHandles
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import block, cleaned_value, folded

if TYPE_CHECKING:
    from trysquare.core.consent import Approvals, ConsentProof
    from trysquare.core.result import Result

LONGEST_PROGRESS, LONGEST_LOG, LONGEST_QUESTION = 4_000, 32_000, 256 * 1024
"""Characters of what a tool tells or asks its client on the way."""
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """Who calls: the operating-system user over stdio, the token's subject over HTTP."""

    subject: str
    """What everything a caller owns is kept under: pages, approvals, sessions, request keys.

    It begins with who vouches for it, so that nobody is taken for the user of the same name somewhere else:
    `token:ada`, `oauth:ISSUER#SUB`. A plain name is a user of this operating system, which cannot hold a colon.
    """
    scopes: frozenset[str] | None = None
    """The rooms whose tools this principal may use; None means all."""

    rights: frozenset[str] | None = frozenset()
    """What this principal may do beyond using tools, such as `server:restart`; None means all."""

    def may_use(self, room: str) -> bool:
        """Whether the tools of a room exist for this principal. Those of the catalog lead only to others."""
        return self.scopes is None or room in self.scopes or room == "catalog"

    def has_right(self, right: str) -> bool:
        """Whether this principal was given a right, or needs none because the machine is theirs."""
        return self.rights is None or right in self.rights


@functools.cache
def local_principal() -> Principal:
    """The user of this operating system, as a principal."""
    try:
        return Principal(subject=getpass.getuser(), rights=None)
    except (KeyError, OSError):
        return Principal(subject="local", rights=None)


class Caller(Protocol):
    """The side of a call that belongs to whoever makes it: an MCP session, the agent loop, a terminal."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far the call is."""
        ...

    async def log(self, level: LogLevel, message: str) -> None:
        """Send a log line to the client, where it wants them."""
        ...

    def can_ask(self) -> bool:
        """Whether a person can be reached through this caller."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Put a question to the person. May raise `InputRequired` where the caller has to call again."""
        ...


@runtime_checkable
class LogRelayingCaller(Protocol):
    """What a caller may offer beyond `Caller`: log messages of others, as they are."""

    def lowest_log_level(self) -> LogLevel | None:
        """The least severe messages that the client wants; None for none."""
        ...

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        """Send a log message of whoever `logger` names to the client, where it wants it."""
        ...


class SilentCaller:
    """A caller that shows nothing and reaches nobody: the default in scripts and tests."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        return None

    async def log(self, level: LogLevel, message: str) -> None:
        return None

    def can_ask(self) -> bool:
        return False

    async def ask(self, question: Question) -> Answer:
        raise NobodyToAsk(question.message)


class CancelFlag:
    """Set once nobody waits for a call's answer. A flag made `below` another is set together with it."""

    __slots__ = ("_above", "_set")

    def __init__(self, above: CancelFlag | None = None) -> None:
        self._above = above
        self._set = False

    def below(self) -> CancelFlag:
        """A flag of its own for a call that is made for this one."""
        return CancelFlag(self)

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set or (self._above is not None and self._above.is_set())


# What contexts share unless they are given their own: a call must not pay for making them.
_NOBODY = SilentCaller()
_HANDLES = MemoryHandles()


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CallContext:
    """What a call may see: who calls, how long it may take, and the way to ask, report and stop."""

    principal: Principal = field(default_factory=local_principal)
    caller: Caller = _NOBODY
    handles: Handles = _HANDLES
    deadline: float | None = None
    """When the call must be done, on the clock of `time.monotonic`."""
    request_id: str | None = None
    client: str | None = None
    """Name of the client program, where it says so."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    cancel_flag: CancelFlag = field(default_factory=CancelFlag)
    direct: DirectCall | None = None
    """The way to other tools without the wrappers' overhead; `direct_calls(toolset)` makes one."""
    approvals: Approvals | None = None
    """Where consent is kept. Without it a tool that needs consent runs only if the client can ask."""
    consent_proof: ConsentProof | None = field(default=None, repr=False)
    """Set by a consent check for the call inside it."""

    def for_call(self, *, timeout: float | None = None) -> CallContext:
        """The context of one call: with a cancel flag of its own, and a deadline no later than this one's."""
        deadline = self.deadline
        if timeout is not None:
            own = time.monotonic() + timeout
            deadline = own if deadline is None else min(own, deadline)
        return CallContext(
            principal=self.principal,
            caller=self.caller,
            handles=self.handles,
            deadline=deadline,
            request_id=self.request_id,
            client=self.client,
            meta=self.meta,
            cancel_flag=self.cancel_flag.below(),
            direct=self.direct,
            approvals=self.approvals,
            consent_proof=self.consent_proof,
        )

    async def call_tool(self, name: str, arguments: JsonObject | None = None) -> Result[Any]:
        """Call another tool of the server directly, as a prompt does: only limits and consent stay in the way."""
        if self.direct is None:
            raise ToolError(
                f"`{name}` cannot be called from here: this context has no way to other tools.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            )
        return await self.direct(name, arguments, self)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is."""
        await self.caller.progress(done, total, None if message is None else block(message, LONGEST_PROGRESS))

    async def log(self, message: str, level: LogLevel = "info") -> None:
        """Send a log line to the client, where it wants them."""
        await self.caller.log(level, block(message, LONGEST_LOG))

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        """Send a log message of somebody else to the client, where it wants it."""
        if _is_relaying(self.caller):
            await self.caller.relay_log(level, cleaned_value(data), folded(logger))
        else:
            await self.caller.log(level, block(f"{folded(logger)}: {data}", LONGEST_LOG))

    def lowest_log_level(self) -> LogLevel | None:
        """The least severe log messages that the client wants; None for none."""
        return self.caller.lowest_log_level() if _is_relaying(self.caller) else None

    async def ask(self, message: str, schema: JsonObject, *, key: str = "answer") -> Answer:
        """Ask the user, as often as needed.

        Ask before any side effect: in 2026-07-28 the tool then runs once more from its start, and its questions are
        told apart by their `key` and, under one key, by their order. Give questions keys of their own where their order
        may vary, or where an answer must not count for another one that was asked in its place.
        """
        question = Question(message=message, schema=schema, key=key)
        _check_requests((question,))
        return await self.caller.ask(_visible(question))

    def can_ask(self) -> bool:
        """Whether a person can be reached through this client."""
        return self.caller.can_ask()

    def offers(self, capability: Capability) -> bool:
        """Whether the client can be asked for this."""
        if _is_requesting(self.caller):
            return self.caller.offers(capability)
        return capability == "elicitation" and self.caller.can_ask()

    async def request(self, *requests: ClientRequest) -> Mapping[str, Answer]:
        """Ask several things at once, each under its own key. As with `ask`, do it before any side effect."""
        _check_requests(requests)
        for wanted in requests:
            if not self.offers(wanted.needs):
                raise CapabilityMissing(wanted.needs)
        shown = tuple(_visible(wanted) if isinstance(wanted, Question) else wanted for wanted in requests)
        if _is_requesting(self.caller):
            return await self.caller.request(shown)
        return await _one_by_one(self.caller, shown)

    async def sample(self, prompt: str, *, max_tokens: int = 1000, key: str = "completion") -> str:
        """Have the client's own model answer a text. Few clients can; see `offers`."""
        answers = await self.request(ModelRequest(prompt=prompt, max_tokens=max_tokens, key=key))
        return str(answers[key].content.get("text", ""))

    async def roots(self, *, key: str = "roots") -> Sequence[str]:
        """The addresses of the folders that the client works in. Few clients tell; see `offers`."""
        answers = await self.request(RootsRequest(key=key))
        return tuple(str(root["uri"]) for root in answers[key].content.get("roots", ()))

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the answer. Synchronous tools look here, since a thread cannot be interrupted."""
        return self.cancel_flag.is_set()

    def check(self) -> None:
        """Raise if the call was cancelled or its time is up. For loops in synchronous tools."""
        if self.cancelled:
            raise CallCancelled("The call was cancelled.")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceeded("The call ran out of time.")

    def remaining(self) -> float | None:
        """Seconds until the deadline, or None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


def _check_requests(requests: Sequence[ClientRequest]) -> None:
    """Refuse what no client could be asked, in a test as on the wire."""
    if len({wanted.key for wanted in requests}) < len(requests):
        raise _author_error("Two requests have the same key.", "Give each of them its own `key`.")
    for wanted in requests:
        if isinstance(wanted, Question):
            _check_question(wanted)


def _check_question(question: Question) -> None:
    schema: Any = question.schema
    if not isinstance(schema, dict):
        kind = schema.__name__ if isinstance(schema, type) else type(schema).__name__
        raise _author_error(
            f"A question needs a JSON Schema as a dict, not `{kind}`.",
            "Pass a dict such as {'type': 'object', 'properties': {...}}; a pydantic model has `model_json_schema()`.",
        )
    try:
        json.dumps({"message": question.message, "schema": schema}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _author_error(f"A question cannot be sent as JSON: {error}.", "Use JSON values only.") from None


def _author_error(message: str, advice: str) -> ToolError:
    return ToolError(
        message,
        code=ErrorCode.VALIDATION_INVALID_REQUEST,
        instruction=f"This is a fault of the tool, for its author: {advice}",
    )


def _visible(question: Question) -> Question:
    """The question as it may be shown: whoever wrote a part of it, the person sees all that stands in it."""
    return replace(question, message=block(question.message, LONGEST_QUESTION), schema=cleaned_value(question.schema))


def _is_requesting(caller: Caller) -> TypeGuard[RequestingCaller]:
    return _is_requesting_kind(type(caller))


@functools.cache
def _is_requesting_kind(kind: type) -> bool:
    # To look at every method of a protocol takes longer than most calls may; a class has them or has not.
    return issubclass(kind, RequestingCaller)


def _is_relaying(caller: Caller) -> TypeGuard[LogRelayingCaller]:
    return _is_relaying_kind(type(caller))


@functools.cache
def _is_relaying_kind(kind: type) -> bool:
    return issubclass(kind, LogRelayingCaller)


async def _one_by_one(caller: Caller, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
    """What a caller without `request` can do: questions to the person, one after the other."""
    return {wanted.key: await caller.ask(wanted) for wanted in requests if isinstance(wanted, Question)}


Call: TypeAlias = "Callable[[JsonObject, CallContext], Awaitable[Result[Any]]]"
"""The one shape of a tool's call; middleware takes one and gives one."""
DirectCall: TypeAlias = "Callable[[str, JsonObject | None, CallContext], Awaitable[Result[Any]]]"
"""A call by name in the context of another call."""

"""Context of one call: principal, caller, client requests (elicitation, sampling, roots), progress, cancellation."""

from __future__ import annotations

import functools
import getpass
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    final,
    overload,
    runtime_checkable,
)

from trysquare.core.cache import Handles, MemoryHandles
from trysquare.core.errors import (
    CallCancelled,
    CapabilityMissing,
    DeadlineExceeded,
    DeclarationError,
    ErrorCode,
    NobodyToAsk,
    QuestionDeclined,
    ToolError,
)
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.metadata import APP_MIME_TYPE, UI_EXTENSION
from trysquare.core.untrusted import block, cleaned_value, folded

if TYPE_CHECKING:
    from trysquare.core.approvals import Approvals, ConsentProof
    from trysquare.core.content import ResourceContents
    from trysquare.core.prompts import PromptMessage
    from trysquare.core.result import Result


Capability: TypeAlias = Literal["elicitation", "elicitation.url", "sampling", "roots"]
"""What a client can be asked for, in the protocol's own words; `elicitation` alone means with a form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ElicitRequest:
    """A question to the user: a text and the JSON Schema of a flat answer."""

    needs: ClassVar[Capability] = "elicitation"
    message: str
    schema: JsonObject
    key: str = "answer"
    exact: bool = False
    """Whether an answer counts for exactly this text, also where the tool runs again from its start."""
    ticket: str | None = None
    """Returned with the answer, so that it can be used once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """A page for the user to open in a browser, for input that must not pass through the client."""

    needs: ClassVar[Capability] = "elicitation.url"
    message: str
    url: str
    id: str = ""
    """The requester's id of the page, in protocol versions that have one."""
    key: str = "visit"


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingRequest:
    """A prompt for the client's own model. Deprecated in the protocol: never depend on it."""

    needs: ClassVar[Capability] = "sampling"
    prompt: str
    max_tokens: int = 1000
    system: str | None = None
    whole: JsonObject | None = None
    """The protocol's own request, where it has more than the text: roles, pictures, preferences."""
    key: str = "completion"


@dataclass(frozen=True, kw_only=True, slots=True)
class RootsRequest:
    """The directories that the client works in. Deprecated in the protocol: prefer an argument."""

    needs: ClassVar[Capability] = "roots"
    key: str = "roots"


ClientRequest: TypeAlias = ElicitRequest | Visit | SamplingRequest | RootsRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The response to a client request: what the user did with a question, and what they filled in.

    A model's answer has `{"text": …, "model": …}` as its content, and for a whole request as `whole` what the client
    sent; the directories have `{"roots": [{"uri": …}, …]}`.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ticket: str | None = field(default=None, compare=False)
    """The ticket of the question as it was asked, where that was in an earlier try of the call."""


@runtime_checkable
class RequestingCaller(Protocol):
    """A caller with every kind of request, and several at once."""

    def offers(self, capability: Capability) -> bool: ...

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        """Send all of them to the client, each under its key. May raise `InputRequired`, as `ask` may."""
        ...


LONGEST_PROGRESS, LONGEST_LOG, LONGEST_QUESTION = 4_000, 32_000, 256 * 1024
"""Characters of a progress message, a log line and a question."""
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical"]
TRACE = 5
"""A level of Python's logging below DEBUG."""
logging.addLevelName(TRACE, "TRACE")


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """Who calls: the operating-system user over stdio, the token's subject over HTTP."""

    subject: str
    """The owner of pages, approvals, sessions and request keys.

    It begins with its authority, so that equal names of two authorities differ: `token:ada`, `oauth:ISSUER#SUB`. A
    plain name is a user of this operating system, which cannot contain a colon.
    """
    scopes: frozenset[str] | None = None
    """The toolsets whose tools this principal may use; None means all."""

    rights: frozenset[str] | None = frozenset()
    """What this principal may do beyond using tools, such as `server:restart`; None means all."""

    def may_use(self, toolset: str) -> bool:
        """Whether the tools of a toolset exist for this principal. Those of the catalog lead only to others."""
        return self.scopes is None or toolset in self.scopes or toolset == "catalog"

    def has_right(self, right: str) -> bool:
        """Whether this principal has a right; the local user has all."""
        return self.rights is None or right in self.rights


@functools.cache
def local_principal() -> Principal:
    """The user of this operating system, as a principal."""
    try:
        return Principal(subject=getpass.getuser(), rights=None)
    except (KeyError, OSError):
        return Principal(subject="local", rights=None)


class Caller(Protocol):
    """The way back to the maker of a call: an MCP session, the agent loop, a terminal."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None: ...

    async def log(self, level: LogLevel, message: str) -> None: ...

    def can_ask(self) -> bool: ...

    async def ask(self, question: ElicitRequest) -> Answer:
        """Ask the user. May raise `InputRequired` where the caller has to call again."""
        ...


@runtime_checkable
class LogRelayingCaller(Protocol):
    """A caller that relays log messages of other servers."""

    def lowest_log_level(self) -> LogLevel | None:
        """The least severe messages that the client subscribed to; None for none."""
        ...

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        """Send a log message of `logger` to the client, if it subscribed to it."""
        ...


class SilentCaller:
    """A caller without a client: the default in scripts and tests."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        return None

    async def log(self, level: LogLevel, message: str) -> None:
        return None

    def can_ask(self) -> bool:
        return False

    async def ask(self, question: ElicitRequest) -> Answer:
        raise NobodyToAsk(question.message)


class CancelFlag:
    """Set once a call is cancelled. A flag made `below` another is set together with it."""

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
_NONE: Mapping[str, Any] = MappingProxyType({})
_MOST_TRIES = 3
"""How often a user may answer a question with what does not fit."""
T = TypeVar("T")


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
    task_id: str | None = None
    """Of the task that this call is or may become, in each of its runs; None in the calls of other tools inside it."""
    client: str | None = None
    """Name of the client program, where it says so."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    cancel_flag: CancelFlag = field(default_factory=CancelFlag)
    direct: FastCall | None = None
    """Calls other tools without the full middleware; `direct_calls(toolset)` makes one."""
    approvals: Approvals | None = None
    """Where consent is stored. Without it a tool that needs consent runs only if the client can ask."""
    consent_proof: ConsentProof | None = field(default=None, repr=False)
    """Set by a consent check for the call inside it."""
    job: str | None = None
    """The job of the agent that makes the call."""

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
            task_id=self.task_id,
            client=self.client,
            meta=self.meta,
            cancel_flag=self.cancel_flag.below(),
            direct=self.direct,
            approvals=self.approvals,
            consent_proof=self.consent_proof,
            job=self.job,
        )

    async def call_tool(self, name: str, arguments: JsonObject | None = None) -> Result[Any]:
        """Call another tool of the server directly, as a prompt does: with pagination and consent only."""
        if self.direct is None:
            raise ToolError(
                f"`{name}` cannot be called from here: this context has no `direct` calls.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            )
        return await self.direct(name, arguments, replace(self, task_id=None))

    async def read_resource(self, uri: str) -> Sequence[ResourceContents]:
        """Read a resource of the server, as a client does."""
        read = getattr(self.direct, "read_resource", None)
        if read is None:
            raise ToolError(
                f"`{uri}` cannot be read from here: this context has no `direct` calls.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            )
        return await read(uri, self)

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Sequence[PromptMessage]:
        """Render a prompt of the server, as a client does."""
        render = getattr(self.direct, "get_prompt", None)
        if render is None:
            raise ToolError(
                f"`{name}` cannot be rendered from here: this context has no `direct` calls.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            )
        return await render(name, arguments or {}, self)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request, by lower-case names, without `authorization`; none over stdio.

        Who calls is `principal`. Headers are what the client says: do not take them for proof.
        """
        return getattr(self.caller, "headers", _NONE)

    @property
    def is_remote(self) -> bool:
        """Whether the caller may be on another machine, as over HTTP: then no path of this one belongs in an answer."""
        return getattr(self.caller, "is_remote", False)

    @property
    def client_info(self) -> Mapping[str, Any]:
        """What the client says of itself: `name`, `version`."""
        return getattr(self.caller, "client_info", _NONE)

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the client says it can do, in the protocol's words; `offers` answers for one of them."""
        return getattr(self.caller, "client_capabilities", _NONE)

    @property
    def shows_apps(self) -> bool:
        """Whether the client shows the pages of tools (MCP Apps). What a tool returns is text for those that do not."""
        extensions = as_object(self.client_capabilities.get("extensions"))
        return APP_MIME_TYPE in as_list(as_object(extensions.get(UI_EXTENSION)).get("mimeTypes"))

    @property
    def protocol_version(self) -> str | None:
        """The protocol version of the request; None where the call is not one of MCP."""
        return getattr(self.caller, "protocol_version", None)

    def keep(self, value: Any, *, ttl: float = 3600.0) -> str:
        """Keep a JSON value for later calls of the same principal, and return its handle.

        It depends on no session: give the handle to the model as part of the result, and take it as an argument.
        """
        return self.handles.put(value, principal=self.principal.subject, ttl=ttl)

    def kept(self, handle: str) -> Any:
        """The value behind a handle; `NotFound` if it expired or belongs to another principal."""
        return self.handles.get(handle, principal=self.principal.subject)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report the progress of the call to the client."""
        await self.caller.progress(done, total, None if message is None else block(message, LONGEST_PROGRESS))

    async def become_task(self) -> bool:
        """Go on as a task: the client gets the task now, and the result when it asks for it.

        Does nothing, and returns False, where the client has no tasks or the tool was declared without `task=…`.
        Before, questions are asked in the call itself; afterwards the client finds them in the task.
        """
        become = getattr(self.caller, "become_task", None)
        return False if become is None else await become()

    @property
    def is_task(self) -> bool:
        """Whether the client has a task for this call by now, and no request waits for its result."""
        return getattr(self.caller, "is_task", False)

    @property
    def checkpoints(self) -> Mapping[str, Any]:
        """What earlier runs of this task stored with `checkpoint`; nothing in its first run."""
        return getattr(self.caller, "checkpoints", _NONE)

    async def checkpoint(self, key: str, value: Any) -> bool:
        """Store a JSON value that a later run of this task finds in `checkpoints`, if its server dies before the end.

        From then on the function may run again. Does nothing, and returns False, where the call is not a task, or the
        tool was declared without `task=TaskOptions(resumes=True)`.
        """
        save = getattr(self.caller, "checkpoint", None)
        return False if save is None else await save(key, value)

    @property
    def runs_again(self) -> bool:
        """Whether this run ends with its server, and the task goes on in another one from its checkpoints."""
        return getattr(self.caller, "runs_again", False)

    @property
    def reads_progress(self) -> bool:
        """Whether anybody reads the progress of this call."""
        return bool(getattr(self.caller, "reads_progress", True))

    async def log(self, message: str, level: LogLevel = "info") -> None:
        """Send a log line to the client, if it subscribed to them."""
        await self.caller.log(level, block(message, LONGEST_LOG))

    async def debug(self, message: str) -> None:
        """Send a log line of the level `debug` to the client."""
        await self.log(message, "debug")

    async def info(self, message: str) -> None:
        """Send a log line of the level `info` to the client."""
        await self.log(message, "info")

    async def warning(self, message: str) -> None:
        """Send a log line of the level `warning` to the client."""
        await self.log(message, "warning")

    async def error(self, message: str) -> None:
        """Send a log line of the level `error` to the client."""
        await self.log(message, "error")

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        """Relay a log message of another server to the client, if it subscribed to it."""
        if _is_relaying(self.caller):
            await self.caller.relay_log(level, cleaned_value(data), folded(logger))
        else:
            await self.caller.log(level, block(f"{folded(logger)}: {data}", LONGEST_LOG))

    def lowest_log_level(self) -> LogLevel | None:
        """The least severe log messages that the client subscribed to; None for none."""
        return self.caller.lowest_log_level() if _is_relaying(self.caller) else None

    @overload
    async def ask(self, message: str, wanted: type[T], *, key: str = ...) -> T: ...

    @overload
    async def ask(self, message: str, wanted: JsonObject, *, key: str = ...) -> Answer: ...

    @overload
    async def ask(self, message: str, wanted: Sequence[str], *, key: str = ...) -> str: ...

    @overload
    async def ask(self, message: str, wanted: None = None, *, key: str = ...) -> None: ...

    @overload
    async def ask(self, message: str, wanted: object, *, key: str = ...) -> Any: ...

    async def ask(self, message: str, wanted: Any = None, *, key: str = "answer") -> Any:
        """Ask the user, as often as needed, and return the answer as a value of the type that is wanted.

        That is a pydantic model, a dataclass or a TypedDict with plain fields; one of `str`, `int`, `float`, `bool`, a
        date, `Literal[...]` or an Enum; a list of texts to choose from; or None where the user only agrees. If the user
        declines or closes the question, `QuestionDeclined` is raised. A JSON Schema returns the `Answer` itself,
        whatever the user did. What a client cannot show as a flat form is refused at once.

        Ask before any side effect: in 2026-07-28 the tool then runs again from its start, and its questions are
        identified by their `key` and, under one key, by their order. Give questions keys of their own where their order
        may vary, or where an answer must not count for another one that was asked in its place.
        """
        if isinstance(wanted, dict):
            return await self._ask(message, _flat(cast(JsonObject, wanted)), key)
        # Imported here, since most calls ask nothing.
        from trysquare.core import forms

        if wanted is None:
            _accepted(await self._ask(message, {"type": "object", "properties": {}}, key), message)
            return None
        try:
            form = forms.form_of(wanted)
        except DeclarationError as error:
            raise _author_error(error.message, "Ask for something else.") from None
        text = message
        for _ in range(_MOST_TRIES):
            answer = _accepted(await self._ask(text, form.schema, key), message)
            try:
                return form.read(answer.content)
            except forms.WrongAnswer as error:
                text = f"{message}\n\n{error}"
        raise ToolError(
            f"The user's answer does not fit the question: {message}",
            instruction="Ask the user in the conversation what they want, and call again.",
        )

    async def _ask(self, message: str, schema: JsonObject, key: str) -> Answer:
        question = ElicitRequest(message=message, schema=schema, key=key)
        _check_requests((question,))
        return await self.caller.ask(_visible(question))

    async def visit(self, message: str, url: str, *, key: str = "visit") -> None:
        """Ask the user to open a page in their browser, for what must not pass through the client, such as a login.

        It returns once they agreed to open it: the tool has to find out whether they are done there. If they decline,
        `QuestionDeclined` is raised. `offers("elicitation.url")` says whether the client can. Call it before any side
        effect, as `ask`.
        """
        if not _is_page(url):
            raise _author_error(
                f"A page to open needs an `https:` address, or an `http:` one of this machine, not `{url[:200]}`.",
                "Pass a whole address without a user name or password.",
            )
        answers = await self.request(Visit(message=block(message, LONGEST_QUESTION), url=url, key=key))
        _accepted(answers[key], message)

    def can_ask(self) -> bool:
        """Whether the user can be asked through this client."""
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
        shown = tuple(_visible(wanted) if isinstance(wanted, ElicitRequest) else wanted for wanted in requests)
        if _is_requesting(self.caller):
            return await self.caller.request(shown)
        return {one.key: await self.caller.ask(one) for one in shown if isinstance(one, ElicitRequest)}

    async def sample(
        self, prompt: str, *, system: str | None = None, max_tokens: int = 1000, key: str = "completion"
    ) -> str:
        """Have the client's own model answer a prompt. Few clients can; see `offers`."""
        answers = await self.request(SamplingRequest(prompt=prompt, system=system, max_tokens=max_tokens, key=key))
        return str(answers[key].content.get("text", ""))

    async def roots(self, *, key: str = "roots") -> Sequence[str]:
        """The URIs of the directories that the client works in. Few clients can; see `offers`."""
        answers = await self.request(RootsRequest(key=key))
        return tuple(str(root["uri"]) for root in answers[key].content.get("roots", ()))

    @property
    def cancelled(self) -> bool:
        """True once the call is cancelled. Synchronous tools poll it, since a thread cannot be interrupted."""
        return self.cancel_flag.is_set()

    def check(self) -> None:
        """Raise if the call was cancelled or its time is up. For loops in synchronous tools."""
        if self.cancelled:
            raise CallCancelled("The call was cancelled.")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceeded("Timeout: the call ran out of time.")

    def remaining(self) -> float | None:
        """Seconds until the deadline, or None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


def _accepted(answer: Answer, question: str) -> Answer:
    if answer.action != "accept":
        raise QuestionDeclined(question, answer.action)
    return answer


def _flat(schema: JsonObject) -> JsonObject:
    from trysquare.core.forms import require_flat

    try:
        require_flat(schema)
    except DeclarationError as error:
        raise _author_error(error.message, "Change the schema of the question.") from None
    return schema


def _check_requests(requests: Sequence[ClientRequest]) -> None:
    """Refuse requests that cannot be sent, in a test as on the wire."""
    if len({wanted.key for wanted in requests}) < len(requests):
        raise _author_error("Two requests have the same key.", "Give each of them its own `key`.")
    for wanted in requests:
        if isinstance(wanted, ElicitRequest):
            _check_question(wanted)


def _check_question(question: ElicitRequest) -> None:
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


def _is_page(url: str) -> bool:
    # Imported here, since most calls open none.
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if not host or "@" in parts.netloc or not url.isprintable() or " " in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in ("localhost", "127.0.0.1", "::1"))


def _visible(question: ElicitRequest) -> ElicitRequest:
    """The question without hidden characters."""
    return replace(question, message=block(question.message, LONGEST_QUESTION), schema=cleaned_value(question.schema))


# Cached by class: checking every method of a protocol takes longer than most calls may.
_implements = functools.cache(issubclass)


def _is_requesting(caller: Caller) -> TypeGuard[RequestingCaller]:
    return _implements(type(caller), RequestingCaller)


def _is_relaying(caller: Caller) -> TypeGuard[LogRelayingCaller]:
    return _implements(type(caller), LogRelayingCaller)


Call: TypeAlias = "Callable[[JsonObject, CallContext], Awaitable[Result[Any]]]"
"""A tool's call; middleware replaces one by another."""
FastCall: TypeAlias = "Callable[[str, JsonObject | None, CallContext], Awaitable[Result[Any]]]"
"""A call by name in the context of another call."""

"""The Model protocol: messages, requests, responses, options, transcripts."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

from trysquare.core.errors import ErrorCode, ToolError, require_extra
from trysquare.core.json import JsonObject, as_list, as_object, one_line_json
from trysquare.core.text import closest_names
from trysquare.net.http import HttpRefused, JsonClient

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
StopReason: TypeAlias = Literal["calls", "text", "length", "refused"]
ConstrainedBy: TypeAlias = Literal["grammar", "schema", "native", "free"]
"""What constrained a response: a grammar, a JSON schema, the server's own tool calling, or nothing."""
Hold: TypeAlias = Literal["auto", "grammar", "guided", "native", "schema", "free"]
"""Setting `models.hold`: how a server's responses are constrained; `auto` probes what it supports."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRequest:
    """A tool call that a model wrote."""

    id: str
    """Unique in its conversation; generated where the server sends none."""
    name: str
    arguments: JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    text: str = ""
    calls: tuple[CallRequest, ...] = ()
    """Calls of an assistant's turn."""
    answers: str | None = None
    """Id of the call whose result a tool's turn carries."""
    failed: bool = False
    """Whether a tool's turn carries a failure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Token counts and cost of a response."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0
    """Completion tokens that the grammar forced, so that they were not sampled."""
    cost: float | None = None
    """In the currency of the configured prices; None without prices."""

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            forced_tokens=self.forced_tokens + other.forced_tokens,
            cost=sum(known) if known else None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """A tool as a model sees it in one request."""

    name: str
    description: str
    schema: JsonObject
    """Exact closed schema of its arguments: a union of one object per action where the tool has actions."""
    flat: JsonObject
    """The same as one flat object, for servers that reject unions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Sampling parameters; `top_k=0` is no limit."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None


class Segment(Protocol):
    """The next piece of a response: forced text, or a choice for the model.

    `forced` is the only text that may come next, None where there is a choice; `lark` the grammar of that choice, for
    llguidance; `choices` the alternatives where they are few and known, such as tool names. `most_tokens` limits the
    piece, and the walk completes what is cut there.
    """

    @property
    def forced(self) -> str | None: ...
    @property
    def lark(self) -> str: ...
    @property
    def choices(self) -> tuple[str, ...]: ...
    @property
    def most_tokens(self) -> int | None: ...


class Walk(Protocol):
    """One response on its way through the grammar, piece by piece."""

    def next(self, *, tokens_left: int) -> Segment | None:
        """The next piece, sized to the tokens left; None once only the end of text may come."""

    def take(self, text: str) -> None:
        """Accept the text of a piece, with the first bytes of what follows where one token has both.

        A `ToolError` with the code GRAMMAR_REFUSED where it does not fit.
        """


class Constraint(Protocol):
    """What a response is constrained to, in every dialect; `tokens` limits its length. `walk` starts a new walk."""

    def lark(self, *, tokens: int | None = None) -> str: ...
    def gbnf(self, *, tokens: int | None = None) -> str: ...
    def json_schema(self) -> JsonObject: ...
    def walk(self) -> Walk: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """One request to a model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    constraint: Constraint | None = None
    must_call: bool = False
    """Whether the response must be a call, not plain text."""
    parallel: bool = False
    """Whether one response may have several calls."""
    max_tokens: int = 1024
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelResponse:
    """A model's response."""

    text: str
    """All the text, also where it was parsed as calls."""
    calls: tuple[CallRequest, ...] = ()
    """Calls that the backend returned; calls inside plain text are parsed by the loop."""
    stop: StopReason = "text"
    constrained_by: ConstrainedBy = "free"
    usage: Usage = field(default_factory=Usage)
    choice: Mapping[str, float] = field(default_factory=dict[str, float])
    """Probability of each tool at the choice of the first one, where the backend reports it."""


class Model(Protocol):
    """A model backend; whoever opens it closes it."""

    @property
    def name(self) -> str: ...
    @property
    def context_tokens(self) -> int: ...
    async def answer(self, request: ModelRequest) -> ModelResponse:
        """Answer a request. Failures are `ToolError`s with a code of the family MODEL."""
        ...

    def count(self, text: str) -> int:
        """Number of tokens of a text, exact or estimated."""
        ...


def token_count(usage: JsonObject, key: str) -> int:
    """A count of a server's usage report; 0 where it is missing."""
    found = usage.get(key)
    return found if isinstance(found, int) else 0


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The closest known name as a suggestion to append to an error; empty without one."""
    near = closest_names(name, known)
    return f" Did you mean `{near[0]}`?" if near else ""


def is_about_length(refused: HttpRefused) -> bool:
    """Whether a server rejected a conversation as too long, by the words that servers use for it."""
    text = refused.message.lower()
    words = ("context length", "context_length", "context size", "too long", "too many tokens")
    return refused.status in (400, 413) and any(word in text for word in words)


def read_refusal(refused: HttpRefused, name: str, *, key_variable: str) -> ToolError:
    """An HTTP error of the model's server as a `ToolError`."""
    if is_about_length(refused):
        return ToolError(
            f"The conversation is too long for {name}: {refused.message}", code=ErrorCode.MODEL_CONTEXT_FULL,
            instruction="Compact the conversation, or choose a model with a longer context.",
        )  # fmt: skip
    if refused.status in (401, 403):
        return ToolError(
            f"{name} rejected the API key: {refused.message}", code=ErrorCode.MODEL_REFUSED,
            instruction=f"Check the key. Set the environment variable {key_variable} to a valid key.",
        )  # fmt: skip
    if refused.status == 404:
        return ToolError(
            f"Model {name} not found on this server: {refused.message}", code=ErrorCode.MODEL_REFUSED,
            instruction="Check the model's name and the URL, which ends in /v1 for most servers.",
        )  # fmt: skip
    return ToolError(f"{name} rejected the request: {refused.message}", code=ErrorCode.MODEL_REFUSED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """Prices per million tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelOptions:
    """Options of a model besides its name."""

    key_variable: str | None = None
    """Environment variable of the API key; each kind of server has its own default."""
    timeout: float = 120.0
    """Seconds per request."""
    retries: int = 4
    """Retries where the server is busy or disconnected."""
    context_tokens: int | None = None
    """Context length; by default that of the model."""
    threads: int | None = None
    """Threads of a local model."""
    fast_forward: bool = True
    """Whether a local model gets forced tokens in one batch."""
    hold: Hold = "auto"
    prices: Prices | None = None

    def usage(self, prompt_tokens: int, completion_tokens: int, forced_tokens: int = 0) -> Usage:
        """The token counts with their cost, where prices are known."""
        usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, forced_tokens=forced_tokens)
        if self.prices is None:
            return usage
        cost = prompt_tokens * self.prices.prompt + completion_tokens * self.prices.completion
        return replace(usage, cost=cost / 1_000_000)

    @asynccontextmanager
    async def client(self, url: str, headers: Mapping[str, str]) -> AsyncGenerator[JsonClient]:
        """The JSON client of a model's server; nothing is sent before the first request."""
        service, unavailable = "The model's server", ErrorCode.MODEL_UNAVAILABLE
        require_extra("models", "httpx2", feature="A model behind an HTTP API", code=unavailable)
        client = JsonClient(
            url, headers, service=service, unavailable=unavailable, timeout=self.timeout, retries=self.retries
        )
        try:
            yield client
        finally:
            await client.close()


def model_options(
    *,
    prompt_price: float | None = None,
    completion_price: float | None = None,
    answer_tokens: int | None = None,
    **options: Any,
) -> ModelOptions:
    """Options from the settings `models.*`, where the prices are flat; `answer_tokens` belongs to requests."""
    priced = prompt_price is not None or completion_price is not None
    prices = Prices(prompt=prompt_price or 0.0, completion=completion_price or 0.0) if priced else None
    return ModelOptions(prices=prices, **options)


class Turn(TypedDict):
    """One turn of a chat template."""

    role: str
    content: str


def read_constrained_calls(text: str, messages: Sequence[Message]) -> tuple[CallRequest, ...]:
    """The calls of a complete response; none where it was cut, so that the loop can report it."""
    try:
        found: Any = json.loads(text)
    except ValueError:
        return ()
    if isinstance(found, dict):
        # Servers that require an object at the top level get the calls in one.
        found = as_object(found).get("calls", as_object(found))
    calls: list[CallRequest] = []
    ids = new_ids(messages)
    for piece in map(as_object, as_list(found) if isinstance(found, list) else [found]):
        name, arguments = piece.get("name"), piece.get("args")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return ()
        calls.append(CallRequest(id=next(ids), name=name, arguments=as_object(arguments)))
    return tuple(calls)


def new_ids(messages: Iterable[Message]) -> Iterator[str]:
    """Ids that no call of the conversation has, the same each time for the same conversation."""
    taken = {call.id for message in messages for call in message.calls}
    return (made for number in count(len(taken) + 1) if (made := f"call_{number}") not in taken)


def holds_calls(message: Message) -> bool:
    """Whether the text of an assistant's turn already has its calls, as in a constrained response."""
    return bool(message.calls) and all(json.dumps(call.name) in message.text for call in message.calls)


def plain_turns(messages: Sequence[Message]) -> list[Turn]:
    """The conversation with calls and results as text; consecutive turns of one role are merged."""
    names = {call.id: call.name for message in messages for call in message.calls}
    turns: list[Turn] = []
    for message in messages:
        turn = _turn(message, names)
        if turns and turns[-1]["role"] == turn["role"]:
            # Templates of many models require alternating user and assistant turns.
            turns[-1]["content"] += "\n\n" + turn["content"]
        else:
            turns.append(turn)
    return turns


def _turn(message: Message, names: Mapping[str, str]) -> Turn:
    if message.role == "tool":
        name = names.get(message.answers or "", "the tool")
        return Turn(role="user", content=f"{'Failure' if message.failed else 'Result'} of {name}:\n{message.text}")
    if not message.calls or holds_calls(message):
        return Turn(role=message.role, content=message.text)
    # As the grammar writes calls: one object, or an array of several.
    written = [{"name": call.name, "args": call.arguments} for call in message.calls]
    text = one_line_json(written[0] if len(written) == 1 else written)
    return Turn(role=message.role, content=f"{message.text}\n{text}" if message.text else text)

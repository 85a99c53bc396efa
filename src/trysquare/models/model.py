"""Model: a backend that answers a dialogue, and what it may be held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from trysquare.core.types import JsonObject
from trysquare.models.messages import CallRequest, Message, Usage

StopReason: TypeAlias = Literal["calls", "text", "length", "refused"]
HowHeld: TypeAlias = Literal["grammar", "schema", "native", "free"]
"""How an answer was held to the calls: by a grammar, by a JSON schema, by the server's own tool calling, or not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolOffer:
    """A tool as a model sees it in one request."""

    name: str
    description: str
    schema: JsonObject
    """The exact closed schema of its arguments: a union of one object an action where the tool has actions."""
    flat: JsonObject
    """The same as one flat object, for servers that refuse unions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How the next token is chosen."""

    temperature: float = 0.0
    top_k: int = 0
    """0 means no limit."""
    top_p: float = 1.0
    seed: int | None = None


class Segment(Protocol):
    """The next piece of an answer: text that is forced, or a piece that the model has to choose."""

    @property
    def forced(self) -> str | None:
        """The text that can only come next; None where there is a choice."""
        ...

    @property
    def lark(self) -> str:
        """What may be chosen, as a Lark grammar for llguidance; only where nothing is forced."""
        ...

    @property
    def choices(self) -> tuple[str, ...]:
        """The alternatives where they are few and known, such as the names of tools; else empty."""
        ...

    @property
    def most_tokens(self) -> int | None:
        """How many tokens the piece may have; what is cut there is mended by the walk. None for no bound."""
        ...


class Walk(Protocol):
    """One answer on its way through the grammar, piece by piece."""

    def next(self, *, tokens_left: int) -> Segment | None:
        """The next piece, made to fit into the tokens that are left; None once only the end of text may come."""
        ...

    def take(self, text: str) -> None:
        """What came for the piece, with the first bytes of what follows where a token held both.

        A `ToolError` with the code GRAMMAR_REFUSED where it does not fit.
        """
        ...


class Constraint(Protocol):
    """What an answer is held to, in every dialect that a backend may want."""

    def lark(self, *, tokens: int | None = None) -> str:
        """For llguidance; `tokens` bounds the length."""
        ...

    def gbnf(self, *, tokens: int | None = None) -> str:
        """For llama.cpp's own grammars."""
        ...

    def json_schema(self) -> JsonObject:
        """For servers that take a JSON schema."""
        ...

    def walk(self) -> Walk:
        """A fresh start through the grammar, for a backend that fast-forwards."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """One request to a model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...] = ()
    constraint: Constraint | None = None
    must_call: bool = False
    """Whether plain text is no answer."""
    parallel: bool = False
    """Whether one answer may hold several calls."""
    max_tokens: int = 1024
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelAnswer:
    """What came back."""

    text: str
    """All the text, also where it was read as calls."""
    calls: tuple[CallRequest, ...] = ()
    """Calls that the backend itself knows of; what stands in plain text is read by the loop."""
    stop: StopReason = "text"
    held: HowHeld = "free"
    usage: Usage = field(default_factory=Usage)
    choice: Mapping[str, float] = field(default_factory=dict[str, float])
    """The probability of each tool at the choice of the first one, where the backend knows it."""


class Model(Protocol):
    """A backend. It is an async context manager's product: whoever opens it also closes it."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    @property
    def context_tokens(self) -> int:
        """How many tokens a dialogue may have."""
        ...

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Answer the dialogue. Failures are `ToolError`s with a code of the family MODEL."""
        ...

    def count(self, text: str) -> int:
        """How many tokens a text has, exact or estimated."""
        ...

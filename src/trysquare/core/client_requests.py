"""What a tool may ask of its client: a question to the person, a text from the client's model, its folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from trysquare.core.types import JsonObject

Capability: TypeAlias = Literal["elicitation", "elicitation.url", "sampling", "roots"]
"""What a client can be asked for, in the protocol's own words; `elicitation` alone means with a form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question to the person: a text and the JSON Schema of a flat answer."""

    needs: ClassVar[Capability] = "elicitation"
    message: str
    schema: JsonObject
    key: str = "answer"
    exact: bool = False
    """Whether an answer counts for these very words only, also where the tool runs once more from its start."""
    ticket: str | None = None
    """What comes back with the answer, so that it can be used once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """A page for the user to open in a browser, where something is asked that must not pass through the client."""

    needs: ClassVar[Capability] = "elicitation.url"
    message: str
    url: str
    id: str = ""
    """What the page is called by whoever asks, in versions of the protocol that name it."""
    key: str = "visit"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """A text for the client's own model to answer. The protocol means to drop it: never depend on it."""

    needs: ClassVar[Capability] = "sampling"
    prompt: str
    max_tokens: int = 1000
    system: str | None = None
    whole: JsonObject | None = None
    """The request in the protocol's words, where it says more than the text: roles, pictures, preferences."""
    key: str = "completion"


@dataclass(frozen=True, kw_only=True, slots=True)
class RootsRequest:
    """The folders that the client works in. The protocol means to drop it: prefer an argument."""

    needs: ClassVar[Capability] = "roots"
    key: str = "roots"


ClientRequest: TypeAlias = Question | Visit | ModelRequest | RootsRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What came back: what the person did with a question, and what they filled in.

    A model's answer has `{"text": …, "model": …}` as its content, and for a whole request as `whole` what the client
    sent; the folders have `{"roots": [{"uri": …}, …]}`.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ticket: str | None = field(default=None, compare=False)
    """The ticket of the question as it was asked, where that was in an earlier try of the call."""


@runtime_checkable
class RequestingCaller(Protocol):
    """What a caller may offer beyond `Caller`: every kind of request, and several at once."""

    def offers(self, capability: Capability) -> bool:
        """Whether the client said that it can do this."""
        ...

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        """Put all of them to the client, each under its key. May raise `InputRequired`, as `ask` may."""
        ...

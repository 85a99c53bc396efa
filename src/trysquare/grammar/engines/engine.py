"""Engine: what holds a model's tokens to a grammar, for one tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Mask: TypeAlias = NDArray[numpy.int32]
    """One bit a token, the lowest bit of the first word being token 0; a set bit allows its token."""
    Logits: TypeAlias = NDArray[numpy.float32]


class HeldText(Protocol):
    """A text on its way through one grammar, token by token."""

    def fill(self, mask: Mask) -> None:
        """Write into the mask which tokens may come next."""
        ...

    def take(self, tokens: Sequence[int]) -> int:
        """Take tokens as far as they are allowed, and say how many were; the rest changes nothing."""
        ...

    def take_back(self, count: int) -> None:
        """Undo the last tokens."""
        ...

    def forced(self) -> list[int]:
        """The tokens that can only come next, in the tokenizer's own way to split them."""
        ...

    def is_complete(self) -> bool:
        """Whether nothing but the end of the text may come."""
        ...


class Engine(Protocol):
    """An engine for one tokenizer. It keeps what it compiled."""

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        ...

    @property
    def end_tokens(self) -> frozenset[int]:
        """The tokens that end a text."""
        ...

    def start(self, lark: str) -> HeldText:
        """A fresh text under a grammar. A `ToolError` with the code GRAMMAR_UNSUPPORTED where it cannot be compiled."""
        ...

    def bytes_of(self, tokens: Sequence[int]) -> bytes:
        """What tokens write."""
        ...

    def tokens_of(self, text: bytes) -> list[int]:
        """Tokens that write a text."""
        ...

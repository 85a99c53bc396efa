"""Filters: what says which tokens may come next, and a chain of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.matcher import CallMatcher

if TYPE_CHECKING:
    from trysquare.grammar.engines.engine import Logits, Mask


class Filter(Protocol):
    """One reason why a token may come, may not, or should rather come."""

    def narrow(self, mask: Mask) -> None:
        """Take the tokens out of the mask that may not come next."""
        ...

    def weigh(self, logits: Logits) -> None:
        """Make tokens likelier or less likely."""
        ...

    def take(self, token: int) -> None:
        """A token came. One that may not come is refused with GRAMMAR_REFUSED, and nothing has changed then."""
        ...

    def take_back(self, count: int) -> None:
        """The last tokens are undone."""
        ...


class HeldToCalls:
    """Only what leads to calls of tools."""

    def __init__(self, matcher: CallMatcher) -> None:
        self._matcher = matcher

    def narrow(self, mask: Mask) -> None:
        """Take the tokens out of the mask that lead to no call."""
        allowed = numpy.empty_like(mask)
        self._matcher.fill(allowed)
        mask &= allowed

    def weigh(self, logits: Logits) -> None:
        """Nothing: a grammar has no preferences."""

    def take(self, token: int) -> None:
        """Go on in the grammar."""
        self._matcher.take(token)

    def take_back(self, count: int) -> None:
        """Go back in the grammar."""
        self._matcher.take_back(count)


class Biased:
    """Some tokens are likelier or less likely; minus infinity forbids one."""

    def __init__(self, biases: Mapping[int, float]) -> None:
        self._tokens = numpy.fromiter(biases.keys(), dtype=numpy.int64)
        self._biases = numpy.fromiter(biases.values(), dtype=numpy.float32)
        self._forbidden = frozenset(token for token, bias in biases.items() if bias == -numpy.inf)

    def narrow(self, mask: Mask) -> None:
        """Take out what is forbidden."""
        for token in self._forbidden:
            mask[token // 32] &= numpy.int32(~numpy.int32(numpy.uint32(1 << token % 32).astype(numpy.int32)))

    def weigh(self, logits: Logits) -> None:
        """Add the biases."""
        logits[self._tokens] += self._biases

    def take(self, token: int) -> None:
        """Refuse what is forbidden."""
        if token in self._forbidden:
            raise _refused(f"The token {token} is forbidden by a bias of minus infinity.")

    def take_back(self, count: int) -> None:
        """Nothing: a bias does not depend on what came before."""


class FilterChain:
    """Filters that all hold at once."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._filters = tuple(filters)

    def apply(self, logits: Logits) -> None:
        """Weigh the logits, and make those of forbidden tokens minus infinity. Where no token is left, it refuses."""
        mask = full_mask(len(logits))
        for each in self._filters:
            each.narrow(mask)
            each.weigh(logits)
        allowed = allowed_tokens(mask, len(logits))
        if not allowed.any():
            raise _refused("Nothing may come next: the filters contradict one another.")
        logits[~allowed] = -numpy.inf

    def take(self, token: int) -> None:
        """A token came; all filters take it, or none does."""
        for number, each in enumerate(self._filters):
            try:
                each.take(token)
            except ToolError:
                for earlier in self._filters[:number]:
                    earlier.take_back(1)
                raise

    def take_back(self, count: int) -> None:
        """The last tokens are undone."""
        for each in self._filters:
            each.take_back(count)


def full_mask(vocabulary_size: int) -> Mask:
    """A mask that allows everything."""
    return numpy.full((vocabulary_size + 31) // 32, -1, dtype=numpy.int32)


def allowed_tokens(mask: Mask, vocabulary_size: int) -> numpy.typing.NDArray[numpy.bool_]:
    """For each token whether the mask allows it."""
    return numpy.unpackbits(mask.view(numpy.uint8), bitorder="little", count=vocabulary_size).view(numpy.bool_)


def _refused(message: str) -> ToolError:
    return ToolError(
        message,
        code=ErrorCode.GRAMMAR_REFUSED,
        instruction="Take the ban or the bias away, or offer other tools.",
    )

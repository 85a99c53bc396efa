"""Token masks of llguidance."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

from trysquare.core.cache import LruCache
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError

if TYPE_CHECKING:
    import numpy
    from llguidance import LLMatcher, LLTokenizer
    from numpy.typing import NDArray

    Mask: TypeAlias = NDArray[numpy.int32]
    """One bit per token, the lowest bit of the first word being token 0; a set bit allows its token."""
    Logits: TypeAlias = NDArray[numpy.float32]


def llguidance_engine(tokenizer: LLTokenizer) -> GrammarEngine:
    """An engine for a tokenizer of llguidance."""
    if not (find_spec("llguidance") and find_spec("numpy")):
        raise ConfigurationError(
            "Constraining a local model by a grammar requires llguidance and NumPy.",
            hint="Install them with: pip install 'trysquare[local]'",
        )
    return GrammarEngine(tokenizer)


class ConstrainedText:
    """A text constrained by one grammar, token by token."""

    __slots__ = ("_matcher",)

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    def fill(self, mask: Mask) -> None:
        """Write into the mask which tokens may come next."""
        self._matcher.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
        # llguidance never raises: a matcher that hit one of its limits stays in an error state, with any mask.
        if self._matcher.is_error():
            mask.fill(0)
            raise _failed(self._matcher)

    def take(self, tokens: Sequence[int]) -> int:
        """Accept tokens as far as they are allowed, and return how many; the rest changes nothing."""
        return self._matcher.try_consume_tokens(list(tokens))

    def take_back(self, count: int) -> None:
        if count and not self._matcher.rollback(count):
            raise _failed(self._matcher)

    def forced(self) -> list[int]:
        """The only tokens that may come next, split as the tokenizer splits them."""
        return self._matcher.compute_ff_tokens()

    def is_complete(self) -> bool:
        """Whether only the end of the text may come."""
        return self._matcher.is_stopped() and not self._matcher.is_error()


class GrammarEngine:
    """llguidance for one tokenizer, with a cache of compiled grammars."""

    def __init__(self, tokenizer: LLTokenizer) -> None:
        self._tokenizer = tokenizer
        self._compiled = LruCache(self._compile, size_of=len)
        self.vocabulary_size = tokenizer.vocab_size
        self.end_tokens = frozenset(tokenizer.eos_tokens)

    def start(self, lark: str) -> ConstrainedText:
        """A new text under a grammar. A `ToolError` with the code GRAMMAR_UNSUPPORTED where it does not compile."""
        return ConstrainedText(self._compiled.of(lark).deep_copy())

    def bytes_of(self, tokens: Sequence[int]) -> bytes:
        return self._tokenizer.decode_bytes(list(tokens))

    def tokens_of(self, text: bytes) -> list[int]:
        return self._tokenizer.tokenize_bytes(text)

    def _compile(self, lark: str) -> LLMatcher:
        from llguidance import LLMatcher

        matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(lark), log_level=0)
        if matcher.is_error():
            raise _failed(matcher)
        return matcher


def _failed(matcher: LLMatcher) -> ToolError:
    [first, *_] = matcher.get_error().splitlines() or ["no reason given"]
    return ToolError(
        f"llguidance rejected this grammar: {first}",
        code=ErrorCode.GRAMMAR_UNSUPPORTED,
        instruction="Simplify the schema of the tool's arguments, or do not offer the tool.",
    )

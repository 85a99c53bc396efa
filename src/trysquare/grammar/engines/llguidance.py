"""The engine llguidance, which comes with the extra `local`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.grammar.engines.engine import HeldText
from trysquare.grammar.engines.kept import Kept

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

    from trysquare.grammar.engines.engine import Mask


def llguidance_engine(tokenizer: LLTokenizer) -> LlguidanceEngine:
    """An engine for a tokenizer of llguidance's."""
    if not (find_spec("llguidance") and find_spec("numpy")):
        raise ConfigurationError(
            "Holding a local model to a grammar needs llguidance and NumPy.",
            hint="Install them with: pip install 'trysquare[local]'",
        )
    return LlguidanceEngine(tokenizer)


class LlguidanceText:
    """A text held by one matcher of llguidance's."""

    __slots__ = ("_matcher",)

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    def fill(self, mask: Mask) -> None:
        """Write into the mask which tokens may come next."""
        self._matcher.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
        self._fail_closed(mask)

    def take(self, tokens: Sequence[int]) -> int:
        """Take tokens as far as they are allowed, and say how many were; the rest changes nothing."""
        return self._matcher.try_consume_tokens(list(tokens))

    def take_back(self, count: int) -> None:
        """Undo the last tokens."""
        if count and not self._matcher.rollback(count):
            raise _failed(self._matcher)

    def forced(self) -> list[int]:
        """The tokens that can only come next, in the tokenizer's own way to split them."""
        return self._matcher.compute_ff_tokens()

    def is_complete(self) -> bool:
        """Whether nothing but the end of the text may come."""
        return self._matcher.is_stopped() and not self._matcher.is_error()

    def _fail_closed(self, mask: Mask) -> None:
        # llguidance never raises: a matcher that hit one of its limits stays in an error state, with any mask.
        if self._matcher.is_error():
            mask.fill(0)
            raise _failed(self._matcher)


class LlguidanceEngine:
    """llguidance for one tokenizer."""

    def __init__(self, tokenizer: LLTokenizer) -> None:
        self._tokenizer = tokenizer
        self._kept = Kept(self._compile)

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        return self._tokenizer.vocab_size

    @property
    def end_tokens(self) -> frozenset[int]:
        """The tokens that end a text."""
        return frozenset(self._tokenizer.eos_tokens)

    def start(self, lark: str) -> HeldText:
        """A fresh text under a grammar."""
        return LlguidanceText(self._kept.of(lark).deep_copy())

    def bytes_of(self, tokens: Sequence[int]) -> bytes:
        """What tokens write."""
        return self._tokenizer.decode_bytes(list(tokens))

    def tokens_of(self, text: bytes) -> list[int]:
        """Tokens that write a text."""
        return self._tokenizer.tokenize_bytes(text)

    def _compile(self, lark: str) -> LLMatcher:
        from llguidance import LLMatcher

        matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(lark), log_level=0)
        if matcher.is_error():
            raise _failed(matcher)
        return matcher


def _failed(matcher: LLMatcher) -> ToolError:
    [first, *_] = matcher.get_error().splitlines() or ["it gave no reason"]
    return ToolError(
        f"llguidance cannot hold text to this grammar: {first}",
        code=ErrorCode.GRAMMAR_UNSUPPORTED,
        instruction="Make the schema of the tool's arguments simpler, or do not offer the tool.",
    )

"""Constraints of a whole text: to a JSON schema, or to a grammar that somebody wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.grammar.bounding import bounded
from trysquare.grammar.gbnf import gbnf_text
from trysquare.grammar.gbnf_checking import check_grammar
from trysquare.grammar.gbnf_reading import read_gbnf
from trysquare.grammar.lark import shape_rules
from trysquare.grammar.schema_reading import read_schema
from trysquare.grammar.schema_writing import schema_of
from trysquare.grammar.shape_text import grammar_of
from trysquare.models.model import Segment, Walk


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeText:
    """The one piece of a text that is chosen as a whole."""

    lark: str
    most_tokens: int | None = None
    forced: str | None = None
    choices: tuple[str, ...] = ()


class OnePiece:
    """A walk of one piece: nothing is known before the model has written all of it."""

    def __init__(self, piece: Callable[[int], Segment]) -> None:
        self._piece: Callable[[int], Segment] | None = piece

    def next(self, *, tokens_left: int) -> Segment | None:
        """The whole text, once."""
        return None if self._piece is None else self._piece(tokens_left)

    def take(self, text: str) -> None:
        """It has come."""
        self._piece = None


class HeldToSchema:
    """JSON texts that fit a schema. What cannot be expressed is refused when it is made."""

    def __init__(self, schema: JsonObject) -> None:
        self._tree = read_schema(schema)

    def lark(self, *, tokens: int | None = None) -> str:
        """For llguidance; `tokens` bounds the length, so that the text is never cut."""
        return "%llguidance {}\n" + shape_rules(self._tree.root, self._tree.named, root="start", room=tokens)

    def gbnf(self, *, tokens: int | None = None) -> str:
        """For llama.cpp's own grammars."""
        grammar = grammar_of(self._tree)
        return gbnf_text(grammar if tokens is None else bounded(grammar, tokens))

    def json_schema(self) -> JsonObject:
        """For servers that take a JSON schema."""
        return schema_of(self._tree)

    def walk(self) -> Walk:
        """A fresh start."""
        return OnePiece(lambda left: WholeText(lark=self.lark(tokens=left), most_tokens=left))


class HeldToGrammar:
    """Texts that a GBNF grammar allows. It is read and checked first; one of others may still allow endless texts."""

    def __init__(self, text: str) -> None:
        grammar = read_gbnf(text)
        wrong = [finding.text for finding in check_grammar(grammar) if finding.fatal]
        if wrong:
            raise ToolError(
                f"The grammar cannot be used: {' '.join(wrong)}",
                code=ErrorCode.GRAMMAR_REFUSED,
                instruction="Mend the rules that are named, and send it again.",
            )
        self._text = text

    def lark(self, *, tokens: int | None = None) -> str:
        """For llguidance, which brings a translation of its own."""
        try:
            from llguidance.gbnf_to_lark import GbnfToLarkError, gbnf_to_lark
        except ImportError:
            raise ToolError(
                "To hold a local model to GBNF takes llguidance.",
                code=ErrorCode.GRAMMAR_UNSUPPORTED,
                instruction="Install it with: pip install 'trysquare[local]'",
            ) from None
        try:
            return gbnf_to_lark(self._text)
        except GbnfToLarkError as error:
            raise ToolError(f"The grammar cannot be translated: {error}", code=ErrorCode.GRAMMAR_UNSUPPORTED) from None

    def gbnf(self, *, tokens: int | None = None) -> str:
        """As it was written."""
        return self._text

    def json_schema(self) -> JsonObject:
        """None: a grammar can say more than a schema."""
        raise ToolError(
            "This model's server takes JSON schemas and no grammars.",
            code=ErrorCode.GRAMMAR_UNSUPPORTED,
            instruction="Use generate_structured with a schema, or a model that takes grammars.",
        )

    def walk(self) -> Walk:
        """A fresh start."""
        return OnePiece(lambda left: WholeText(lark=self.lark(), most_tokens=left))

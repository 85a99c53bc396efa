"""What a model's answers are held to: the grammar of the calls that it is offered."""

from __future__ import annotations

from collections.abc import Sequence

from trysquare.grammar.call_grammar import CallGrammar
from trysquare.models.model import Constraint, ToolOffer


def held_calls(offers: Sequence[ToolOffer], parallel: bool) -> Constraint | None:
    """The grammar of these calls. It is built as a backend asks for it, so that it costs nothing where none does."""
    return CallGrammar(offers, parallel=parallel)

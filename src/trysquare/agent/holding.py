"""What a model's answers are held to: the grammar of the calls that it is offered."""

from __future__ import annotations

from collections.abc import Sequence

from trysquare.grammar.call_grammar import CallGrammar
from trysquare.models.model import Constraint, ToolOffer


def held_calls(offers: Sequence[ToolOffer], parallel: bool) -> Constraint | None:
    """The grammar of these calls. It is built as a backend asks for it, so that it costs nothing where none does.

    What a grammar cannot express of one tool's arguments is left out of it: every tool checks its arguments itself, and
    one that is written unusually must not cost the run all the others.
    """
    return CallGrammar(offers, parallel=parallel, loosely=True)

"""Tool odds: how likely each tool is where a model chooses one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy

from trysquare.grammar.filters import allowed_tokens, full_mask
from trysquare.grammar.matcher import CallMatcher

if TYPE_CHECKING:
    from trysquare.grammar.engines.engine import Logits

Ask: TypeAlias = "Callable[[tuple[int, ...]], Logits]"
"""The model: the logits after the tokens of the answer so far."""
LEAST_SHARE = 0.01


def tool_odds(matcher: CallMatcher, ask: Ask, *, least_share: float = LEAST_SHARE) -> dict[str, float]:
    """The probability of each tool, with the sum 1.

    The probabilities of the allowed tokens are summed over the trie of the names. Where a token leaves several names
    open, the model is asked again behind it, unless its share is below `least_share`: then the names share it equally.
    The matcher must stand before or in a name, and stands there again afterwards.
    """
    odds = dict.fromkeys(matcher.names_after(b""), 0.0)
    if len(odds) == 1:
        return dict.fromkeys(odds, 1.0)
    _add_odds(odds, matcher, ask, 1.0, least_share)
    return odds


def _add_odds(odds: dict[str, float], matcher: CallMatcher, ask: Ask, share: float, least_share: float) -> None:
    logits = ask(matcher.tokens)
    for token, probability in masked_probabilities(matcher, logits).items():
        names = matcher.names_after(matcher.bytes_of(token))
        mass = share * probability
        if len(names) > 1 and mass >= least_share:
            matcher.take(token)
            _add_odds(odds, matcher, ask, mass, least_share)
            matcher.take_back(1)
        else:
            for name in names:
                odds[name] += mass / len(names)


def masked_probabilities(matcher: CallMatcher, logits: Logits) -> Mapping[int, float]:
    """The probability of each token that may come next, with the sum 1."""
    mask = full_mask(len(logits))
    matcher.fill(mask)
    tokens = numpy.flatnonzero(allowed_tokens(mask, len(logits)))
    weights = numpy.exp(logits[tokens].astype(numpy.float64) - logits[tokens].max())
    return dict(zip(tokens.tolist(), (weights / weights.sum()).tolist(), strict=True))

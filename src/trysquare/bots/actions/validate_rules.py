"""validate_rules: what was made is held against the rules."""

from __future__ import annotations

from trysquare.bots.actions.common import GIVEN, base_parts, missing_below, rules_parts
from trysquare.bots.actions.work import Outcome, Work


def execute(work: Work) -> Outcome:
    """Hand out the rules with their examples."""
    return Outcome(
        parts=(*base_parts(work), *rules_parts(work, priority=GIVEN)),
        missing=missing_below(work, "rules"),
    )

"""An action that a bot brings itself: its instructions are all that it does."""

from __future__ import annotations

from trysquare.bots.actions.common import base_parts, rules_parts, saved_parts
from trysquare.bots.actions.work import Outcome, Work


def execute(work: Work) -> Outcome:
    """Hand out the instructions, with what is known and the rules in short."""
    return Outcome(parts=(*base_parts(work), *saved_parts(work), *rules_parts(work, examples=False)))

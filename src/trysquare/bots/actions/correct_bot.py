"""correct_bot: a correction that keeps coming back becomes a better rule, question or instruction of the bot."""

from __future__ import annotations

from trysquare.bots.actions.common import GIVEN, OWN, base_parts, rules_parts
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.instructions import Part


def execute(work: Work) -> Outcome:
    """Hand out where the bot's texts lie and which rules there are. Nothing of the workflow moves."""
    behavior = work.behavior.folder
    places = {
        "bot": str(work.definition.root),
        "behavior": behavior,
        "rules": sorted({rule.file for rule in work.definition.rules_of(work.behavior.name)}),
    }
    return Outcome(
        parts=(
            *base_parts(work),
            Part(name="corrections", content=work.parameters.given.get("corrections"), priority=OWN),
            Part(name="places", content=places, priority=GIVEN),
            *rules_parts(work, examples=False),
        ),
    )

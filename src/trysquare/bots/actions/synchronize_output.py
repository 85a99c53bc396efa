"""synchronize_output: edits of the rendered files go back into the documents."""

from __future__ import annotations

from trysquare.bots.actions.common import FIRST, GIVEN, base_parts, missing_below
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.instructions import Part


def execute(work: Work) -> Outcome:
    """Hand out which files carry what back into which document."""
    content = work.behavior.content
    how = Part(name="synchronize_instructions", content=list(content.synchronize_instructions), priority=FIRST)
    configs = [
        {"name": each.name, "input": each.input, "output": each.output, "carries": list(each.carries)}
        for each in content.synchronizations
    ]
    return Outcome(
        parts=(*base_parts(work), how, Part(name="synchronizations", content=configs, priority=GIVEN)),
        data={"documents": [each.output for each in content.synchronizations]},
        missing=missing_below(work, "synchronize"),
    )

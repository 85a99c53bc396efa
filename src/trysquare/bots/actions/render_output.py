"""render_output: the files that people read, made of the documents."""

from __future__ import annotations

from trysquare.bots.actions.common import FIRST, GIVEN, base_parts, missing_below
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.definition import RenderConfig
from trysquare.bots.instructions import Part
from trysquare.core.types import JsonObject


def execute(work: Work) -> Outcome:
    """Hand out what is to be rendered."""
    content = work.behavior.content
    how = Part(name="render_instructions", content=list(content.render_instructions), priority=FIRST)
    parts = (Part(name=f"render:{each.name}", content=_config(each), priority=GIVEN) for each in content.renders)
    return Outcome(
        parts=(*base_parts(work), how, *parts),
        data={"files": [each.output for each in content.renders]},
        missing=missing_below(work, "_render"),
    )


def _config(config: RenderConfig) -> JsonObject:
    told: JsonObject = {"input": config.input, "output": config.output}
    for name, value in (
        ("builder", config.builder),
        ("template", config.template_text),
        ("description", config.description),
    ):
        if value:
            told[name] = value
    return told

"""build_knowledge: the documents that a behavior makes, each with the shape that it is to have."""

from __future__ import annotations

from trysquare.bots.actions.common import FIRST, GIVEN, base_parts, missing_below, rules_parts, saved_parts
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.definition import KnowledgeConfig
from trysquare.bots.instructions import Part
from trysquare.core.types import JsonObject


def execute(work: Work) -> Outcome:
    """Hand out the templates and the rules that the documents are held to."""
    content = work.behavior.content
    how = Part(name="knowledge_instructions", content=list(content.knowledge_instructions), priority=FIRST)
    return Outcome(
        parts=(
            *base_parts(work),
            how,
            *(Part(name=f"knowledge:{each.name}", content=_config(each), priority=GIVEN) for each in content.knowledge),
            *saved_parts(work),
            *rules_parts(work),
        ),
        data={"documents": [each.output for each in content.knowledge]},
        missing=missing_below(work, "knowledge_graph", of="content"),
    )


def _config(config: KnowledgeConfig) -> JsonObject:
    told: JsonObject = {"output": config.output, "template": config.template_text}
    return {**told, "description": config.description} if config.description else told

"""gather_context: the key questions of a behavior, the evidence to look for, and the answers that are saved."""

from __future__ import annotations

from dataclasses import replace

from trysquare.bots.actions.common import OWN, base_parts, missing_below, saved_parts
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.instructions import Part
from trysquare.bots.saved import load_saved, read_texts, save_answers
from trysquare.core.types import JsonObject


def execute(work: Work) -> Outcome:
    """Hand out the questions; save the answers where the call brings some."""
    answers = read_texts("answers", work.parameters.given.get("answers"))
    evidence = read_texts("evidence", work.parameters.given.get("evidence"))
    data: JsonObject = {}
    if answers or evidence:
        new = {name: part for name, part in (("answers", answers), ("evidence", evidence)) if part}
        save_answers(work.project, work.definition, work.behavior.name, new)
        data["saved"] = {name: len(part) for name, part in new.items()}
        work = replace(work, saved=load_saved(work.project, work.definition))
    known = work.saved.answers.get(work.behavior.name, {}).get("answers", {})
    open_questions = [each for each in work.behavior.guardrails.key_questions if each not in known]
    if known:
        data["open_questions"] = open_questions
    return Outcome(
        parts=(*base_parts(work), _guardrails(work), *saved_parts(work)),
        data=data,
        missing=missing_below(work, "required_context", of="guardrails"),
    )


def _guardrails(work: Work) -> Part:
    rails = work.behavior.guardrails
    content: JsonObject = {
        "key_questions": list(rails.key_questions),
        "evidence": list(rails.evidence),
        "instructions": list(rails.context_instructions),
    }
    return Part(name="guardrails", content={name: part for name, part in content.items() if part}, priority=OWN)

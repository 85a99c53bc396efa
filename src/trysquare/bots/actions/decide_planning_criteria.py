"""decide_planning_criteria: the assumptions and decisions of a behavior, and what was decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from trysquare.bots.actions.common import OWN, base_parts, missing_below, saved_parts
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.definition import DecisionCriterion
from trysquare.bots.instructions import Part
from trysquare.bots.saved import load_saved, read_texts, save_decisions
from trysquare.core.errors import InvalidArguments
from trysquare.core.types import JsonObject


def execute(work: Work) -> Outcome:
    """Hand out the criteria; save the decisions and assumptions where the call brings some."""
    decisions = read_texts("decisions", work.parameters.given.get("decisions"))
    assumptions = _assumptions(work.parameters.given.get("assumptions"))
    data: JsonObject = {}
    if decisions or assumptions:
        new: JsonObject = {"decisions": decisions} if decisions else {}
        if assumptions:
            new["assumptions"] = assumptions
        save_decisions(work.project, work.definition, work.behavior.name, new)
        data["saved"] = {name: len(part) for name, part in new.items()}
        work = replace(work, saved=load_saved(work.project, work.definition))
    known = work.saved.decisions.get(work.behavior.name, {}).get("decisions", {})
    if known:
        data["open_decisions"] = [
            each.name for each in work.behavior.guardrails.decision_criteria if each.name not in known
        ]
    return Outcome(
        parts=(*base_parts(work), _guardrails(work), *saved_parts(work)),
        data=data,
        missing=missing_below(work, "planning", of="guardrails"),
    )


def _guardrails(work: Work) -> Part:
    rails = work.behavior.guardrails
    content: JsonObject = {
        "typical_assumptions": list(rails.assumptions),
        "decision_criteria": [_criterion(each) for each in rails.decision_criteria],
        "recommended_human_activity": list(rails.human_activity),
    }
    return Part(name="guardrails", content={name: part for name, part in content.items() if part}, priority=OWN)


def _criterion(criterion: DecisionCriterion) -> JsonObject:
    told: JsonObject = {"name": criterion.name, "question": criterion.question}
    if criterion.description:
        told["description"] = criterion.description
    options = [
        {key: value for key, value in (("name", each.name), ("description", each.description),
                                       ("outcome", each.outcome)) if value}
        for each in criterion.options
    ]  # fmt: skip
    if options:
        told["options"] = options
    if criterion.outcome:
        told["outcome"] = criterion.outcome
    return told


def _assumptions(raw: Any) -> list[str]:
    if raw is None:
        return []
    texts = [raw] if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in cast(list[Any], texts)):
        raise InvalidArguments("`assumptions` is a list of texts.")
    return cast(list[str], texts)

"""The eight built-in actions: what they receive and return, and their registry. Others return their instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from trysquare.bots.artifacts import (
    CLARIFICATION,
    PLANNING,
    SavedAnswers,
    load_saved,
    read_texts,
    save_texts,
    saved_path,
)
from trysquare.bots.definition.model import (
    ActionDefinition,
    BehaviorDefinition,
    BotDefinition,
    DecisionCriterion,
    KnowledgeConfig,
    RenderConfig,
)
from trysquare.bots.documents.base import Chosen, Document
from trysquare.bots.documents.store import expand, load_document
from trysquare.bots.instructions import Part
from trysquare.bots.parameters import Parameters, Scope
from trysquare.bots.rendered import render_to, synchronize_from
from trysquare.bots.scanners.base import Rule, Violation
from trysquare.bots.scanners.runner import Artifacts, ScanCache, ScanReport, Source, scan
from trysquare.core.errors import InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.files.root import DirectoryRoot

LOCATION = "location"
"""The note of a run that holds the confirmed project directory."""
_MAX_VIOLATIONS = 50
_SCANS = ScanCache()
"""Shared by the process: findings depend on nothing but the rule and the contents."""
FIRST, OWN, GIVEN, BEHAVIOR, SAVED, RULES, EARLIER = 100, 95, 85, 80, 70, 60, 40
"""Priorities of parts: the highest survive a short budget."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionInput:
    definition: BotDefinition
    behavior: BehaviorDefinition
    action: ActionDefinition
    project: Path
    parameters: Parameters = field(default_factory=Parameters)
    scope: Scope = field(default_factory=Scope)
    saved: SavedAnswers = field(default_factory=SavedAnswers)
    only_reads: bool = False
    """Whether only the instructions are wanted, so that nothing may be written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionOutput:
    """The parts of an action's instructions in reading order, with the data it produced."""

    parts: tuple[Part, ...] = ()
    data: JsonObject = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Optional files of the bot that this action could use and that do not exist."""
    message: str | None = None
    failure: str | None = None
    """Why the action produced nothing, although its instructions are returned."""


Action: TypeAlias = Callable[[ActionInput], ActionOutput]
"""An action. It may read and write in the project; it does not move the workflow."""


def without_empty(**fields: Any) -> JsonObject:
    """The fields that have a value, in the given order."""
    return {name: value for name, value in fields.items() if value}


def base_parts(call: ActionInput) -> list[Part]:
    """The parts of every action: its own text, the additions and goal of the behavior, the bot's text, the scope."""
    behavior, bot = call.behavior, call.definition
    addition = behavior.additions.get(call.action.name)
    of_behavior = without_empty(
        goal=behavior.goal,
        inputs=list(behavior.inputs),
        outputs=list(behavior.outputs),
        instructions=list(behavior.instructions),
    )
    of_bot = without_empty(goal=bot.goal, instructions=list(bot.instructions))
    return [
        Part(name="base_instructions", content=list(call.action.instructions), priority=FIRST),
        Part(name="action_instructions", content=list(addition.instructions) if addition else [], priority=OWN),
        Part(name="behavior_instructions", content=of_behavior, priority=BEHAVIOR),
        Part(name="bot_instructions", content=of_bot, priority=BEHAVIOR),
        Part(name="scope", content=call.scope.to_json(), priority=OWN),
    ]


def saved_parts(call: ActionInput) -> list[Part]:
    """The answers and decisions of this behavior, then those of the others."""
    own, answers, decisions = call.behavior.name, dict(call.saved.answers), dict(call.saved.decisions)
    return [
        Part(name="clarifications", content=answers.pop(own, {}), priority=SAVED),
        Part(name="decisions", content=decisions.pop(own, {}), priority=SAVED),
        Part(name="earlier_clarifications", content=answers, priority=EARLIER),
        Part(name="earlier_decisions", content=decisions, priority=EARLIER),
    ]


def rules_parts(call: ActionInput, *, priority: int = RULES, examples: bool = True) -> list[Part]:
    """The behavior's rules within the scope: one part each, so that some fit a short budget, or a single summary."""
    rules = [rule for rule in call.definition.rules_of(call.behavior.name) if call.scope.holds(rule)]
    if not examples:
        return [Part(name="rules", content={rule.name: rule.description for rule in rules}, priority=priority)]
    return [Part(name=f"rule:{rule.name}", content=_rule(rule), priority=priority) for rule in rules]


def _rule(rule: Rule) -> JsonObject:
    content: JsonObject = {"description": rule.description, "severity": rule.severity}
    for name, side in (("do", rule.do), ("dont", rule.dont)):
        if side.description or side.examples:
            content[name] = {"description": side.description, "examples": list(side.examples)}
    return content


def missing_files(call: ActionInput, part: str, *, parent: str = "") -> tuple[str, ...]:
    """Files that the bot lacks for this action: its instructions, `part` of the behavior, or the whole `parent`."""
    own = (path for path in call.definition.missing if path == f"{call.action.folder}/instructions.json")
    behavior = (path for path in call.behavior.missing if part in path or (parent and path.endswith(f"/{parent}")))
    return (*own, *behavior)


def initialize_project(call: ActionInput) -> ActionOutput:
    """Return the project directory. The caller, which has the run, decides whether it must be confirmed."""
    return ActionOutput(parts=tuple(base_parts(call)), data={"project_location": str(call.project)})


def gather_context(call: ActionInput) -> ActionOutput:
    """Return the key questions and the evidence to look for; save the answers of the call."""
    given = call.parameters.given
    new = without_empty(
        answers=read_texts("answers", given.get("answers")), evidence=read_texts("evidence", given.get("evidence"))
    )
    call, data = _save(call, CLARIFICATION, new)
    rails = call.behavior.guardrails
    if known := call.saved.answers.get(call.behavior.name, {}).get("answers", {}):
        data["open_questions"] = [each for each in rails.key_questions if each not in known]
    content = without_empty(
        key_questions=list(rails.key_questions),
        evidence=list(rails.evidence),
        instructions=list(rails.context_instructions),
    )
    return _guardrails(call, content, data, "required_context")


def decide_planning_criteria(call: ActionInput) -> ActionOutput:
    """Return the assumptions and decision criteria; save the decisions and assumptions of the call."""
    given = call.parameters.given
    new = without_empty(
        decisions=read_texts("decisions", given.get("decisions")), assumptions=_assumptions(given.get("assumptions"))
    )
    call, data = _save(call, PLANNING, new)
    rails = call.behavior.guardrails
    if known := call.saved.decisions.get(call.behavior.name, {}).get("decisions", {}):
        data["open_decisions"] = [each.name for each in rails.decision_criteria if each.name not in known]
    content = without_empty(
        typical_assumptions=list(rails.assumptions),
        decision_criteria=[_criterion(each) for each in rails.decision_criteria],
        recommended_human_activity=list(rails.human_activity),
    )
    return _guardrails(call, content, data, "planning")


def _save(call: ActionInput, document: str, new: JsonObject) -> tuple[ActionInput, JsonObject]:
    if not new:
        return call, {}
    save_texts(call.project, saved_path(call.definition, document), call.behavior.name, new)
    saved = load_saved(call.project, call.definition)
    return replace(call, saved=saved), {"saved": {name: len(part) for name, part in new.items()}}


def _guardrails(call: ActionInput, content: JsonObject, data: JsonObject, folder: str) -> ActionOutput:
    part = Part(name="guardrails", content=content, priority=OWN)
    return ActionOutput(
        parts=(*base_parts(call), part, *saved_parts(call)),
        data=data,
        missing=missing_files(call, folder, parent="guardrails"),
    )


def _criterion(criterion: DecisionCriterion) -> JsonObject:
    options = [
        without_empty(name=each.name, description=each.description, outcome=each.outcome) for each in criterion.options
    ]
    more = without_empty(description=criterion.description, options=options, outcome=criterion.outcome)
    return {"name": criterion.name, "question": criterion.question, **more}


def _assumptions(raw: Any) -> list[str]:
    if raw is None:
        return []
    texts = [raw] if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in cast(list[Any], texts)):
        raise InvalidArguments("`assumptions` must be a list of strings.")
    return cast(list[str], texts)


def build_knowledge(call: ActionInput) -> ActionOutput:
    """Return the templates of the behavior's documents and the rules that apply to them."""
    content = call.behavior.content
    how = Part(name="knowledge_instructions", content=list(content.knowledge_instructions), priority=FIRST)
    documents = [
        Part(name=f"knowledge:{each.name}", content=_document(each), priority=GIVEN) for each in content.knowledge
    ]
    return ActionOutput(
        parts=(*base_parts(call), how, *documents, *saved_parts(call), *rules_parts(call)),
        data={"documents": [each.output for each in content.knowledge]},
        missing=missing_files(call, "knowledge_graph", parent="content"),
    )


def _document(config: KnowledgeConfig) -> JsonObject:
    """What the agent has to know to write a document: where, of which type, by which template and schema."""
    kind = config.type
    many = "one file for each; replace `*` in the name" if "*" in config.output else ""
    return {
        "output": config.output,
        **without_empty(description=config.description, files=many),
        "type": kind.name,
        **without_empty(template=config.template_text, schema=kind.schema),
    }


def render_output(call: ActionInput) -> ActionOutput:
    """Render every file of the behavior; report each that cannot be rendered, with the reason."""
    content = call.behavior.content
    overwrite = call.parameters.given.get("overwrite") is True
    with DirectoryRoot(call.project) as folder:
        wanted = () if call.only_reads else content.renders
        results = [each for config in wanted for each in _render(folder, config, overwrite=overwrite)]
    how = Part(name="render_instructions", content=list(content.render_instructions), priority=FIRST)
    renders = [{"name": each.name, "output": each.output, "description": each.description} for each in content.renders]
    failed = _problems(results)
    nothing = bool(results) and len(failed) == len(results)
    return ActionOutput(
        parts=(*base_parts(call), how, Part(name="renders", content=renders, priority=GIVEN)),
        data={"files": results},
        warnings=failed,
        missing=missing_files(call, "/render", parent="content"),
        message=f"{len(results) - len(failed)} of {len(results)} files were rendered." if results else None,
        failure=f"Nothing was rendered: {failed[0]}" if nothing else None,
    )


def _problems(results: list[JsonObject]) -> tuple[str, ...]:
    return tuple(str(result["problem"]) for result in results if "problem" in result)


def _render(folder: DirectoryRoot, config: RenderConfig, *, overwrite: bool) -> list[JsonObject]:
    try:
        return render_to(folder, config, overwrite=overwrite)
    except ToolError as error:
        return [{"path": config.output, "problem": f"{config.output}: {error.message}"}]


def synchronize_output(call: ActionInput) -> ActionOutput:
    """Merge edits of the rendered files back into the documents; report each that cannot be merged."""
    content = call.behavior.content
    renders = {each.name: each for each in content.renders}
    confirmed = call.parameters.given.get("confirm_deletion") is True
    wanted = [] if call.only_reads else [renders[each.render] for each in content.synchronizations]
    with DirectoryRoot(call.project) as folder:
        results = [each for config in wanted for each in _synchronize(folder, config, confirmed=confirmed)]
    how = Part(name="synchronize_instructions", content=list(content.synchronize_instructions), priority=FIRST)
    configs = [
        {"name": each.name, "input": each.input, "output": each.output, "carries": list(each.carries)}
        for each in content.synchronizations
    ]
    return ActionOutput(
        parts=(*base_parts(call), how, Part(name="synchronizations", content=configs, priority=GIVEN)),
        data={"files": results},
        warnings=_problems(results),
        missing=missing_files(call, "synchronize", parent="content"),
    )


def _synchronize(folder: DirectoryRoot, config: RenderConfig, *, confirmed: bool) -> list[JsonObject]:
    try:
        done = synchronize_from(folder, config, confirm_deletion=confirmed)
    except ToolError as error:
        return [{"path": config.output, "problem": f"{config.output}: {error.message}"}]
    return [{"path": path, "changes": list(each.changes), "conflicts": list(each.conflicts)} for path, each in done]


def validate_rules(call: ActionInput) -> ActionOutput:
    """Run the scanners; return their findings with the rules and examples."""
    report = scan_rules(call.definition, call.behavior.name, call.project, call.scope)
    violations = [each.to_json() for each in report.violations[:_MAX_VIOLATIONS]]
    found = Part(name="violations", content=violations, priority=FIRST)
    count = len(report.violations)
    return ActionOutput(
        parts=(*base_parts(call), found, *rules_parts(call, priority=GIVEN)),
        data={
            "clean": report.clean,
            "violations": count,
            "scanned": len(report.scanned),
            **without_empty(documents=dict(report.documents)),
        },
        warnings=(*_unknown_nodes(call), *(str(problem) for problem in report.problems)),
        missing=missing_files(call, "/rules"),
        message=f"{count} violations were found." if count else None,
        failure=None if report.scanned else _not_validated(report),
    )


def _not_validated(report: ScanReport) -> str | None:
    """Why nothing was scanned, where the behavior has documents."""
    wanted = [f"{path} is {state}" for path, state in report.documents if state in ("missing", "invalid")]
    return f"Nothing was validated: {', '.join(wanted)}." if wanted else None


def scan_rules(definition: BotDefinition, behavior: str, project: Path, scope: Scope | None = None) -> ScanReport:
    """Scan the project, or the part of it within a scope, for violations of a behavior's rules."""
    wanted = scope or Scope()
    rules = [rule for rule in definition.rules_of(behavior) if wanted.holds(rule)]
    configs = definition.behavior(behavior).content.knowledge
    sources = tuple(
        Source(path=each.output, type=each.type, name=each.name, required=each.required) for each in configs
    )
    with DirectoryRoot(project) as folder:
        chosen = _chosen(folder, configs, wanted)
        files = (*wanted.files, *(file for each in chosen for file in each.files)) if wanted else None
        report = scan(rules, Artifacts(folder=folder, documents=sources, files=files), cache=_SCANS)
    return replace(report, violations=tuple(each for each in report.violations if _in_scope(each, chosen)))


def _chosen(folder: DirectoryRoot, configs: Sequence[KnowledgeConfig], scope: Scope) -> list[Chosen]:
    """The parts of each document that a scope names."""
    if not scope.names_nodes:
        return []
    by_path = {path: each for each in configs for path in expand(folder, each.output)}
    found = (_valid(folder, path, each) for path, each in by_path.items())
    chosen = [each.type.choose(scope.nodes, document.value) for each, document in found if document is not None]
    return [each for each in chosen if each is not None]


def _valid(folder: DirectoryRoot, path: str, config: KnowledgeConfig) -> tuple[KnowledgeConfig, Document | None]:
    """A document, or None where it is missing or invalid, which the scan reports."""
    try:
        return config, load_document(folder, path, config.type)
    except (NotFound, InvalidArguments):
        return config, None


def _in_scope(violation: Violation, chosen: list[Chosen]) -> bool:
    everywhere = not chosen or not violation.where or violation.whole
    return everywhere or any(each.holds(violation.where) for each in chosen)


def _unknown_nodes(call: ActionInput) -> tuple[str, ...]:
    """Names of the scope that no document has: most often a typo, which would make everything look clean."""
    if not call.scope.names_nodes:
        return ()
    with DirectoryRoot(call.project) as folder:
        configs = call.behavior.content.knowledge
        missing = [each.unknown for each in _chosen(folder, configs, call.scope)]
    if configs and not any(each.type.targets for each in configs):
        return ("No document of this behavior has named parts to scope by; the scope was ignored.",)
    everywhere = [name for name in (missing[0] if missing else ()) if all(name in each for each in missing)]
    return tuple(f"No document has the {name}." for name in everywhere)


def correct_bot(call: ActionInput) -> ActionOutput:
    """Return where the bot's texts are and its rules, so that a repeated correction improves the bot itself."""
    places = {
        "bot": str(call.definition.root),
        "behavior": call.behavior.folder,
        "rules": sorted({rule.file for rule in call.definition.rules_of(call.behavior.name)}),
    }
    return ActionOutput(
        parts=(
            *base_parts(call),
            Part(name="corrections", content=call.parameters.given.get("corrections"), priority=OWN),
            Part(name="places", content=places, priority=GIVEN),
            *rules_parts(call, examples=False),
        )
    )


def custom_action(call: ActionInput) -> ActionOutput:
    """Return the instructions of an action that the bot defines itself, with the saved answers and a rule summary."""
    return ActionOutput(parts=(*base_parts(call), *saved_parts(call), *rules_parts(call, examples=False)))


BUILTIN: dict[str, Action] = {
    "initialize_project": initialize_project,
    "gather_context": gather_context,
    "decide_planning_criteria": decide_planning_criteria,
    "build_knowledge": build_knowledge,
    "render_output": render_output,
    "synchronize_output": synchronize_output,
    "validate_rules": validate_rules,
    "correct_bot": correct_bot,
}


def run_action(call: ActionInput) -> ActionOutput:
    return BUILTIN.get(call.action.name, custom_action)(call)


def produced_files(definition: BotDefinition, behavior: BehaviorDefinition, action: str) -> tuple[str, ...]:
    """The files that an action makes, relative to the project, for review before the action is closed."""
    content = behavior.content
    match action:
        case "initialize_project":
            return ()
        case "gather_context":
            return (saved_path(definition, CLARIFICATION),)
        case "decide_planning_criteria":
            return (saved_path(definition, PLANNING),)
        case "render_output":
            return tuple(each.outputs for each in content.renders)
        case "synchronize_output":
            return tuple(dict.fromkeys(each.output for each in content.synchronizations))
        case _:
            return tuple(each.output for each in content.knowledge)

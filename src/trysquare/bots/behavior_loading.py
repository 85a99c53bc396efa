"""Loading a behavior: its folder with guardrails, content, rules and what it adds to the base actions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from trysquare.bots.bot_files import (
    ActivityFile,
    AssumptionsFile,
    CriterionFile,
    EvidenceFile,
    InstructionsFile,
    KnowledgeFile,
    QuestionsFile,
    RenderFile,
    SynchronizeFile,
    TriggerFile,
)
from trysquare.bots.definition import (
    ActionAddition,
    BehaviorDefinition,
    Content,
    DecisionCriterion,
    Guardrails,
    KnowledgeConfig,
    Option,
    RenderConfig,
    SynchronizeConfig,
)
from trysquare.bots.folder import BotFolder, Named, nearest, parse_json
from trysquare.bots.rule_loading import load_rules
from trysquare.core.errors import ConfigurationError

_PARTS = ("guardrails", "content", "rules")


def load_behavior(folder: BotFolder, at: Named, actions: Iterable[str]) -> BehaviorDefinition:
    """Everything that a behavior's folder says."""
    actions = tuple(actions)
    already_missing = len(folder.missing)
    parts = folder.subfolders(at.path)
    folder.note_unknown(parts.values(), (*_PARTS, *actions), what="folder")
    folder.note_unknown(folder.json_files(at.path).values(), ("instructions", "trigger_words"), what="file")
    said = folder.read_optional(f"{at.path}/instructions.json", InstructionsFile)
    triggers = folder.read_optional(f"{at.path}/trigger_words.json", TriggerFile)
    guardrails = _guardrails(folder, _part(folder, parts, at.path, "guardrails"))
    content = _content(folder, _part(folder, parts, at.path, "content"))
    rules = _part(folder, parts, at.path, "rules")
    return BehaviorDefinition(
        name=at.name,
        folder=at.path,
        description=said.description,
        goal=said.goal,
        inputs=tuple(said.inputs),
        outputs=tuple(said.outputs),
        instructions=tuple(said.instructions),
        trigger_patterns=triggers.all(),
        guardrails=guardrails,
        content=content,
        rules=load_rules(folder, rules) if rules else (),
        additions={name: _addition(folder, parts[name]) for name in actions if name in parts},
        missing=tuple(folder.missing[already_missing:]),
    )


def _part(folder: BotFolder, parts: dict[str, Named], path: str, name: str) -> str | None:
    if name in parts:
        return parts[name].path
    folder.missing.append(f"{path}/{name}")
    return None


def _addition(folder: BotFolder, at: Named) -> ActionAddition:
    instructions, triggers = f"{at.path}/instructions.json", f"{at.path}/trigger_words.json"
    known = ("instructions", "trigger_words", "action_config")
    folder.note_unknown(folder.json_files(at.path).values(), known, what="file")
    return ActionAddition(
        action=at.name,
        instructions=tuple(folder.read(instructions, InstructionsFile).instructions)
        if instructions in folder.files
        else (),
        trigger_patterns=folder.read(triggers, TriggerFile).all() if triggers in folder.files else (),
    )


def _guardrails(folder: BotFolder, path: str | None) -> Guardrails:
    if path is None:
        return Guardrails()
    parts = folder.subfolders(path)
    folder.note_unknown(parts.values(), ("required_context", "planning"), what="folder")
    context, planning = (_part(folder, parts, path, name) for name in ("required_context", "planning"))
    asked = folder.read_optional(f"{context}/key_questions.json", QuestionsFile) if context else QuestionsFile()
    shown = folder.read_optional(f"{context}/evidence.json", EvidenceFile) if context else EvidenceFile()
    assumed = folder.read_optional(f"{planning}/typical_assumptions.json", AssumptionsFile) if planning else None
    people = folder.read_optional(f"{planning}/recommended_human_activity.json", ActivityFile) if planning else None
    return Guardrails(
        key_questions=tuple(asked.questions),
        evidence=tuple(shown.evidence),
        context_instructions=_instructions(folder, context),
        assumptions=tuple(assumed.assumptions) if assumed else (),
        human_activity=tuple(people.activities) if people else (),
        decision_criteria=_criteria(folder, planning) if planning else (),
    )


def _instructions(folder: BotFolder, path: str | None) -> tuple[str, ...]:
    file = f"{path}/instructions.json"
    return tuple(folder.read(file, InstructionsFile).instructions) if file in folder.files else ()


def _criteria(folder: BotFolder, planning: str) -> tuple[DecisionCriterion, ...]:
    parts = folder.subfolders(planning)
    folder.note_unknown(parts.values(), ("decision_criteria",), what="folder")
    path = _part(folder, parts, planning, "decision_criteria")
    return tuple(_criterion(folder, each) for each in folder.json_files(path).values()) if path else ()


def _criterion(folder: BotFolder, at: Named) -> DecisionCriterion:
    file = folder.read(at.path, CriterionFile)
    return DecisionCriterion(
        name=at.name,
        question=file.question,
        description=file.description,
        options=tuple(
            Option(name=each.name, description=each.description, outcome=each.outcome) for each in file.options
        ),
        outcome=file.outcome,
    )


def _content(folder: BotFolder, path: str | None) -> Content:
    if path is None:
        return Content()
    parts = folder.subfolders(path)
    folder.note_unknown(parts.values(), ("knowledge_graph", "render", "synchronize"), what="folder")
    knowledge, render, synchronize = (
        _part(folder, parts, path, name) for name in ("knowledge_graph", "render", "synchronize")
    )
    renders = tuple(_render(folder, each) for each in _configs(folder, render, "render_"))
    return Content(
        knowledge=tuple(_knowledge(folder, each) for each in _configs(folder, knowledge, "build_")),
        knowledge_instructions=_instructions(folder, knowledge),
        renders=_distinct(folder, renders),
        render_instructions=_instructions(folder, render),
        synchronizations=tuple(
            _synchronize(folder, each, renders) for each in _configs(folder, synchronize, "synchronize_")
        ),
        synchronize_instructions=_instructions(folder, synchronize),
    )


def _configs(folder: BotFolder, path: str | None, prefix: str) -> list[Named]:
    if path is None:
        return []
    found = [each for name, each in folder.json_files(path).items() if name.startswith(prefix)]
    if not found:
        folder.missing.append(f"{path}/{prefix}*.json")
    return found


def _knowledge(folder: BotFolder, at: Named) -> KnowledgeConfig:
    file = folder.read(at.path, KnowledgeFile)
    template = _template(folder, at, file.template)
    text = folder.text(template)
    parse_json(text, where=folder.place(template))
    return KnowledgeConfig(
        name=file.name,
        file=at.path,
        description=file.description,
        output=_joined(file.path, file.output),
        template=template,
        template_text=text,
    )


def _render(folder: BotFolder, at: Named) -> RenderConfig:
    file = folder.read(at.path, RenderFile)
    template = _template(folder, at, file.template) if file.template else None
    return RenderConfig(
        name=file.name,
        file=at.path,
        description=file.description,
        input=_joined(file.path, file.input),
        output=_joined(file.path, file.output),
        template=template,
        template_text=folder.text(template) if template else None,
        builder=file.builder,
    )


def _distinct(folder: BotFolder, renders: tuple[RenderConfig, ...]) -> tuple[RenderConfig, ...]:
    names: dict[str, RenderConfig] = {}
    for each in renders:
        if (other := names.setdefault(each.name, each)) is not each:
            raise ConfigurationError(
                f"The name `{each.name}` is taken by {other.file}.", where=folder.place(each.file), hint="Rename one."
            )
    return renders


def _synchronize(folder: BotFolder, at: Named, renders: tuple[RenderConfig, ...]) -> SynchronizeConfig:
    file = folder.read(at.path, SynchronizeFile)
    named = {each.name: each for each in renders}
    if file.render not in named:
        raise ConfigurationError(
            f"There is no render config named `{file.render}` in this behavior.",
            where=folder.place(at.path),
            hint=nearest(file.render, named) if named else "Add one, or remove this file.",
        )
    render = named[file.render]
    return SynchronizeConfig(
        name=file.name,
        file=at.path,
        description=file.description,
        render=file.render,
        input=render.output,
        output=render.input,
        carries=tuple(file.carries),
    )


def _template(folder: BotFolder, at: Named, name: str) -> str:
    """The path of the template that a config names: beside it, or in `templates` below it."""
    parent = at.path.rpartition("/")[0]
    places = (_joined(parent, name), _joined(f"{parent}/templates", name))
    found = next((place for place in places if place in folder.files), None)
    if found is None:
        raise ConfigurationError(
            f"There is no template `{name}`.",
            where=folder.place(at.path),
            hint=f"Put it at {places[0]} or {places[1]}, or correct `template`.",
        )
    return found


def _joined(path: str, file: str) -> str:
    return (PurePosixPath(path) / file).as_posix()

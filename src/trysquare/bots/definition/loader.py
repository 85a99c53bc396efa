"""Loading of a bot definition from its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from trysquare.bots.definition import files as schema
from trysquare.bots.definition import model
from trysquare.bots.definition.findings import DefinitionError
from trysquare.bots.definition.folder import (
    DO,
    FIND,
    MAX_TOOL_NAME,
    RESERVED,
    BotFolder,
    Named,
    ToolName,
    clean_name,
    is_name,
    nearest,
    read_bot_folder,
    tool_name,
    tool_names,
)
from trysquare.bots.definition.gates import changed_gate, load_gates, start_gate
from trysquare.bots.definition.presets import load_presets
from trysquare.bots.definition.programs import load_program
from trysquare.bots.definition.types import document_type, input_type, page_template, resolve_types
from trysquare.bots.scanners import base as scanners
from trysquare.core.errors import ConfigurationError


def load_rules(folder: BotFolder, path: str) -> tuple[scanners.Rule, ...]:
    """The rules of a folder by priority."""
    rules = folder.each(folder.json_files(path).values(), lambda at: _load_rule(folder, at.path, at.name))
    return tuple(sorted(rules, key=lambda rule: rule.priority))


def _load_rule(folder: BotFolder, path: str, name: str) -> scanners.Rule:
    file = folder.read(path, schema.RuleFile)
    if file.scanner is not None:
        _check_target(folder, path, file.scanner.applies_to.kind)
    scanner = _scanner(folder, path, file.scanner, file.description) if file.scanner else None
    if scanner is not None:
        # Without examples the scanner cannot be tested.
        folder.missing.extend(f"{path}: {side}.examples" for side in ("do", "dont") if not getattr(file, side).examples)
    return scanners.Rule(
        name=name,
        file=path,
        description=file.description,
        do=scanners.Examples(description=file.do.description, examples=tuple(file.do.examples)),
        dont=scanners.Examples(description=file.dont.description, examples=tuple(file.dont.examples)),
        scanner=scanner,
        severity=file.severity,
        priority=file.priority,
    )


def _check_target(folder: BotFolder, path: str, kind: str) -> None:
    known = (scanners.FILE, *folder.targets())
    if kind not in (*known, scanners.PATH):
        hint = f"{nearest(kind, known)} A JSONPath such as `$.items[*].name` selects in any document."
        raise folder.error(
            path,
            f"`applies_to`: `{kind}` is not one of {', '.join(known)}.",
            hint=hint,
            key="applies_to",
            code="unknown_name",
        )


def _scanner(
    folder: BotFolder,
    path: str,
    entry: schema.RegexEntry | schema.SchemaEntry | schema.PythonEntry | schema.CommandEntry,
    default: str,
) -> scanners.Scanner:
    message, files = entry.message or default, tuple(entry.files)
    target = replace(entry.applies_to, document=entry.document)
    match entry:
        case schema.RegexEntry(pattern=pattern, match=match, ignore_case=ignore_case):
            return scanners.RegexScanner(
                pattern=pattern, target=target, message=message, match=match, ignore_case=ignore_case, files=files
            )
        case schema.SchemaEntry():
            return scanners.SchemaScanner(schema=entry.schema_, target=target, message=message)
        case schema.CommandEntry() | schema.PythonEntry():
            return load_program(folder, path, entry, target, message)


_PARTS = ("guardrails", "content", "rules")


def load_behavior(folder: BotFolder, at: Named, actions: Iterable[str]) -> model.BehaviorDefinition:
    actions = tuple(actions)
    already_missing = len(folder.missing)
    parts = folder.subfolders(at.path)
    folder.note_unknown(parts.values(), (*_PARTS, *actions), what="folder")
    folder.note_unknown(folder.json_files(at.path).values(), ("instructions", "trigger_words"), what="file")
    texts = folder.read_optional(f"{at.path}/instructions.json", schema.InstructionsFile)
    triggers = folder.read_optional(f"{at.path}/trigger_words.json", schema.TriggerFile)
    guardrails = _guardrails(folder, _part(folder, parts, at.path, "guardrails"))
    content = _content(folder, _part(folder, parts, at.path, "content"))
    rules = _part(folder, parts, at.path, "rules")
    return model.BehaviorDefinition(
        name=at.name,
        folder=at.path,
        description=texts.description,
        goal=texts.goal,
        inputs=tuple(texts.inputs),
        outputs=tuple(texts.outputs),
        instructions=tuple(texts.instructions),
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


def _subparts(folder: BotFolder, path: str, *names: str) -> list[str | None]:
    parts = folder.subfolders(path)
    folder.note_unknown(parts.values(), names, what="folder")
    return [_part(folder, parts, path, name) for name in names]


def _addition(folder: BotFolder, at: Named) -> model.ActionAddition:
    triggers = f"{at.path}/trigger_words.json"
    known = ("instructions", "trigger_words", "action_config")
    folder.note_unknown(folder.json_files(at.path).values(), known, what="file")
    return model.ActionAddition(
        instructions=_instructions(folder, at.path),
        trigger_patterns=folder.read_optional(triggers, schema.TriggerFile).all() if triggers in folder.files else (),
    )


def _guardrails(folder: BotFolder, path: str | None) -> model.Guardrails:
    if path is None:
        return model.Guardrails()
    context, planning = _subparts(folder, path, "required_context", "planning")
    rails = model.Guardrails(context_instructions=_instructions(folder, context))
    if context:
        questions = folder.read_optional(f"{context}/key_questions.json", schema.QuestionsFile).questions
        evidence = folder.read_optional(f"{context}/evidence.json", schema.EvidenceFile).evidence
        rails = replace(rails, key_questions=tuple(questions), evidence=tuple(evidence))
    if planning:
        assumptions = folder.read_optional(f"{planning}/typical_assumptions.json", schema.AssumptionsFile).assumptions
        activity = folder.read_optional(f"{planning}/recommended_human_activity.json", schema.ActivityFile).activities
        criteria = _criteria(folder, planning)
        rails = replace(
            rails, assumptions=tuple(assumptions), human_activity=tuple(activity), decision_criteria=criteria
        )
    return rails


def _instructions(folder: BotFolder, path: str | None) -> tuple[str, ...]:
    file = f"{path}/instructions.json"
    if file not in folder.files:
        return ()
    return tuple(folder.read_optional(file, schema.InstructionsFile).instructions)


def _criteria(folder: BotFolder, planning: str) -> tuple[model.DecisionCriterion, ...]:
    (path,) = _subparts(folder, planning, "decision_criteria")
    if path is None:
        return ()
    return tuple(folder.each(folder.json_files(path).values(), lambda each: _criterion(folder, each)))


def _criterion(folder: BotFolder, at: Named) -> model.DecisionCriterion:
    file = folder.read(at.path, schema.CriterionFile)
    return model.DecisionCriterion(
        name=at.name,
        question=file.question,
        description=file.description,
        options=tuple(
            model.Option(name=each.name, description=each.description, outcome=each.outcome) for each in file.options
        ),
        outcome=file.outcome,
    )


def _content(folder: BotFolder, path: str | None) -> model.Content:
    if path is None:
        return model.Content()
    knowledge, render, synchronize = _subparts(folder, path, "knowledge_graph", "render", "synchronize")
    renders = tuple(folder.each(_configs(folder, render, "render_"), lambda each: _render(folder, each)))
    return model.Content(
        knowledge=tuple(folder.each(_configs(folder, knowledge, "build_"), lambda each: _knowledge(folder, each))),
        knowledge_instructions=_instructions(folder, knowledge),
        renders=_distinct(folder, renders),
        render_instructions=_instructions(folder, render),
        synchronizations=(
            *(_carried(each) for each in renders if each.synchronize),
            *folder.each(
                _configs(folder, synchronize, "synchronize_"), lambda each: _synchronize(folder, each, renders)
            ),
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


def _knowledge(folder: BotFolder, at: Named) -> model.KnowledgeConfig:
    file = folder.read(at.path, schema.KnowledgeFile)
    output = _joined(file.path, file.output)
    template = _own_file(folder, at, file.template, "template")
    schema_file = _own_file(folder, at, file.schema_, "schema")
    return model.KnowledgeConfig(
        name=file.name,
        file=at.path,
        description=file.description,
        output=output,
        template=template,
        template_text=folder.text(template) if template else None,
        type=document_type(folder, at.path, file.type, output, template=template, schema_file=schema_file),
        declared=file.type is not None,
        schema_file=schema_file,
        required=file.required,
    )


def _own_file(folder: BotFolder, at: Named, name: str | None, what: str) -> str | None:
    """The path of a template or schema; one that is missing is reported, and does not hide what else is wrong."""
    return None if name is None else folder.attempt(lambda: _template(folder, at, name, what=what), None)


def _render(folder: BotFolder, at: Named) -> model.RenderConfig:
    file = folder.read(at.path, schema.RenderFile)
    template = _template(folder, at, file.template) if file.template else None
    text = page_template(folder, template) if template else None
    source = _joined(file.path, file.input)
    return model.RenderConfig(
        name=file.name,
        file=at.path,
        description=file.description,
        input=source,
        output=_joined(file.path, file.output),
        template=template,
        template_text=text,
        builder=file.builder,
        each=file.each,
        type=input_type(folder, at.path, file.type, file.builder, source),
        provided=file.provided,
        synchronize=file.synchronize,
    )


def _carried(render: model.RenderConfig) -> model.SynchronizeConfig:
    """The synchronization that a render config asks for itself."""
    return model.SynchronizeConfig(
        name=render.name, file=render.file, render=render.name, input=render.output, output=render.input
    )


def _distinct(folder: BotFolder, renders: tuple[model.RenderConfig, ...]) -> tuple[model.RenderConfig, ...]:
    names: dict[str, model.RenderConfig] = {}
    for each in renders:
        if (other := names.setdefault(each.name, each)) is not each:
            message = f"The name `{each.name}` is taken by {other.file}."
            error = folder.error(each.file, message, hint="Rename one.", key="name", code="duplicate_name")
            folder.report(error)
    return tuple(names.values())


def _synchronize(folder: BotFolder, at: Named, renders: tuple[model.RenderConfig, ...]) -> model.SynchronizeConfig:
    file = folder.read(at.path, schema.SynchronizeFile)
    named = {each.name: each for each in renders}
    if file.render not in named:
        raise folder.error(
            at.path,
            f"Unknown render config `{file.render}` in this behavior.",
            hint=nearest(file.render, named) if named else "Add one, or remove this file.",
            key="render",
            code="unknown_name",
        )
    render = named[file.render]
    return model.SynchronizeConfig(
        name=file.name,
        file=at.path,
        description=file.description,
        render=file.render,
        input=render.output,
        output=render.input,
        carries=tuple(file.carries),
    )


def _template(folder: BotFolder, at: Named, name: str, *, what: str = "template") -> str:
    """The path of the template or schema of a config: in its folder, or in `templates` below it."""
    parent = at.path.rpartition("/")[0]
    paths = (_joined(parent, name), _joined(f"{parent}/templates", name))
    found = next((path for path in paths if path in folder.files), None)
    if found is None:
        raise folder.error(
            at.path,
            f"{what.capitalize()} `{name}` not found.",
            hint=f"Put it at {paths[0]} or {paths[1]}, or correct `{what}`.",
            key=what,
            code="missing_file",
        )
    return found


def _joined(path: str, file: str) -> str:
    return (PurePosixPath(path) / file).as_posix()


def load_bot(root: Path) -> model.BotDefinition:
    """Load a bot definition. Nothing is run or written, and nothing outside the folder is read."""
    folder = read_bot_folder(root)
    definition = load_folder(folder)
    if folder.errors:
        raise _first(folder)
    assert definition is not None
    return definition


def _first(folder: BotFolder) -> ConfigurationError:
    """The first mistake, with how many others there are."""
    error, more = folder.errors[0], len(folder.errors) - 1
    if not more:
        return error
    hint = f"{error.hint or ''} `trysquare bot check` shows {more} more.".strip()
    return ConfigurationError(error.message, where=error.where, hint=hint)


def load_folder(folder: BotFolder) -> model.BotDefinition | None:
    """What can be loaded of a definition, with every mistake in `folder.findings`; None where nothing can be."""
    return folder.attempt(lambda: _load(folder), None)


def _load(folder: BotFolder) -> model.BotDefinition:
    config_path = _config_path(folder)
    config = folder.attempt(lambda: folder.read(config_path, schema.BotConfig), schema.BotConfig())
    texts = folder.read_optional("instructions.json", schema.InstructionsFile)
    triggers = folder.read_optional("trigger_words.json", schema.TriggerFile)
    name = folder.attempt(lambda: _bot_name(folder, config, config_path), "bot")
    actions = _load_actions(folder, config, config_path)
    folders = _choose_behaviors(folder, config, config_path)
    _check_owners(folder, config_path, folders, actions)
    _check_tools(folder, config_path, name, folders, actions)
    behaviors = tuple(
        load_behavior(folder, at, [each.name for each in actions if each.is_of(at.name)]) for at in folders
    )
    behaviors = resolve_types(folder, behaviors)
    _note_unbuilt(folder, behaviors)
    rules, gates = load_rules(folder, "rules"), load_gates(folder, config, config_path, behaviors, actions)
    return model.BotDefinition(
        name=name,
        root=folder.root,
        description=texts.description or config.description,
        goal=texts.goal or config.goal,
        instructions=tuple(texts.instructions),
        trigger_patterns=triggers.all(),
        behaviors=behaviors,
        actions=tuple(actions),
        rules=rules,
        gates=gates,
        jumps={"ahead": config.jumps.ahead, "reopened": config.jumps.reopened},
        presets=load_presets(
            folder, config_path, config.presets, [each.name for each in actions if each.workflow], gates
        ),
        runs=config.runs,
        missing=tuple(folder.missing),
        warnings=tuple(folder.warnings),
        digests=folder.digests(),
    )


def _config_path(folder: BotFolder) -> str:
    found = [path for path in ("bot_config.json", "config/bot_config.json") if path in folder.files]
    if len(found) == 1:
        return found[0]
    if found:
        raise folder.error(
            found[0], "There is also a `config/bot_config.json`.", hint="Keep one of the two.", code="duplicate_name"
        )
    hint = 'Write one, for example {"name": "my_bot"}, or create a bot with `trysquare bot new`.'
    raise DefinitionError("`bot_config.json` not found.", code="missing_file", where=str(folder.root), hint=hint)


def _bot_name(folder: BotFolder, config: schema.BotConfig, config_path: str) -> str:
    name = config.name or folder.root.resolve().name
    if not is_name(name):
        raise folder.error(
            config_path,
            f"Invalid bot name `{name}`.",
            code="invalid_name",
            key="name",
            hint="Use lower-case letters, digits and single underscores in `name`, like story_bot.",
        )
    return name


def _load_actions(folder: BotFolder, config: schema.BotConfig, config_path: str) -> list[model.ActionDefinition]:
    if config.actions is not None:
        return _listed_actions(folder, config, config.actions, config_path)
    folders = folder.subfolders("base_actions")
    configs = {name: folder.attempt(lambda at=at: _action_config(folder, at), None) for name, at in folders.items()}
    configs = {name: config or schema.ActionConfig() for name, config in configs.items()}
    folders = {name: at for name, at in folders.items() if is_name(name) and name not in RESERVED}
    order = _order_actions(folder, folders, configs)
    if not any(configs[name].workflow for name in order):
        raise folder.error(
            "base_actions",
            "The bot has no workflow action.",
            code="missing_file",
            hint='Add a folder such as 1_gather_context with an action_config.json: {"workflow": true}.',
        )
    _check_following(folder, folders, configs, [name for name in order if configs[name].workflow])
    loaded = [_action(folder, folders[name], configs[name], config) for name in order]
    return sorted(loaded, key=lambda action: not action.workflow)


def _listed_actions(
    folder: BotFolder, config: schema.BotConfig, entries: Mapping[str, schema.ActionEntry], config_path: str
) -> list[model.ActionDefinition]:
    """The actions that `bot_config.json` itself describes."""
    if folder.subfolders("base_actions"):
        message = "`actions` and the folder base_actions both describe actions."
        folder.report(
            folder.error(config_path, message, hint="Keep one of the two.", key="actions", code="duplicate_name")
        )
    for name in entries:
        if not is_name(name) or name in RESERVED:
            hint = "Use lower-case letters, digits and single underscores."
            message = f"Invalid action name `{name}`."
            raise folder.error(config_path, message, hint=hint, key=name, code="invalid_name")
    if not any(entry.workflow for entry in entries.values()):
        hint = 'Add one, for example "build_knowledge": {}.'
        message = "The bot has no workflow action."
        raise folder.error(config_path, message, hint=hint, key="actions", code="missing_file")
    loaded = [
        model.ActionDefinition(
            name=name,
            folder="",
            workflow=entry.workflow,
            description=entry.description,
            instructions=tuple(entry.instructions),
            trigger_patterns=tuple(entry.trigger_patterns),
            gate=changed_gate(start_gate(name, config), entry),
            behaviors=_behaviors_of(entry),
        )
        for name, entry in entries.items()
    ]
    return sorted(loaded, key=lambda action: not action.workflow)


def _behaviors_of(entry: schema.ActionConfig | schema.ActionEntry) -> frozenset[str] | None:
    return None if entry.behaviors is None else frozenset(map(clean_name, entry.behaviors))


def _action_config(folder: BotFolder, at: Named) -> schema.ActionConfig:
    path = f"{at.path}/action_config.json"
    _check_name(folder, at, what="action")
    if path not in folder.files:
        raise folder.error(
            at.path,
            "`action_config.json` of this action not found.",
            code="missing_file",
            hint='Write one, for example {"workflow": true}, or remove the folder.',
        )
    config = folder.read(path, schema.ActionConfig)
    if config.name is not None and clean_name(config.name) != at.name:
        raise folder.error(
            path,
            f"`name` is `{config.name}`, but the folder is `{at.raw}`.",
            code="wrong_name",
            key="name",
            hint=f"Write `{at.name}`, or rename the folder.",
        )
    if not config.workflow and (config.policy or config.next_action):
        raise folder.error(
            path,
            "An independent action is never closed and has nothing after it.",
            code="invalid_value",
            key="workflow",
            hint="Remove `policy` and `next_action`, or set `workflow` to true.",
        )
    return config


def _order_actions(
    folder: BotFolder, folders: Mapping[str, Named], configs: Mapping[str, schema.ActionConfig]
) -> list[str]:
    """Order actions by the number of the folder, or by `order` where it has none; the two must not disagree."""
    both = [name for name, at in folders.items() if at.number is not None and configs[name].order is not None]
    for by_number, by_order in zip(both, sorted(both, key=lambda name: configs[name].order or 0), strict=True):
        if by_number != by_order:
            error = folder.error(
                f"{folders[by_order].path}/action_config.json",
                f"`order` puts this action at the position of `{folders[by_number].raw}`.",
                hint="Match `order` with the numbers of the folders, or remove it.",
                key="order",
                code="wrong_order",
            )
            folder.report(error)
            break

    def rank(name: str) -> tuple[bool, int, str]:
        at, order = folders[name], configs[name].order
        number = at.number if at.number is not None else order
        return (number is None, number or 0, name)

    return sorted(folders, key=rank)


def _check_following(
    folder: BotFolder, folders: Mapping[str, Named], configs: Mapping[str, schema.ActionConfig], workflow: Sequence[str]
) -> None:
    following = dict(zip(workflow, [*workflow[1:], None], strict=True))
    for name, expected in following.items():
        config = configs[name]
        if "next_action" not in config.model_fields_set:
            continue
        given = None if config.next_action is None else clean_name(config.next_action)
        if given == expected:
            continue
        path = f"{folders[name].path}/action_config.json"
        if given is not None and given not in workflow:
            unknown, hint = f"Unknown `next_action` `{given}`.", nearest(given, workflow)
            folder.report(folder.error(path, unknown, hint=hint, key="next_action", code="unknown_name"))
            continue
        message = f"`next_action` is `{given}`, but by their numbers `{expected}` comes after `{name}`."
        hint = "Renumber the folders, or correct `next_action`."
        folder.report(folder.error(path, message, hint=hint, key="next_action", code="wrong_order"))


def _action(folder: BotFolder, at: Named, file: schema.ActionConfig, bot: schema.BotConfig) -> model.ActionDefinition:
    texts = folder.read_optional(f"{at.path}/instructions.json", schema.InstructionsFile)
    triggers = folder.read_optional(f"{at.path}/trigger_words.json", schema.TriggerFile)
    known = ("action_config", "instructions", "trigger_words")
    folder.note_unknown(folder.json_files(at.path).values(), known, what="file")
    return model.ActionDefinition(
        name=at.name,
        folder=at.path,
        workflow=file.workflow,
        description=file.description or texts.description,
        instructions=tuple(texts.instructions),
        trigger_patterns=triggers.all(),
        gate=changed_gate(start_gate(at.name, bot), file),
        behaviors=_behaviors_of(file),
    )


def _choose_behaviors(folder: BotFolder, config: schema.BotConfig, config_path: str) -> list[Named]:
    """The configured behaviors, or all; ordered by number, else as listed."""
    found = folder.subfolders("behaviors")
    right = [each.name for each in folder.each(found.values(), lambda at: _check_name(folder, at, what="behavior"))]
    found = {name: at for name, at in found.items() if name in right}
    if config.behaviors is None:
        listed = list(found)
    else:
        listed = [clean_name(raw) for raw in config.behaviors]
        _check_listed(folder, listed, found, config_path)
        listed = [name for name in dict.fromkeys(listed) if name in found] or list(found)
    if not listed:
        hint = "Add a folder such as behaviors/1_shape."
        raise folder.error("behaviors", "The bot has no behavior.", hint=hint, code="missing_file")
    return [found[name] for name in listed]


def _check_listed(folder: BotFolder, listed: list[str], found: Mapping[str, Named], config_path: str) -> None:
    for position, name in enumerate(listed):
        if name not in found:
            hint = f"{nearest(name, found)} Or add behaviors/{position + 1}_{name}."
            message = f"Unknown behavior `{name}` in `behaviors`."
            folder.report(folder.error(config_path, message, hint=hint, key=name, code="unknown_name"))
        elif name in listed[:position]:
            message = f"`behaviors` lists `{name}` twice."
            hint = "Remove one of the two."
            folder.report(folder.error(config_path, message, hint=hint, key="behaviors", code="duplicate_name"))
    numbered = [name for name in dict.fromkeys(listed) if name in found and found[name].number is not None]
    if (by_number := sorted(numbered, key=lambda name: found[name].order)) != numbered:
        hint = f"By number the order is {', '.join(by_number)}. Renumber the folders, or correct the list."
        message = "`behaviors` has another order than the numbers of the folders."
        folder.report(folder.error(config_path, message, hint=hint, key="behaviors", code="wrong_order"))
    for name, at in found.items():
        if name not in listed:
            message = "this behavior is not listed in bot_config.json and is left out."
            folder.used.update(path for path in folder.files if path.startswith(f"{at.path}/"))
            folder.warn(at.path, message, hint="Add it to `behaviors`, or remove it.", code="not_listed")


def _check_name(folder: BotFolder, at: Named, *, what: str) -> Named:
    if at.name in RESERVED:
        hint = f"Choose another name. Reserved: {', '.join(sorted(RESERVED))}."
        message = f"The name `{at.name}` of this {what} is reserved."
        raise folder.error(at.path, message, hint=hint, code="invalid_name")
    if not is_name(at.name):
        hint = "Use lower-case letters, digits and single underscores after a number: 3_build_knowledge."
        raise folder.error(at.path, f"Invalid {what} name `{at.name}`.", hint=hint, code="invalid_name")
    return at


def _check_owners(
    folder: BotFolder, config_path: str, folders: Sequence[Named], actions: Sequence[model.ActionDefinition]
) -> None:
    """Check that the behaviors that actions name are there, and that each behavior has something to do."""
    known = [at.name for at in folders]
    for action in actions:
        own = f"{action.folder}/action_config.json"
        for name in sorted(action.behaviors or ()):
            if name not in known:
                path, message = own if own in folder.files else config_path, f"Unknown behavior `{name}`"
                message = f"{message} in `behaviors` of the action `{action.name}`."
                error = folder.error(path, message, hint=nearest(name, known), key=name, code="unknown_name")
                folder.report(error)
    for at in folders:
        if not any(action.workflow and action.is_of(at.name) for action in actions):
            message = f"The behavior `{at.name}` has no workflow action."
            hint = f"Name it in `behaviors` of an action, or remove {at.path}."
            folder.report(folder.error(config_path, message, hint=hint, key=at.name, code="dead_end"))


def _check_tools(
    folder: BotFolder, config_path: str, bot: str, folders: Sequence[Named], actions: Sequence[model.ActionDefinition]
) -> None:
    """Check that tool names are unique and short enough for clients."""
    named = {at.name: at for at in folders}
    taken: dict[str, ToolName] = {}
    hidden = (ToolName(name=tool_name(bot, suffix)) for suffix in (FIND, DO))
    owned = {at.name: [action.name for action in actions if action.is_of(at.name)] for at in folders}
    for tool in (*hidden, *tool_names(bot, owned)):
        path = named[tool.behavior].path if tool.behavior else config_path
        if len(tool.name) > MAX_TOOL_NAME:
            message = f"The tool name `{tool.name}` has {len(tool.name)} characters; clients accept {MAX_TOOL_NAME}."
            hint = "Shorten the name of the bot, the behavior or the action."
            folder.report(folder.error(path, message, hint=hint, code="long_name"))
        if (other := taken.setdefault(tool.name, tool)) is not tool:
            message = f"Two tools would be called `{tool.name}`: {_described(other)} and {_described(tool)}."
            hint = "Rename the behavior or the action."
            folder.report(folder.error(path, message, hint=hint, code="duplicate_name"))


def _note_unbuilt(folder: BotFolder, behaviors: Sequence[model.BehaviorDefinition]) -> None:
    """Warn of rendered documents that no behavior builds; the project may bring them along."""
    built = {each.output for behavior in behaviors for each in behavior.content.knowledge}
    for render in (each for behavior in behaviors for each in behavior.content.renders):
        if render.input not in built and not render.provided:
            message = f"no behavior builds its input `{render.input}`."
            hint = "Correct `input`, or set `provided` if the project brings it along."
            folder.warn(render.file, message, hint=hint, code="unbuilt_input", key="input")


def _described(tool: ToolName) -> str:
    if tool.behavior is None:
        return "one of the bot"
    return f"behavior {tool.behavior}" + (f" with action {tool.action}" if tool.action else "")

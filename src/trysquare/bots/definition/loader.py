"""Loading of a bot definition from its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from shutil import which
from typing import Any

from trysquare.bots.definition import files as schema
from trysquare.bots.definition import model
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
    parse_json,
    read_bot_folder,
    tool_name,
    tool_names,
)
from trysquare.bots.scanners import base as scanners
from trysquare.bots.scanners.kinds import callable_problem
from trysquare.bots.workflow.machine import Position
from trysquare.core.errors import ConfigurationError


def load_rules(folder: BotFolder, path: str) -> tuple[scanners.Rule, ...]:
    """The rules of a folder by priority."""
    rules = [_load_rule(folder, each.path, each.name) for each in folder.json_files(path).values()]
    return tuple(sorted(rules, key=lambda rule: rule.priority))


def _load_rule(folder: BotFolder, path: str, name: str) -> scanners.Rule:
    file = folder.read(path, schema.RuleFile)
    scanner = _scanner(file.scanner, file.description, folder.location(path)) if file.scanner else None
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


def _scanner(
    entry: schema.RegexEntry | schema.SchemaEntry | schema.PythonEntry | schema.CommandEntry, default: str, where: str
) -> scanners.Scanner:
    message, target, files = entry.message or default, entry.applies_to, tuple(entry.files)
    match entry:
        case schema.RegexEntry(pattern=pattern, match=match, ignore_case=ignore_case):
            return scanners.RegexScanner(
                pattern=pattern, target=target, message=message, match=match, ignore_case=ignore_case, files=files
            )
        case schema.SchemaEntry():
            return scanners.SchemaScanner(schema=entry.schema_, target=target, message=message)
        case schema.CommandEntry(argv=argv):
            # A path such as `scripts/check.sh` is relative to the project, which is not known here.
            if ("/" not in argv[0] or argv[0].startswith("/")) and which(argv[0]) is None:
                hint = "Install it, or remove the scanner of the rule."
                raise ConfigurationError(f"Program `{argv[0]}` of this rule not found.", where=where, hint=hint)
            return scanners.CommandScanner(argv=tuple(argv), target=target, message=message, files=files)
        case schema.PythonEntry(callable=dotted, options=options):
            if (problem := callable_problem(dotted)) is not None:
                hint = "Correct the name, or install its package."
                raise ConfigurationError(f"The scanner `{dotted}` is not available: {problem}.", where=where, hint=hint)
            return scanners.PythonScanner(callable=dotted, target=target, message=message, options=options, files=files)


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
        trigger_patterns=folder.read(triggers, schema.TriggerFile).all() if triggers in folder.files else (),
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
    return tuple(folder.read(file, schema.InstructionsFile).instructions) if file in folder.files else ()


def _criteria(folder: BotFolder, planning: str) -> tuple[model.DecisionCriterion, ...]:
    (path,) = _subparts(folder, planning, "decision_criteria")
    return tuple(_criterion(folder, each) for each in folder.json_files(path).values()) if path else ()


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
    renders = tuple(_render(folder, each) for each in _configs(folder, render, "render_"))
    return model.Content(
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


def _knowledge(folder: BotFolder, at: Named) -> model.KnowledgeConfig:
    file = folder.read(at.path, schema.KnowledgeFile)
    template = _template(folder, at, file.template)
    text = folder.text(template)
    parse_json(text, where=folder.location(template))
    return model.KnowledgeConfig(
        name=file.name,
        file=at.path,
        description=file.description,
        output=_joined(file.path, file.output),
        template=template,
        template_text=text,
    )


def _render(folder: BotFolder, at: Named) -> model.RenderConfig:
    file = folder.read(at.path, schema.RenderFile)
    template = _template(folder, at, file.template) if file.template else None
    return model.RenderConfig(
        name=file.name,
        file=at.path,
        description=file.description,
        input=_joined(file.path, file.input),
        output=_joined(file.path, file.output),
        template=template,
        template_text=folder.text(template) if template else None,
        builder=file.builder,
    )


def _distinct(folder: BotFolder, renders: tuple[model.RenderConfig, ...]) -> tuple[model.RenderConfig, ...]:
    names: dict[str, model.RenderConfig] = {}
    for each in renders:
        if (other := names.setdefault(each.name, each)) is not each:
            raise folder.error(each.file, f"The name `{each.name}` is taken by {other.file}.", hint="Rename one.")
    return renders


def _synchronize(folder: BotFolder, at: Named, renders: tuple[model.RenderConfig, ...]) -> model.SynchronizeConfig:
    file = folder.read(at.path, schema.SynchronizeFile)
    named = {each.name: each for each in renders}
    if file.render not in named:
        raise folder.error(
            at.path,
            f"Unknown render config `{file.render}` in this behavior.",
            hint=nearest(file.render, named) if named else "Add one, or remove this file.",
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


def _template(folder: BotFolder, at: Named, name: str) -> str:
    """The path of the template of a config: in its folder, or in `templates` below it."""
    parent = at.path.rpartition("/")[0]
    paths = (_joined(parent, name), _joined(f"{parent}/templates", name))
    found = next((path for path in paths if path in folder.files), None)
    if found is None:
        raise folder.error(
            at.path, f"Template `{name}` not found.", hint=f"Put it at {paths[0]} or {paths[1]}, or correct `template`."
        )
    return found


def _joined(path: str, file: str) -> str:
    return (PurePosixPath(path) / file).as_posix()


_AUTO_ACTIONS = frozenset({"initialize_project"})


def load_bot(root: Path) -> model.BotDefinition:
    """Load a bot definition. Nothing is run or written, and nothing outside the folder is read."""
    folder = read_bot_folder(root)
    config_path = _config_path(folder)
    config = folder.read(config_path, schema.BotConfig)
    texts = folder.read_optional("instructions.json", schema.InstructionsFile)
    triggers = folder.read_optional("trigger_words.json", schema.TriggerFile)
    name = _bot_name(folder, config, config_path)
    actions = _load_actions(folder, config)
    folders = _choose_behaviors(folder, config, config_path)
    _check_tools(folder, config_path, name, folders, actions)
    behaviors = tuple(load_behavior(folder, at, [action.name for action in actions]) for at in folders)
    _note_unbuilt(folder, behaviors)
    return model.BotDefinition(
        name=name,
        root=root,
        description=texts.description or config.description,
        goal=texts.goal or config.goal,
        instructions=tuple(texts.instructions),
        trigger_patterns=triggers.all(),
        behaviors=behaviors,
        actions=tuple(actions),
        rules=load_rules(folder, "rules"),
        gates=_gates(folder, config, config_path, behaviors, actions),
        jumps={"ahead": config.jumps.ahead, "reopened": config.jumps.reopened},
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
        raise folder.error(found[0], "There is also a `config/bot_config.json`.", hint="Keep one of the two.")
    hint = 'Write one, for example {"name": "my_bot"}, or create a bot with `trysquare bot new`.'
    raise ConfigurationError("`bot_config.json` not found.", where=str(folder.root), hint=hint)


def _bot_name(folder: BotFolder, config: schema.BotConfig, config_path: str) -> str:
    name = config.name or folder.root.resolve().name
    if not is_name(name):
        raise folder.error(
            config_path,
            f"Invalid bot name `{name}`.",
            hint="Use lower-case letters, digits and single underscores in `name`, like story_bot.",
        )
    return name


def _load_actions(folder: BotFolder, config: schema.BotConfig) -> list[model.ActionDefinition]:
    folders = folder.subfolders("base_actions")
    configs = {name: _action_config(folder, at) for name, at in folders.items()}
    order = _order_actions(folder, folders, configs)
    if not any(configs[name].workflow for name in order):
        raise folder.error(
            "base_actions",
            "The bot has no workflow action.",
            hint='Add a folder such as 1_gather_context with an action_config.json: {"workflow": true}.',
        )
    _check_following(folder, folders, configs, [name for name in order if configs[name].workflow])
    loaded = [_action(folder, folders[name], configs[name], config) for name in order]
    return sorted(loaded, key=lambda action: not action.workflow)


def _action_config(folder: BotFolder, at: Named) -> schema.ActionConfig:
    path = f"{at.path}/action_config.json"
    _check_name(folder, at, what="action")
    if path not in folder.files:
        raise folder.error(
            at.path,
            "`action_config.json` of this action not found.",
            hint='Write one, for example {"workflow": true}, or remove the folder.',
        )
    config = folder.read(path, schema.ActionConfig)
    if config.name is not None and clean_name(config.name) != at.name:
        raise folder.error(
            path,
            f"`name` is `{config.name}`, but the folder is `{at.raw}`.",
            hint=f"Write `{at.name}`, or rename the folder.",
        )
    if not config.workflow and (config.policy or config.next_action):
        raise folder.error(
            path,
            "An independent action is never closed and has nothing after it.",
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
            raise folder.error(
                f"{folders[by_order].path}/action_config.json",
                f"`order` puts this action at the position of `{folders[by_number].raw}`.",
                hint="Match `order` with the numbers of the folders, or remove it.",
            )

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
            raise folder.error(path, f"Unknown `next_action` `{given}`.", hint=nearest(given, workflow))
        message = f"`next_action` is `{given}`, but by their numbers `{expected}` comes after `{name}`."
        raise folder.error(path, message, hint="Renumber the folders, or correct `next_action`.")


def _action(folder: BotFolder, at: Named, file: schema.ActionConfig, bot: schema.BotConfig) -> model.ActionDefinition:
    texts = folder.read_optional(f"{at.path}/instructions.json", schema.InstructionsFile)
    triggers = folder.read_optional(f"{at.path}/trigger_words.json", schema.TriggerFile)
    known = ("action_config", "instructions", "trigger_words")
    folder.note_unknown(folder.json_files(at.path).values(), known, what="file")
    start = model.Gate(
        policy="auto" if at.name in _AUTO_ACTIONS else "manual",
        proof=bot.proof,
        budget_tokens=bot.budget_tokens or model.DEFAULT_BUDGET,
    )
    return model.ActionDefinition(
        name=at.name,
        folder=at.path,
        workflow=file.workflow,
        description=file.description or texts.description,
        instructions=tuple(texts.instructions),
        trigger_patterns=triggers.all(),
        gate=_changed(start, file),
    )


def _choose_behaviors(folder: BotFolder, config: schema.BotConfig, config_path: str) -> list[Named]:
    """The configured behaviors, or all; ordered by number, else as listed."""
    found = folder.subfolders("behaviors")
    for at in found.values():
        _check_name(folder, at, what="behavior")
    if config.behaviors is None:
        listed = list(found)
    else:
        listed = [clean_name(raw) for raw in config.behaviors]
        _check_listed(folder, listed, found, config_path)
    if not listed:
        raise folder.error("behaviors", "The bot has no behavior.", hint="Add a folder such as behaviors/1_shape.")
    return [found[name] for name in listed]


def _check_listed(folder: BotFolder, listed: list[str], found: Mapping[str, Named], config_path: str) -> None:
    for position, name in enumerate(listed):
        if name not in found:
            hint = f"{nearest(name, found)} Or add behaviors/{position + 1}_{name}."
            raise folder.error(config_path, f"Unknown behavior `{name}` in `behaviors`.", hint=hint)
        if name in listed[:position]:
            raise folder.error(config_path, f"`behaviors` lists `{name}` twice.", hint="Remove one of the two.")
    numbered = [name for name in listed if found[name].number is not None]
    if (by_number := sorted(numbered, key=lambda name: found[name].order)) != numbered:
        hint = f"By number the order is {', '.join(by_number)}. Renumber the folders, or correct the list."
        raise folder.error(config_path, "`behaviors` has another order than the numbers of the folders.", hint=hint)
    folder.warnings.extend(
        f"{at.path}: this behavior is not listed in bot_config.json and is left out."
        for name, at in found.items()
        if name not in listed
    )


def _check_name(folder: BotFolder, at: Named, *, what: str) -> None:
    if at.name in RESERVED:
        hint = f"Choose another name. Reserved: {', '.join(sorted(RESERVED))}."
        raise folder.error(at.path, f"The name `{at.name}` of this {what} is reserved.", hint=hint)
    if not is_name(at.name):
        hint = "Use lower-case letters, digits and single underscores after a number: 3_build_knowledge."
        raise folder.error(at.path, f"Invalid {what} name `{at.name}`.", hint=hint)


def _check_tools(
    folder: BotFolder, config_path: str, bot: str, folders: Sequence[Named], actions: Sequence[model.ActionDefinition]
) -> None:
    """Check that tool names are unique and short enough for clients."""
    named = {at.name: at for at in folders}
    taken: dict[str, ToolName] = {}
    hidden = (ToolName(name=tool_name(bot, suffix)) for suffix in (FIND, DO))
    for tool in (*hidden, *tool_names(bot, named, (action.name for action in actions))):
        path = named[tool.behavior].path if tool.behavior else config_path
        if len(tool.name) > MAX_TOOL_NAME:
            message = f"The tool name `{tool.name}` has {len(tool.name)} characters; clients accept {MAX_TOOL_NAME}."
            raise folder.error(path, message, hint="Shorten the name of the bot, the behavior or the action.")
        if (other := taken.setdefault(tool.name, tool)) is not tool:
            message = f"Two tools would be called `{tool.name}`: {_described(other)} and {_described(tool)}."
            raise folder.error(path, message, hint="Rename the behavior or the action.")


def _note_unbuilt(folder: BotFolder, behaviors: Sequence[model.BehaviorDefinition]) -> None:
    """Warn of rendered documents that no behavior builds; the project may bring them along."""
    built = {each.output for behavior in behaviors for each in behavior.content.knowledge}
    folder.warnings.extend(
        f"{render.file}: no behavior builds its input `{render.input}`."
        for behavior in behaviors
        for render in behavior.content.renders
        if render.input not in built
    )


def _described(tool: ToolName) -> str:
    if tool.behavior is None:
        return "one of the bot"
    return f"behavior {tool.behavior}" + (f" with action {tool.action}" if tool.action else "")


def _gates(
    folder: BotFolder,
    config: schema.BotConfig,
    config_path: str,
    behaviors: Sequence[model.BehaviorDefinition],
    actions: Sequence[model.ActionDefinition],
) -> dict[Position, model.Gate]:
    """The gate of each action in each behavior; the most specific setting wins."""
    known = [action.name for action in actions]
    own = {behavior.name: _own_gates(folder, behavior) for behavior in behaviors}
    positions = [Position(behavior=behavior.name, action=name) for behavior in behaviors for name in known]
    names = {*known, *own, *(f"{each.behavior}.{each.action}" for each in positions)}
    for key in config.gates:
        if key not in names:
            raise folder.error(
                config_path, f"Unknown action or behavior `{key}` in `gates`.", hint=nearest(key, sorted(names))
            )
    gates: dict[Position, model.Gate] = {}
    for action in actions:
        general = _changed(action.gate, config.gates.get(action.name))
        for behavior in behaviors:
            position = Position(behavior=behavior.name, action=action.name)
            whole = None if behavior.name in known else config.gates.get(behavior.name)
            nearer = _changed(_changed(general, whole), own[behavior.name].get(action.name))
            gate = _changed(nearer, config.gates.get(f"{behavior.name}.{action.name}"))
            gates[position] = _with_people(folder, config, config_path, gate)
    _check_policies(folder, config_path, behaviors, [action.name for action in actions if action.workflow], gates)
    return gates


def _own_gates(folder: BotFolder, behavior: model.BehaviorDefinition) -> dict[str, schema.GateKeys]:
    parts = folder.subfolders(behavior.folder)
    files = {name: f"{parts[name].path}/action_config.json" for name in behavior.additions}
    return {name: folder.read(path, schema.GateKeys) for name, path in files.items() if path in folder.files}


def _changed(gate: model.Gate, keys: schema.GateKeys | None) -> model.Gate:
    if keys is None:
        return gate
    given: dict[str, Any] = {name: getattr(keys, name) for name in schema.GateKeys.model_fields}
    for name in ("assignees", "reviewers"):
        given[name] = None if given[name] is None else tuple(given[name])
    return replace(gate, **{name: value for name, value in given.items() if value is not None})


def _with_people(folder: BotFolder, config: schema.BotConfig, path: str, gate: model.Gate) -> model.Gate:
    """The gate with the members of its teams. What has reviewers needs their proof."""
    if not gate.assignees and not gate.reviewers:
        return gate
    lists = {"assignees": _members(folder, config, path, gate.assignees)}
    lists["reviewers"] = _members(folder, config, path, gate.reviewers)
    return replace(gate, **lists, proof=gate.proof or bool(gate.reviewers))


def _members(folder: BotFolder, config: schema.BotConfig, path: str, names: Iterable[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        if not name.startswith("@"):
            found.append(name)
        elif name[1:] in config.teams:
            found.extend(config.teams[name[1:]])
        else:
            hint = nearest(name[1:], sorted(config.teams)) if config.teams else "Name its members in `teams`."
            raise folder.error(path, f"Unknown team `{name}`.", hint=hint)
    return tuple(dict.fromkeys(found))


def _check_policies(
    folder: BotFolder,
    config_path: str,
    behaviors: Sequence[model.BehaviorDefinition],
    workflow: Sequence[str],
    gates: Mapping[Position, model.Gate],
) -> None:
    for behavior in behaviors:
        policies = [gates[Position(behavior=behavior.name, action=name)].policy for name in workflow]
        left = [policy for policy in policies if policy != "skip"]
        if not left:
            raise folder.error(
                config_path,
                f"Every action of `{behavior.name}` is skipped.",
                hint="Leave the behavior out of `behaviors`, or give one of its actions another policy.",
            )
        if left[-1] == "combine_next":
            raise folder.error(
                config_path,
                f"The last action of `{behavior.name}` has the policy combine_next, and nothing comes after it.",
                hint="Give it the policy manual or auto.",
            )

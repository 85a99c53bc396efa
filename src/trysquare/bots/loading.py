"""Loading: a bot's folder becomes a definition, or an error that names the file and says what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trysquare.bots.behavior_loading import load_behavior
from trysquare.bots.bot_files import ActionConfig, BotConfig, GateKeys, InstructionsFile, TriggerFile
from trysquare.bots.definition import DEFAULT_BUDGET, ActionDefinition, BehaviorDefinition, BotDefinition, Gate
from trysquare.bots.folder import BotFolder, Named, nearest, read_bot_folder
from trysquare.bots.naming import MAX_TOOL_NAME, RESERVED, ToolName, clean_name, gateway_tool_names, is_name, tool_names
from trysquare.bots.plan import Position
from trysquare.bots.rule_loading import load_rules
from trysquare.core.errors import ConfigurationError

_AUTO_ACTIONS = frozenset({"initialize_project"})


def load_bot(root: Path) -> BotDefinition:
    """Read a bot's folder. Nothing is run, nothing is written, and nothing outside the folder is read."""
    folder = read_bot_folder(root)
    config_path = _config_path(folder)
    config = folder.read(config_path, BotConfig)
    said = folder.read_optional("instructions.json", InstructionsFile)
    triggers = folder.read_optional("trigger_words.json", TriggerFile)
    name = _bot_name(folder, config, config_path)
    actions = _load_actions(folder, config)
    places = _choose_behaviors(folder, config, config_path)
    _check_tools(folder, config_path, name, places, actions)
    behaviors = tuple(load_behavior(folder, at, [action.name for action in actions]) for at in places)
    _note_unbuilt(folder, behaviors)
    return BotDefinition(
        name=name,
        root=root,
        description=said.description or config.description,
        goal=said.goal or config.goal,
        instructions=tuple(said.instructions),
        trigger_patterns=triggers.all(),
        behaviors=behaviors,
        actions=tuple(actions),
        rules=load_rules(folder, "rules"),
        gates=_gates(folder, config, config_path, behaviors, actions),
        jumps={"ahead": config.jumps.ahead, "reopened": config.jumps.reopened},
        missing=tuple(folder.missing),
        warnings=tuple(folder.warnings),
        digests=folder.digests(),
    )


def _config_path(folder: BotFolder) -> str:
    found = [path for path in ("bot_config.json", "config/bot_config.json") if path in folder.files]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigurationError(
            "There is a `config/bot_config.json` too.", where=folder.place(found[0]), hint="Keep one of the two."
        )
    raise ConfigurationError(
        "There is no `bot_config.json`, so this is no bot.",
        where=str(folder.root),
        hint='Write one, for example {"name": "my_bot"}, or make a bot with `trysquare bot new`.',
    )


def _bot_name(folder: BotFolder, config: BotConfig, config_path: str) -> str:
    name = config.name or folder.root.resolve().name
    if not is_name(name):
        raise ConfigurationError(
            f"`{name}` cannot be the name of a bot.",
            where=folder.place(config_path),
            hint="Set `name` to small letters, digits and single underscores, like story_bot.",
        )
    return name


def _load_actions(folder: BotFolder, config: BotConfig) -> list[ActionDefinition]:
    places = folder.subfolders("base_actions")
    configs = {name: _action_config(folder, at) for name, at in places.items()}
    order = _order_actions(folder, places, configs)
    if not any(configs[name].workflow for name in order):
        raise ConfigurationError(
            "The bot has no workflow action.",
            where=folder.place("base_actions"),
            hint='Add a folder such as 1_gather_context with an action_config.json: {"workflow": true}.',
        )
    _check_following(folder, places, configs, [name for name in order if configs[name].workflow])
    loaded = [_action(folder, places[name], configs[name], config) for name in order]
    return sorted(loaded, key=lambda action: not action.workflow)


def _action_config(folder: BotFolder, at: Named) -> ActionConfig:
    path = f"{at.path}/action_config.json"
    _check_name(folder, at, what="action")
    if path not in folder.files:
        raise ConfigurationError(
            "An action needs an `action_config.json`, and this folder has none.",
            where=folder.place(at.path),
            hint='Write one, for example {"workflow": true}, or remove the folder.',
        )
    config = folder.read(path, ActionConfig)
    if config.name is not None and clean_name(config.name) != at.name:
        raise ConfigurationError(
            f"`name` is `{config.name}`, but the folder is called `{at.label.raw}`.",
            where=folder.place(path),
            hint=f"Write `{at.name}`, or rename the folder.",
        )
    if not config.workflow and (config.policy or config.next_action):
        raise ConfigurationError(
            "An independent action is never closed and has nothing after it.",
            where=folder.place(path),
            hint="Remove `policy` and `next_action`, or set `workflow` to true.",
        )
    return config


def _order_actions(folder: BotFolder, places: Mapping[str, Named], configs: Mapping[str, ActionConfig]) -> list[str]:
    """The actions by the number of the folder, or by `order` where it has none; the two must not disagree."""
    both = [name for name, at in places.items() if at.label.number is not None and configs[name].order is not None]
    for by_number, by_order in zip(both, sorted(both, key=lambda name: configs[name].order or 0), strict=True):
        if by_number != by_order:
            raise ConfigurationError(
                f"By `order` this action comes where `{places[by_number].label.raw}` stands by its number.",
                where=folder.place(f"{places[by_order].path}/action_config.json"),
                hint="Make `order` agree with the numbers of the folders, or remove it.",
            )
    return sorted(places, key=lambda name: _rank(places[name], configs[name]))


def _rank(at: Named, config: ActionConfig) -> tuple[bool, int, str]:
    number = at.label.number if at.label.number is not None else config.order
    return (number is None, number or 0, at.name)


def _check_following(
    folder: BotFolder, places: Mapping[str, Named], configs: Mapping[str, ActionConfig], workflow: Sequence[str]
) -> None:
    following = dict(zip(workflow, [*workflow[1:], None], strict=True))
    for name, expected in following.items():
        config = configs[name]
        if "next_action" not in config.model_fields_set:
            continue
        given = None if config.next_action is None else clean_name(config.next_action)
        if given == expected:
            continue
        where = folder.place(f"{places[name].path}/action_config.json")
        if given is not None and given not in workflow:
            raise ConfigurationError(
                f"`next_action` is `{given}`, and there is no workflow action of that name.",
                where=where,
                hint=nearest(given, workflow),
            )
        raise ConfigurationError(
            f"`next_action` is `{given}`, but by their numbers `{expected}` comes after `{name}`.",
            where=where,
            hint="Renumber the folders, or correct `next_action`.",
        )


def _action(folder: BotFolder, at: Named, file: ActionConfig, config: BotConfig) -> ActionDefinition:
    said = folder.read_optional(f"{at.path}/instructions.json", InstructionsFile)
    triggers = folder.read_optional(f"{at.path}/trigger_words.json", TriggerFile)
    known = ("action_config", "instructions", "trigger_words")
    folder.note_unknown(folder.json_files(at.path).values(), known, what="file")
    start = Gate(
        policy="auto" if at.name in _AUTO_ACTIONS else "manual",
        proof=config.proof,
        budget_tokens=config.budget_tokens or DEFAULT_BUDGET,
    )
    return ActionDefinition(
        name=at.name,
        folder=at.path,
        workflow=file.workflow,
        description=file.description or said.description,
        instructions=tuple(said.instructions),
        trigger_patterns=triggers.all(),
        gate=_changed(start, file),
    )


def _choose_behaviors(folder: BotFolder, config: BotConfig, config_path: str) -> list[Named]:
    """The behaviors that the configuration lists, or all; ordered by number, else as listed."""
    found = folder.subfolders("behaviors")
    for at in found.values():
        _check_name(folder, at, what="behavior")
    if config.behaviors is None:
        listed = list(found)
    else:
        listed = [clean_name(raw) for raw in config.behaviors]
        _check_listed(folder, listed, found, folder.place(config_path))
    if not listed:
        raise ConfigurationError(
            "The bot has no behavior.",
            where=folder.place("behaviors"),
            hint="Add a folder such as behaviors/1_shape.",
        )
    return [found[name] for name in listed]


def _check_listed(folder: BotFolder, listed: list[str], found: Mapping[str, Named], where: str) -> None:
    for position, name in enumerate(listed):
        if name not in found:
            raise ConfigurationError(
                f"`behaviors` lists `{name}`, and there is no folder of that name.",
                where=where,
                hint=f"{nearest(name, found)} Or add behaviors/{position + 1}_{name}.",
            )
        if name in listed[:position]:
            raise ConfigurationError(f"`behaviors` lists `{name}` twice.", where=where, hint="Keep one of the two.")
    numbered = [name for name in listed if found[name].label.number is not None]
    if (by_number := sorted(numbered, key=lambda name: found[name].label.order)) != numbered:
        raise ConfigurationError(
            "`behaviors` lists the behaviors in another order than their numbers.",
            where=where,
            hint=f"By number the order is {', '.join(by_number)}. Renumber the folders, or correct the list.",
        )
    folder.warnings.extend(
        f"{at.path}: this behavior is not listed in bot_config.json and is left out."
        for name, at in found.items()
        if name not in listed
    )


def _check_name(folder: BotFolder, at: Named, *, what: str) -> None:
    if at.name in RESERVED:
        raise ConfigurationError(
            f"`{at.name}` is a reserved word and cannot be the name of a {what}.",
            where=folder.place(at.path),
            hint=f"Choose another name. Reserved are {', '.join(sorted(RESERVED))}.",
        )
    if not is_name(at.name):
        raise ConfigurationError(
            f"`{at.name}` cannot be the name of a {what}.",
            where=folder.place(at.path),
            hint="Use small letters, digits and single underscores, after a number that orders: 3_build_knowledge.",
        )


def _check_tools(
    folder: BotFolder, config_path: str, bot: str, places: Sequence[Named], actions: Sequence[ActionDefinition]
) -> None:
    """Every tool has a name of its own that clients accept."""
    named = {at.name: at for at in places}
    taken: dict[str, ToolName] = {}
    tools = (*gateway_tool_names(bot), *tool_names(bot, named, (action.name for action in actions)))
    for tool in tools:
        where = folder.place(named[tool.behavior].path if tool.behavior else config_path)
        if len(tool.name) > MAX_TOOL_NAME:
            raise ConfigurationError(
                f"The tool name `{tool.name}` has {len(tool.name)} characters; clients accept {MAX_TOOL_NAME}.",
                where=where,
                hint="Shorten the name of the bot, the behavior or the action.",
            )
        if (other := taken.setdefault(tool.name, tool)) is not tool:
            raise ConfigurationError(
                f"Two tools would be called `{tool.name}`: {_described(other)} and {_described(tool)}.",
                where=where,
                hint="Rename the behavior or the action.",
            )


def _note_unbuilt(folder: BotFolder, behaviors: Sequence[BehaviorDefinition]) -> None:
    """Warn of what is rendered from a document that no behavior builds; the project may bring it along."""
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
    config: BotConfig,
    config_path: str,
    behaviors: Sequence[BehaviorDefinition],
    actions: Sequence[ActionDefinition],
) -> dict[Position, Gate]:
    """The gate of each action in each behavior: from the general to the particular, the last word counts."""
    known = [action.name for action in actions]
    positions = [Position(behavior=behavior.name, action=name) for behavior in behaviors for name in known]
    names = {*known, *(f"{each.behavior}.{each.action}" for each in positions)}
    for key in config.gates:
        if key not in names:
            raise ConfigurationError(
                f"`gates` names `{key}`, which is no action and no behavior.action.",
                where=folder.place(config_path),
                hint=nearest(key, sorted(names)),
            )
    own = {behavior.name: _own_gates(folder, behavior) for behavior in behaviors}
    gates: dict[Position, Gate] = {}
    for action in actions:
        general = _changed(action.gate, config.gates.get(action.name))
        for behavior in behaviors:
            position = Position(behavior=behavior.name, action=action.name)
            nearer = _changed(general, own[behavior.name].get(action.name))
            gates[position] = _changed(nearer, config.gates.get(f"{behavior.name}.{action.name}"))
    _check_policies(folder, config_path, behaviors, [action.name for action in actions if action.workflow], gates)
    return gates


def _own_gates(folder: BotFolder, behavior: BehaviorDefinition) -> dict[str, GateKeys]:
    parts = folder.subfolders(behavior.folder)
    files = {name: f"{parts[name].path}/action_config.json" for name in behavior.additions}
    return {name: folder.read(path, GateKeys) for name, path in files.items() if path in folder.files}


def _changed(gate: Gate, keys: GateKeys | None) -> Gate:
    if keys is None:
        return gate
    given = {name: getattr(keys, name) for name in GateKeys.model_fields}
    return replace(gate, **{name: value for name, value in given.items() if value is not None})


def _check_policies(
    folder: BotFolder,
    config_path: str,
    behaviors: Sequence[BehaviorDefinition],
    workflow: Sequence[str],
    gates: Mapping[Position, Gate],
) -> None:
    for behavior in behaviors:
        policies = [gates[Position(behavior=behavior.name, action=name)].policy for name in workflow]
        left = [policy for policy in policies if policy != "skip"]
        if not left:
            raise ConfigurationError(
                f"Every action of `{behavior.name}` is skipped.",
                where=folder.place(config_path),
                hint="Leave the behavior out of `behaviors`, or give one of its actions another policy.",
            )
        if left[-1] == "combine_next":
            raise ConfigurationError(
                f"The last action of `{behavior.name}` has the policy combine_next, and nothing comes after it.",
                where=folder.place(config_path),
                hint="Give it the policy manual or auto.",
            )

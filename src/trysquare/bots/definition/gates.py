"""Gates of a bot's actions: what its files say of each, the most specific last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trysquare.bots.definition import files as schema
from trysquare.bots.definition import model
from trysquare.bots.definition.folder import BotFolder, nearest
from trysquare.bots.workflow.machine import Position

_AUTO_ACTIONS = frozenset({"initialize_project"})


def start_gate(name: str, bot: schema.BotConfig) -> model.Gate:
    return model.Gate(
        policy="auto" if name in _AUTO_ACTIONS else "manual",
        proof=bot.proof,
        budget_tokens=bot.budget_tokens or model.DEFAULT_BUDGET,
    )


def load_gates(
    folder: BotFolder,
    config: schema.BotConfig,
    config_path: str,
    behaviors: Sequence[model.BehaviorDefinition],
    actions: Sequence[model.ActionDefinition],
) -> dict[Position, model.Gate]:
    """The gate of each action in each behavior; the most specific setting wins."""
    known = [action.name for action in actions]
    own = {behavior.name: _own_gates(folder, behavior) for behavior in behaviors}
    positions = [
        Position(behavior=behavior.name, action=action.name)
        for behavior in behaviors
        for action in actions
        if action.is_of(behavior.name)
    ]
    names = {*known, *own, *(f"{each.behavior}.{each.action}" for each in positions)}
    for key in config.gates:
        if key not in names:
            message = f"Unknown action or behavior `{key}` in `gates`."
            hint = nearest(key, sorted(names))
            folder.report(folder.error(config_path, message, hint=hint, key=key, code="unknown_name"))
    gates: dict[Position, model.Gate] = {}
    for action in actions:
        general = changed_gate(action.gate, config.gates.get(action.name))
        for behavior in behaviors:
            if not action.is_of(behavior.name):
                continue
            position = Position(behavior=behavior.name, action=action.name)
            whole = None if behavior.name in known else config.gates.get(behavior.name)
            nearer = changed_gate(changed_gate(general, whole), own[behavior.name].get(action.name))
            gate = changed_gate(nearer, config.gates.get(f"{behavior.name}.{action.name}"))
            gates[position] = _with_people(folder, config, config_path, gate)
    _check_policies(folder, config_path, behaviors, [action.name for action in actions if action.workflow], gates)
    return gates


def _own_gates(folder: BotFolder, behavior: model.BehaviorDefinition) -> dict[str, schema.GateKeys]:
    parts = folder.subfolders(behavior.folder)
    files = {name: f"{parts[name].path}/action_config.json" for name in behavior.additions}
    return {name: folder.read_optional(path, schema.GateKeys) for name, path in files.items() if path in folder.files}


def changed_gate(gate: model.Gate, keys: schema.GateKeys | None) -> model.Gate:
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
            error = folder.error(path, f"Unknown team `{name}`.", hint=hint, key=name, code="unknown_name")
            if str(error) not in map(str, folder.errors):
                folder.report(error)
    return tuple(dict.fromkeys(found))


def _check_policies(
    folder: BotFolder,
    config_path: str,
    behaviors: Sequence[model.BehaviorDefinition],
    workflow: Sequence[str],
    gates: Mapping[Position, model.Gate],
) -> None:
    for behavior in behaviors:
        places = [Position(behavior=behavior.name, action=name) for name in workflow]
        policies = [gates[each].policy for each in places if each in gates]
        left = [policy for policy in policies if policy != "skip"]
        if not policies:
            continue  # said by `_check_owners`
        if not left:
            error = folder.error(
                config_path,
                f"Every action of `{behavior.name}` is skipped.",
                hint="Leave the behavior out of `behaviors`, or give one of its actions another policy.",
                code="dead_end",
            )
            folder.report(error)
        elif left[-1] == "combine_next":
            error = folder.error(
                config_path,
                f"The last action of `{behavior.name}` has the policy combine_next, and nothing comes after it.",
                hint="Give it the policy manual or auto.",
                key="combine_next",
                code="dead_end",
            )
            folder.report(error)

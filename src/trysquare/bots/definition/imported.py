"""A bot made from an outline: its files, and the state that the checked items give its first run."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trysquare.bots.definition.check import check_folder
from trysquare.bots.definition.checklists import Group, Item, Outline
from trysquare.bots.definition.folder import MAX_TOOL_NAME, RESERVED, TOOL, is_name, tool_name
from trysquare.bots.parameters import OF_ACTION
from trysquare.bots.workflow import machine
from trysquare.bots.workflow.machine import INITIALIZE, Entry, Plan, Position, RunState
from trysquare.core.errors import ConfigurationError
from trysquare.core.text import truncate

_BOT, _BEHAVIOR, _LEAST = 16, 20, 8
"""Longest names of a bot and a behavior, and the least that has to be left for an action."""
_TAKEN = RESERVED | OF_ACTION.keys() | {INITIALIZE, "correct_bot"}
"""Names that mean something in every bot, and cannot be those of an item."""
_NUMBER = re.compile(r"\d+(?:[.)]\s+|-)|\([^()]*\)")
"""What a title has beside its words: its number, and remarks in parentheses."""
_MARK = re.compile(r"\[\w{1,8}\](?!\()")
"""Marks of an item such as `[P]` and `[US1]`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """An item as an action of a behavior."""

    position: Position
    item: Item
    file: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedBot:
    """A bot made from an outline, not written yet."""

    name: str
    files: dict[str, str]
    steps: tuple[Step, ...]
    behaviors: tuple[str, ...]


def bot_of(outline: Outline, name: str | None = None) -> ImportedBot:
    """The bot of an outline: a behavior for each group, an action for each item."""
    if name is None:
        name = _name_of(_NUMBER.sub("", outline.name), _BOT) or "imported"
    elif not is_name(name):
        hint = "Use lower-case letters, digits and single underscores: my_bot."
        raise ConfigurationError(f"invalid bot name `{name}`.", where="--name", hint=hint)
    behaviors = _distinct((_name_of(_NUMBER.sub("", each.title), _BEHAVIOR) for each in outline.groups), "part")
    limit = MAX_TOOL_NAME - len(name) - max(map(len, behaviors)) - 2
    if limit < _LEAST:
        hint = f"Choose one of at most {len(name) - _LEAST + limit} characters with --name."
        raise ConfigurationError(f"the name `{name}` is too long for the names of its tools.", hint=hint)
    steps = _steps(name, behaviors, outline.groups, limit)
    files = {path: _json(content) for path, content in _documents(name, outline, behaviors, steps).items()}
    files["README.md"] = _readme(name, outline, behaviors)
    return ImportedBot(name=name, files=files, steps=tuple(steps), behaviors=tuple(behaviors))


def write_imported(bot: ImportedBot, folder: Path) -> None:
    """Write a bot into a folder that does not exist yet; it is checked first, beside its place."""
    if folder.exists():
        hint = "Choose another name with --name, or another directory with --into."
        raise ConfigurationError("already exists.", where=str(folder), hint=hint)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{bot.name}-", dir=folder.parent) as place:
            made = Path(place) / bot.name
            for path, text in bot.files.items():
                file = made / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            if findings := check_folder(made).findings:
                message, hint = f"the bot has a mistake: {findings[0]}", "Nothing was written. Report it."
                raise ConfigurationError(message, where=str(folder), hint=hint)
            shutil.move(made, folder)
    except OSError as error:
        raise ConfigurationError(f"the bot cannot be written: {error.strerror}.", where=str(folder)) from None


def with_checked(
    plan: Plan, state: RunState, steps: Iterable[Step], *, at: str, by: str
) -> tuple[RunState, tuple[Entry, ...]]:
    """The state with the checked items completed, at the first open one; and the lines of its history."""
    added = list[Entry]()
    for step in steps:
        if step.item.done:
            opened = machine.open_action(plan, state, step.position, at=at, by=by)
            reason = f"checked in {step.file}:{step.item.line}"
            closed = machine.close(plan, opened.state, at=at, by=by, reason=reason)
            state, added = closed.state, [*added, *opened.added, *closed.added]
    left = [each for each in plan.order if not state.is_completed(each)]
    pointers = dict(state.pointers)
    for each in left:
        if state.is_completed(Position(behavior=each.behavior, action=pointers.get(each.behavior, each.action))):
            pointers[each.behavior] = each.action
    state = replace(state, pointers=pointers)
    if not left:
        return replace(state, finished=True), tuple(added)
    return replace(machine.point_to(state, left[0]), delivered=False), tuple(added)


def _steps(name: str, behaviors: Sequence[str], groups: Sequence[Group], limit: int) -> list[Step]:
    used = {tool_name(name, suffix) for suffix in RESERVED} | {tool_name(name, each, TOOL) for each in behaviors}
    taken, steps = {*behaviors, *_TAKEN}, list[Step]()
    for behavior, group in zip(behaviors, groups, strict=True):
        prefix = tool_name(name, behavior, "")
        # What is done comes first: closing an action moves on to the one after it, done or not.
        for item in sorted(group.items, key=lambda item: not item.done):
            action = _free(_name_of(_MARK.sub("", item.text), limit) or "item", limit, taken, used, prefix)
            taken.add(action)
            used.add(tool_name(name, behavior, action))
            position = Position(behavior=behavior, action=action)
            steps.append(Step(position=position, item=item, file=group.file))
    return steps


def _free(wanted: str, limit: int, taken: set[str], tools: set[str], prefix: str) -> str:
    """A name that nothing has, made of the wanted one."""
    found, number = wanted, 1
    while found in taken or f"{prefix}{found}" in tools:
        number += 1
        found = f"{wanted[: limit - len(str(number)) - 1].rstrip('_')}_{number}"
    return found


def _distinct(names: Iterable[str], otherwise: str) -> list[str]:
    found = list[str]()
    for name in names:
        found.append(_free(name or otherwise, _BEHAVIOR, {*found, *_TAKEN}, set(), ""))
    return found


def _name_of(text: str, limit: int) -> str:
    """A text as a name of at most so many characters, cut between words where that leaves most of it."""
    plain = unicodedata.normalize("NFKD", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)).encode("ascii", "ignore")
    name = re.sub(r"[^a-z0-9]+", "_", plain.decode().lower().replace("'", "")).strip("_")
    if len(name) <= limit:
        return name
    cut = name[: limit + 1].rpartition("_")[0]
    return cut if len(cut) * 2 > limit else name[:limit].strip("_")


def _documents(name: str, outline: Outline, behaviors: Sequence[str], steps: Sequence[Step]) -> dict[str, Any]:
    about = f"The items of {outline.title}."
    read = [f"Read {', '.join(outline.documents)} before the first item."] if outline.documents else []
    rules = ["Work on one item at a time.", *read, "Ask the user before you close an action."]
    # With its number, as the folder: a name that begins with one, such as `2024_plans`, is read as it is meant.
    folders = {behavior: f"{number}_{behavior}" for number, behavior in enumerate(behaviors, start=1)}
    documents: dict[str, Any] = {
        "bot_config.json": {
            "name": name,
            "description": truncate(about, 200),
            "actions": {step.position.action: _action(step, folders[step.position.behavior]) for step in steps},
        },
        "instructions.json": {"goal": f"Every item of {outline.title} is done.", "instructions": rules},
    }
    for behavior, group in zip(behaviors, outline.groups, strict=True):
        read = [f"Read {', '.join(group.documents)}."] if group.documents else []
        content = {"description": truncate(group.title, 200), "goal": group.title}
        content |= {"instructions": [*read, *group.texts]} if read or group.texts else {}
        documents[f"behaviors/{folders[behavior]}/instructions.json"] = content
    return documents


def _action(step: Step, folder: str) -> dict[str, Any]:
    item = step.item
    where = f"It is line {item.line} of {step.file}" + (f", under {' / '.join(item.under)}" if item.under else "")
    return {
        "behaviors": [folder],
        "description": truncate(item.text, 200),
        "instructions": [item.text, *item.notes, f"{where}. When it is done, tick its box there."],
        "trigger_patterns": [truncate(item.text, 80)],
    }


def _readme(name: str, outline: Outline, behaviors: Sequence[str]) -> str:
    rows = "".join(
        f"| `behaviors/{number}_{behavior}/instructions.json` | {group.title.replace('|', '/')}: "
        f"{len(group.items)} items of `{group.file}` |\n"
        for number, (behavior, group) in enumerate(zip(behaviors, outline.groups, strict=True), start=1)
    )
    return (
        f"# {name}\n\nMade by `trysquare bot import` from {outline.title} ({outline.layout}).\n\n"
        "| file | holds |\n|---|---|\n"
        "| `bot_config.json` | an action for each item, with its text and the behavior that has it |\n"
        "| `instructions.json` | what holds for all of them |\n"
        f"{rows}\nRun `trysquare bot check .` after each change.\n"
    )


def _json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

"""`trysquare bot import`: a project of spec-kit or OpenSpec, or a Markdown checklist, as a bot."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from trysquare.bots.definition.checklists import Outline, read_outline
from trysquare.bots.definition.imported import ImportedBot, bot_of, with_checked, write_imported
from trysquare.bots.workflow.machine import RunState
from trysquare.bots.workflow.runs import Change
from trysquare.cli.bot_open import opened_bot
from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_place_options
from trysquare.cli.terminal import count, print_json
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError
from trysquare.store.audit import utc_now

_SHORT = 75
"""Number of tools above which the shorter listing is named."""


def _import(arguments: argparse.Namespace) -> None:
    outline = read_outline(arguments.path)
    bot = bot_of(outline, arguments.name)
    folder: Path = arguments.into / bot.name
    if folder.exists():
        hint = "Choose another name with --name, or another directory with --into."
        raise ConfigurationError("already exists.", where=str(folder), hint=hint)
    at = None
    if not arguments.dry_run:
        write_imported(bot, folder)
        try:
            at = _complete(arguments, bot, folder)
        except BaseException:
            # Nothing else is in the folder that was just made.
            shutil.rmtree(folder)
            raise
    report = _report(outline, bot, folder, at, written=not arguments.dry_run)
    if arguments.json:
        print_json(report)
    else:
        _print(report, bot, folder)


def _complete(arguments: argparse.Namespace, bot: ImportedBot, folder: Path) -> str | None:
    """Complete what is checked in the project's run; a run that has begun is left alone."""
    arguments.bot, arguments.run = [str(folder)], ""
    if not any(step.item.done for step in bot.steps):
        return None
    principal = local_principal().subject
    with opened_bot(arguments) as opened:
        project, run = opened.project(), arguments.run

        def change(state: RunState) -> Change:
            if state.version > 0:
                message = f"a bot with the name `{bot.name}` has worked in {project.root} already."
                raise ConfigurationError(message, where="bot import", hint="Choose another name with --name.")
            done, added = with_checked(opened.plan, state, bot.steps, at=utc_now(), by=principal)
            return Change(state=done, added=added, audit={"imported": len(added)})

        moved = project.state.move(change, kind="import", principal=principal, run=run)
    return None if moved.state.finished else str(moved.state.current)


def _report(outline: Outline, bot: ImportedBot, folder: Path, at: str | None, *, written: bool) -> dict[str, Any]:
    done = sum(1 for step in bot.steps if step.item.done)
    first = next((str(step.position) for step in bot.steps if not step.item.done), None)
    return {
        "layout": outline.layout,
        "bot": bot.name,
        "folder": str(folder),
        "written": written,
        "files": sorted(bot.files),
        "behaviors": [
            {
                "name": name,
                "title": group.title,
                "file": group.file,
                "items": len(group.items),
                "done": sum(1 for item in group.items if item.done),
            }
            for name, group in zip(bot.behaviors, outline.groups, strict=True)
        ],
        "items": len(bot.steps),
        "done": done,
        "current_action": at or first,
        "left_out": list(outline.left_out),
    }


def _print(report: dict[str, Any], bot: ImportedBot, folder: Path) -> None:
    did = "Created" if report["written"] else "Would create"
    done = f"{report['done']} of {count(report['items'], 'item')} done"
    print(f"{did} {folder} from {report['layout']}: {count(len(bot.behaviors), 'behavior')}, {done}.")
    for each in report["behaviors"]:
        print(f"  {each['name']}: {each['done']} of {each['items']} ({each['file']})")
    for each in report["left_out"]:
        print(f"  left out: {each}")
    if not report["written"]:
        print("Nothing was written.")
        return
    print(f"The current action is {report['current_action']}. Next:" if report["current_action"] else "All is done.")
    profile = " --profile levels" if len(bot.steps) > _SHORT else ""
    print(f"  trysquare bot check {folder}")
    print(f"  trysquare serve --bot {folder}{profile}")


IMPORT = Command(
    _import,
    (
        option("path", metavar="PATH", type=Path, help="a project, the folder of a feature or change, or a file"),
        option("--name", metavar="NAME", help="name of the bot (default: that of the project, feature or file)"),
        option("--into", metavar="FOLDER", type=Path, default=Path(), help="parent of the bot's directory"),
        option("--dry-run", action="store_true", help="show what would be created, and write nothing"),
        JSON,
        add_place_options,
    ),
    "make a bot of a spec-kit or OpenSpec project, or of a Markdown checklist",
    examples=(
        "trysquare bot import TODO.md --dry-run",
        "trysquare bot import . --name shop --into bots",
        "trysquare bot import openspec/changes/add-search",
    ),
)

"""`trysquare bot new` and `trysquare bot check`: a bot's folder, written and proved."""

from __future__ import annotations

import argparse
from typing import Any

from trysquare.bots.checking import check_bot, other_documents
from trysquare.bots.definition import BotDefinition
from trysquare.bots.loading import load_bot
from trysquare.bots.scanning.self_test import self_test
from trysquare.bots.template import write_new_bot
from trysquare.cli.output import count, print_json, styled


def new(arguments: argparse.Namespace) -> int:
    """Write a small bot."""
    folder = arguments.into / arguments.name
    files = write_new_bot(folder, arguments.name)
    tools = len(load_bot(folder).tool_names())
    if arguments.json:
        print_json({"folder": str(folder), "files": files, "tools": tools})
        return 0
    print(f"{folder} has a bot of {count(tools, 'tool')} in {count(len(files), 'file')}. Next:")
    print(f"  trysquare bot check {folder}")
    print(f"  trysquare serve --bot {folder}")
    return 0


def check(arguments: argparse.Namespace) -> int:
    """Load the bot, let its rules test themselves, explore its workflow, and tell what is missing."""
    definition = load_bot(arguments.folder)
    problems = [str(problem) for rule in definition.all_rules for problem in self_test(rule)]
    explored = check_bot(definition)
    problems += [str(each) for each in explored.defects]
    problems += other_documents(definition)
    report = {**_report(definition, problems), "states": explored.states, "exhaustive": explored.exhaustive}
    if arguments.json:
        print_json(report)
    else:
        _show(report)
    return 1 if problems else 0


def _report(definition: BotDefinition, problems: list[str]) -> dict[str, Any]:
    rules = definition.all_rules
    return {
        "bot": definition.name,
        "behaviors": [behavior.name for behavior in definition.behaviors],
        "actions": [action.name for action in definition.actions],
        "tools": len(definition.tool_names()),
        "rules": len(rules),
        "tested_rules": sum(1 for rule in rules if rule.scanner is not None),
        "problems": problems,
        "warnings": list(definition.warnings),
        "missing": [*definition.missing],
    }


def _show(report: dict[str, Any]) -> None:
    behaviors, actions = len(report["behaviors"]), len(report["actions"])
    print(styled(report["bot"], "bold"))
    print(f"  {count(behaviors, 'behavior')}, {count(actions, 'action')}, {count(report['tools'], 'tool')}")
    print(f"  {count(report['rules'], 'rule')}, {report['tested_rules']} of them tested with their own examples")
    explored = "all" if report["exhaustive"] else "part of"
    print(f"  {count(report['states'], 'state')}: {explored} what the workflow can reach")
    for name, style in (("problems", "red"), ("warnings", "yellow"), ("missing", "dim")):
        for line in report[name]:
            print(styled(f"  {name.removesuffix('s')}: {line}", style))
    print("The bot is right." if not report["problems"] else f"{count(len(report['problems']), 'problem')} found.")

"""Rules test themselves: what a rule says not to do must be caught, and what it says to do must pass."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from trysquare.bots.definition import BotDefinition
from trysquare.bots.rules import CommandScanner, Rule, Scanner
from trysquare.bots.scanning.findings import Problem, ScannerFailed, Selected, shortened
from trysquare.bots.scanning.running import is_command, run_scanner
from trysquare.core.errors import ConfigurationError


def self_test(rule: Rule) -> list[Problem]:
    """What is wrong with a rule by its own examples; a rule without a scanner is for people and has nothing to test."""
    if rule.scanner is None:
        return []
    try:
        caught = _caught(rule.scanner, (*rule.dont.examples, *rule.do.examples))
    except ScannerFailed as error:
        return [_problem(rule, f"The rule cannot be tested: {error}.")]
    missed = [each for index, each in enumerate(rule.dont.examples) if index not in caught]
    hurt = [each for index, each in enumerate(rule.do.examples, start=len(rule.dont.examples)) if index in caught]
    return [
        *(_problem(rule, f"The rule does not catch its own don't example: {shortened(each)}") for each in missed),
        *(_problem(rule, f"The rule objects to its own do example: {shortened(each)}") for each in hurt),
    ]


def require_sound_rules(definition: BotDefinition) -> None:
    """Refuse a bot of which a rule does not do what its own examples say."""
    problems = [problem for rule in definition.all_rules for problem in self_test(rule)]
    if problems:
        more = f" `trysquare bot check` tells of {len(problems) - 1} more." if len(problems) > 1 else ""
        raise ConfigurationError(
            problems[0].message,
            where=f"{definition.root}/{problems[0].file}",
            hint=f"Mend the scanner or the example.{more}",
        )


def _problem(rule: Rule, message: str) -> Problem:
    return Problem(rule=rule.name, file=rule.file, message=message)


def _caught(scanner: Scanner, examples: tuple[Any, ...]) -> set[int]:
    if not is_command(scanner):
        selected = [Selected(value=each, file=f"example {index + 1}") for index, each in enumerate(examples)]
        return {hit.index for hit in run_scanner(scanner, selected, None)}
    with tempfile.TemporaryDirectory() as folder:
        selected = [_as_file(Path(folder), scanner, index, each) for index, each in enumerate(examples)]
        return {hit.index for hit in run_scanner(scanner, selected, Path(folder))}


def _as_file(folder: Path, scanner: Scanner, index: int, example: Any) -> Selected:
    globs = scanner.files if isinstance(scanner, CommandScanner) else ()
    ending = globs[0].rpartition(".")[2] if globs and "." in globs[0] else "txt"
    name = f"example_{index + 1}.{ending}"
    (folder / name).write_text(str(example), encoding="utf-8")
    return Selected(value=str(example), file=name)

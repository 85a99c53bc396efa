"""Loading rules: each JSON file of a rules folder becomes a rule with its scanner."""

from __future__ import annotations

from shutil import which

from trysquare.bots.bot_files import CommandEntry, ExamplesEntry, PythonEntry, RegexEntry, RuleFile, SchemaEntry
from trysquare.bots.folder import BotFolder
from trysquare.bots.rules import CommandScanner, Examples, PythonScanner, RegexScanner, Rule, Scanner, SchemaScanner
from trysquare.bots.scanning.callables import callable_problem
from trysquare.core.errors import ConfigurationError


def load_rules(folder: BotFolder, path: str) -> tuple[Rule, ...]:
    """The rules of a folder, the most important first."""
    rules = [_load_rule(folder, each.path, each.name) for each in folder.json_files(path).values()]
    return tuple(sorted(rules, key=lambda rule: rule.priority))


def _load_rule(folder: BotFolder, path: str, name: str) -> Rule:
    file = folder.read(path, RuleFile)
    scanner = _scanner(file.scanner, file.description, folder.place(path)) if file.scanner else None
    if scanner is not None:
        # Without them nobody can tell whether the scanner finds what the rule means.
        folder.missing.extend(f"{path}: {side}.examples" for side in ("do", "dont") if not getattr(file, side).examples)
    return Rule(
        name=name,
        file=path,
        description=file.description,
        do=_examples(file.do),
        dont=_examples(file.dont),
        scanner=scanner,
        severity=file.severity,
        priority=file.priority,
    )


def _examples(entry: ExamplesEntry) -> Examples:
    return Examples(description=entry.description, examples=tuple(entry.examples))


def _scanner(entry: RegexEntry | SchemaEntry | PythonEntry | CommandEntry, said: str, where: str) -> Scanner:
    message, target, files = entry.message or said, entry.applies_to, tuple(entry.files)
    if isinstance(entry, RegexEntry):
        return RegexScanner(
            pattern=entry.pattern,
            target=target,
            message=message,
            match=entry.match,
            ignore_case=entry.ignore_case,
            files=files,
        )
    if isinstance(entry, SchemaEntry):
        return SchemaScanner(schema=entry.schema_, target=target, message=message)
    if isinstance(entry, CommandEntry):
        _require_program(entry.argv[0], where)
        return CommandScanner(argv=tuple(entry.argv), target=target, message=message, files=files)
    _require_callable(entry.callable, where)
    return PythonScanner(callable=entry.callable, target=target, message=message, options=entry.options, files=files)


def _require_callable(dotted: str, where: str) -> None:
    if (told := callable_problem(dotted)) is not None:
        raise ConfigurationError(
            f"The scanner `{dotted}` cannot be found: {told}.",
            where=where,
            hint="Correct the name, or install the package that holds it.",
        )


def _require_program(name: str, where: str) -> None:
    # A path such as `scripts/check.sh` lies in the project, which is not known here.
    if "/" in name and not name.startswith("/"):
        return
    if which(name) is None:
        raise ConfigurationError(
            f"There is no program `{name}`, which this rule runs.",
            where=where,
            hint="Install it, or remove the scanner of the rule.",
        )

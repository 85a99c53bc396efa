"""Loading rules: each JSON file of a rules folder becomes a rule with its scanner."""

from __future__ import annotations

from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from shutil import which

from trysquare.bots.bot_files import CommandEntry, ExamplesEntry, PythonEntry, RegexEntry, RuleFile, SchemaEntry
from trysquare.bots.folder import BotFolder
from trysquare.bots.rules import CommandScanner, Examples, PythonScanner, RegexScanner, Rule, Scanner, SchemaScanner
from trysquare.core.errors import ConfigurationError


def load_rules(folder: BotFolder, path: str) -> tuple[Rule, ...]:
    """The rules of a folder, the most important first."""
    rules = [_load_rule(folder, each.path, each.name) for each in folder.json_files(path).values()]
    return tuple(sorted(rules, key=lambda rule: rule.priority))


def _load_rule(folder: BotFolder, path: str, name: str) -> Rule:
    file = folder.read(path, RuleFile)
    scanner = _scanner(file.scanner, file.description, folder.place(path)) if file.scanner else None
    if isinstance(scanner, CommandScanner) and which(scanner.argv[0]) is None:
        folder.missing.append(f"{path}: the program `{scanner.argv[0]}`")
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
        return CommandScanner(argv=tuple(entry.argv), target=target, message=message, files=files)
    _require_module(entry.callable, where)
    return PythonScanner(callable=entry.callable, target=target, message=message, options=entry.options, files=files)


def _require_module(dotted: str, where: str) -> None:
    module = dotted.partition(":")[0]
    if not module_exists(module):
        raise ConfigurationError(
            f"The scanner `{dotted}` cannot be found: there is no module `{module}`.",
            where=where,
            hint="Correct the name, or install the package that holds it.",
        )


def module_exists(dotted: str) -> bool:
    """Whether a module can be imported, found out without running any of it."""
    pieces = dotted.split(".")
    if not all(piece.isidentifier() for piece in pieces):
        return False
    try:
        found: ModuleSpec | None = find_spec(pieces[0])
    except ValueError:
        return False  # a module that was made by hand, such as `__main__`, has no place to look in
    for count in range(2, len(pieces) + 1):
        if found is None or found.submodule_search_locations is None:
            return False
        found = PathFinder.find_spec(".".join(pieces[:count]), list(found.submodule_search_locations))
    return found is not None

"""Scanners that are programs, in the sandbox: Python functions and commands."""

from __future__ import annotations

import ast
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trysquare.bots.sandbox import ProgramFailed, ask_worker, run_confined
from trysquare.bots.scanners.base import CommandScanner, Hit, PythonScanner, ScannerFailed, Selected
from trysquare.core.json import JsonObject, as_list, as_object

BOT = "{bot}/"
"""At the beginning of an argument, the bot's folder."""


def asked(task: Mapping[str, Any], *, seconds: float, what: str, **places: Path | None) -> Any:
    """The result of a task of the worker, or `ScannerFailed`."""
    try:
        return ask_worker(task, seconds=seconds, what=what, **places)
    except ProgramFailed as error:
        raise ScannerFailed(str(error)) from None


def scan_python(
    scanner: PythonScanner, selected: Sequence[Selected], root: Path | None, *, seconds: float
) -> list[Hit]:
    place, _, name = scanner.callable.partition(":")
    own = {"module": place} if scanner.bot is None or not place.endswith(".py") else {"file": str(scanner.bot / place)}
    task = {**own, "name": name, "options": dict(scanner.options), "values": [each.value for each in selected]}
    what = f"the scanner `{scanner.callable}`"
    with tempfile.TemporaryDirectory() as empty:
        answers = asked(task, seconds=seconds, what=what, root=root or Path(empty), bot=scanner.bot)
    return [Hit(index=index, line=line, message=message or None) for index, line, message in answers]


def callable_problem(dotted: str) -> str | None:
    """Why `package.module:attribute` cannot be used, or None; nothing is imported."""
    module, _, name = dotted.partition(":")
    found = _module(module)
    if found is None:
        return f"module `{module}` not found"
    tree = _parsed(found)
    if tree is None:
        return None
    if isinstance(tree, str):
        return f"the module `{module}` cannot be read: {tree}"
    names = names_of_module(tree)
    # A star import or `__getattr__` can provide any name.
    return None if name in names or names & {"*", "__getattr__"} else f"the module `{module}` has no `{name}`"


def _module(dotted: str) -> ModuleSpec | None:
    pieces = dotted.split(".")
    if not all(piece.isidentifier() for piece in pieces):
        return None
    try:
        found: ModuleSpec | None = find_spec(pieces[0])
    except ValueError:
        return None  # a module without a spec, such as `__main__`
    for count in range(2, len(pieces) + 1):
        if found is None or found.submodule_search_locations is None:
            return None
        found = PathFinder.find_spec(".".join(pieces[:count]), list(found.submodule_search_locations))
    return found


def _parsed(found: ModuleSpec) -> ast.Module | str | None:
    """The code of a module, an error message, or None without source."""
    if found.origin is None or not found.origin.endswith(".py"):
        return None
    try:
        return ast.parse(Path(found.origin).read_bytes())
    except OSError as error:
        return error.strerror or str(error)
    except (SyntaxError, ValueError, RecursionError) as error:
        return str(error)


def names_of_module(tree: ast.Module) -> set[str]:
    """Names that a module binds at its top level."""
    return set(_names(tree.body))


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """Names that a module binds, also within `if`, `try` and `with`."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (each.asname or each.name.partition(".")[0] for each in names)
            case ast.Assign() | ast.AnnAssign():
                yield from (each.id for each in ast.walk(statement) if isinstance(each, ast.Name))
            case ast.If(body=first, orelse=other):
                yield from _names([*first, *other])
            case ast.Try(body=first, orelse=other, finalbody=last, handlers=handlers):
                yield from _names([*first, *other, *last, *(each for one in handlers for each in one.body)])
            case ast.With(body=inner):
                yield from _names(inner)
            case _:
                continue


_FINDING = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+)(?::\d+)?:\s*(?P<message>.+)$")
_FILE_KEYS = ("file", "filename", "path")
_LINE_KEYS = ("line", "row", "lineno")


def scan_command(scanner: CommandScanner, selected: Sequence[Selected], root: Path, *, seconds: float) -> list[Hit]:
    """Run a program over files and read its findings."""
    paths = list(dict.fromkeys(each.file for each in selected))
    if not paths:
        return []
    # A path with a leading dash would be read as an option.
    safe = [f"./{path}" if path.startswith("-") else path for path in paths]
    own = [_in_bot(each, scanner.bot) for each in scanner.argv]
    argv = [piece for given in own for piece in (safe if given == "{files}" else [given])]
    what = f"the command `{scanner.argv[0]}`"
    readable = () if scanner.bot is None else (scanner.bot,)
    try:
        ended = run_confined(argv, root=root, seconds=seconds, what=what, readable=readable)
    except ProgramFailed as error:
        raise ScannerFailed(str(error)) from None
    code = ended.status
    output, errors = (each.decode("utf-8", "replace") for each in (ended.output, ended.errors))
    indexes = {str(base / path): index for base in (root, root.resolve()) for index, path in enumerate(paths)}
    hits = [hit for finding in _findings(output, errors) if (hit := _file_hit(finding, indexes, root)) is not None]
    if code != 0 and not hits:
        last = (output.strip() or errors.strip()).splitlines()[-1:] or ["no output"]
        raise ScannerFailed(f"{what} ended with {code}: {last[0][:300]}")
    return hits


def _in_bot(argument: str, bot: Path | None) -> str:
    return str(bot / argument.removeprefix(BOT)) if bot is not None and argument.startswith(BOT) else argument


def _findings(output: str, errors: str) -> Iterator[tuple[str, int, str]]:
    text = output.strip()
    if text.startswith(("[", "{")):
        yield from _from_json(text)
        return
    for line in (*text.splitlines(), *errors.splitlines()):
        if found := _FINDING.match(line):
            yield found["file"], int(found["line"]), found["message"].strip()


def _from_json(text: str) -> Iterator[tuple[str, int, str]]:
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise ScannerFailed(f"the output is not valid JSON (line {error.lineno}): {error.msg}") from None
    entries = [as_object(each) for each in (as_list(value) if isinstance(value, list) else [value])]
    for entry in filter(None, entries):
        line = _first(as_object(entry.get("location")) or entry, _LINE_KEYS, 1)
        yield _first(entry, _FILE_KEYS, ""), line if isinstance(line, int) else 1, str(entry.get("message", ""))


def _first(entry: JsonObject, keys: tuple[str, ...], default: Any) -> Any:
    return next((entry[key] for key in keys if key in entry), default)


def _file_hit(finding: tuple[str, int, str], indexes: Mapping[str, int], root: Path) -> Hit | None:
    file, line, message = finding
    # Joining keeps an absolute path; a program may also have resolved links on the way to the directory.
    index = indexes.get(str(root / file), indexes.get(str((root / file).resolve())))
    return None if index is None else Hit(index=index, line=line, message=message or None, text=message)

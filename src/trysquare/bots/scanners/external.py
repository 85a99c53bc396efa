"""Python and command scanners."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from trysquare.bots.scanners.base import CommandScanner, Hit, ScannerFailed, Selected
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.processes.worker import run_worker


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
    names = set(_names(tree.body))
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


MAX_OUTPUT = 4_000_000


class Ended(NamedTuple):
    code: int
    output: str
    errors: str


def ask_matcher(task: Mapping[str, Any], *, seconds: float) -> list[Any]:
    """Run a pattern in a process with a timeout."""
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("regex_worker.py"))]
    return _ask(command, task, seconds, "the pattern", None)


def ask_worker(task: Mapping[str, Any], *, seconds: float, what: str) -> list[Any]:
    """Run a Python scanner in a process of its own, with the import path of this one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return _ask([sys.executable, "-P", "-m", "trysquare.bots.scanners.worker"], task, seconds, what, environment)


def _ask(
    command: list[str], task: Mapping[str, Any], seconds: float, what: str, environment: Mapping[str, str] | None
) -> list[Any]:
    ended = run_process(command, text=json.dumps(task), seconds=seconds, what=what, environment=environment)
    if ended.code != 0:
        last = ended.errors.strip().splitlines()[-1:] or [f"exit code {ended.code}"]
        raise ScannerFailed(f"{what} failed: {last[0]}")
    return json.loads(ended.output)


def run_process(
    command: Sequence[str],
    *,
    seconds: float,
    what: str,
    text: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program to its end, or end it at the timeout."""
    try:
        ended = run_worker(
            command,
            seconds=seconds,
            given=text.encode("utf-8", "replace"),
            limit=MAX_OUTPUT,
            folder=folder,
            environment=environment,
        )
    except TimeoutError:
        raise ScannerFailed(f"{what} timed out after {seconds:g} seconds") from None
    except OSError as error:
        raise ScannerFailed(f"{what} cannot be started: `{command[0]}`: {error.strerror}") from None
    assert ended.status is not None
    return Ended(ended.status, ended.output.decode("utf-8", "replace"), ended.errors.decode("utf-8", "replace"))


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
    argv = [piece for given in scanner.argv for piece in (safe if given == "{files}" else [given])]
    ended = run_process(argv, seconds=seconds, what=f"the command `{scanner.argv[0]}`", folder=root)
    indexes = {str(base / path): index for base in (root, root.resolve()) for index, path in enumerate(paths)}
    hits = [hit for finding in _findings(ended) if (hit := _hit(finding, indexes, root)) is not None]
    if ended.code != 0 and not hits:
        last = (ended.output.strip() or ended.errors.strip()).splitlines()[-1:] or ["no output"]
        raise ScannerFailed(f"the command `{scanner.argv[0]}` ended with {ended.code}: {last[0][:300]}")
    return hits


def _findings(ended: Ended) -> Iterator[tuple[str, int, str]]:
    text = ended.output.strip()
    if text.startswith(("[", "{")):
        yield from _from_json(text)
        return
    for line in (*text.splitlines(), *ended.errors.splitlines()):
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


def _hit(finding: tuple[str, int, str], indexes: Mapping[str, int], root: Path) -> Hit | None:
    file, line, message = finding
    # Joining keeps an absolute path; a program may also have resolved links on the way to the directory.
    index = indexes.get(str(root / file), indexes.get(str((root / file).resolve())))
    return None if index is None else Hit(index=index, line=line, message=message or None, text=message)

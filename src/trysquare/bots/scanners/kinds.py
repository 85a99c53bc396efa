"""The four kinds of scanner: regex that cannot hang, JSON Schema, Python callable and command."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

from trysquare.bots.graph import first_error
from trysquare.bots.scanners.base import (
    CommandScanner,
    Hit,
    PythonScanner,
    RegexScanner,
    Scanner,
    ScannerFailed,
    SchemaScanner,
    Selected,
)
from trysquare.bots.scanners.regex_worker import Span, find_spans
from trysquare.core.errors import ErrorCode, require_extra
from trysquare.core.json import JsonObject, as_list, as_object, ref_of, resolve_pointer
from trysquare.processes.worker import run_worker

SECONDS = 10.0


def run_scanner(
    scanner: Scanner, selected: Sequence[Selected], root: Path | None, *, seconds: float = SECONDS
) -> list[Hit]:
    """Run a scanner, or raise `ScannerFailed`."""
    if not selected:
        return []
    if isinstance(scanner, RegexScanner):
        return scan_expression(scanner, selected, seconds=seconds)
    if isinstance(scanner, SchemaScanner):
        return _scan_schema(scanner, selected, seconds)
    if isinstance(scanner, PythonScanner):
        return _scan_python(scanner, selected, seconds)
    if root is None:
        raise ScannerFailed("a command needs a directory to run in")
    return scan_command(scanner, selected, root, seconds=seconds)


def _scan_schema(scanner: SchemaScanner, selected: Sequence[Selected], seconds: float) -> list[Hit]:
    values = [each.value for each in selected]
    schema = dict(scanner.schema)
    longest = max((len(text) for text in _texts_in(values)), default=0)
    costly = any(worst_steps(pattern, longest) > CHEAP for pattern in _texts_under(schema, "pattern"))
    if costly:
        found = ask_worker({"schema": schema, "values": values}, seconds=seconds, what="the schema")
    else:
        found = [(index, 1, error) for index, value in enumerate(values) if (error := first_error(schema, value))]
    return [Hit(index=index, message=f"{scanner.message} ({error})") for index, _, error in found]


def _texts_under(value: Any, wanted: str) -> Iterator[str]:
    """Every text under a key of that name, at any depth."""
    for key, each in _pairs(value):
        if key == wanted and isinstance(each, str):
            yield each
        yield from _texts_under(each, wanted)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for _, each in _pairs(value):
        yield from _texts_in(each)


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value).items()
    return enumerate(cast("list[Any]", value)) if isinstance(value, list) else ()


def _scan_python(scanner: PythonScanner, selected: Sequence[Selected], seconds: float) -> list[Hit]:
    values = [each.value for each in selected]
    task = {"callable": scanner.callable, "options": dict(scanner.options), "values": values}
    answers = ask_worker(task, seconds=seconds, what=f"the scanner `{scanner.callable}`")
    return [Hit(index=index, line=line, message=message or None) for index, line, message in answers]


MAX_INPUT = 1_000_000
CHEAP = 5_000_000
"""Worst-case steps of a match in this process."""


def scan_expression(scanner: RegexScanner, selected: Sequence[Selected], *, seconds: float) -> list[Hit]:
    """Texts that break the rule; a forbidden pattern is reported at each match."""
    texts = [_text(each.value) for each in selected]
    found = _find(scanner, texts, seconds)
    if scanner.match == "require":
        fulfilled = {index for index, _, _ in found}
        return [Hit(index=index) for index in range(len(texts)) if index not in fulfilled]
    return [_hit(texts[index], index, start, end) for index, start, end in found]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    if len(value) > MAX_INPUT:
        raise ScannerFailed(f"a text has {len(value):,} characters; the limit is {MAX_INPUT:,}")
    return value


def _hit(text: str, index: int, start: int, end: int) -> Hit:
    line = text.count("\n", 0, start) + 1
    whole = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0] if "\n" in text else text
    return Hit(index=index, line=line, text=whole.strip() or text[start:end])


def _find(scanner: RegexScanner, texts: list[str], seconds: float) -> list[Span]:
    flags = re.IGNORECASE if scanner.ignore_case else 0
    first_only = scanner.match == "require"
    longest = max(map(len, texts), default=0)
    # A costly pattern runs in a process that can be ended: `re` holds the interpreter lock while it matches.
    if worst_steps(scanner.pattern, longest) * max(1, len(texts)) <= CHEAP:
        return find_spans(scanner.pattern, int(flags), texts, first_only)
    task = {"pattern": scanner.pattern, "flags": int(flags), "texts": texts, "first_only": first_only}
    return [(index, start, end) for index, start, end in ask_matcher(task, seconds=seconds)]


def worst_steps(pattern: str, length: int) -> float:
    """Upper bound of the steps of a search: a power of the length, or infinite."""
    cost = _cost(pattern)
    return float("inf") if cost is None else cost.factor * float(length + 1) ** (cost.power + 1)


class _Cost(NamedTuple):
    power: int = 0
    """Number of consecutive unbounded repetitions."""
    factor: int = 1
    """Number of alternatives."""

    def then(self, other: _Cost) -> _Cost:
        return _Cost(self.power + other.power, self.factor * other.factor)


class _Nested(Exception):
    """A repetition that can match in more than one way."""


@lru_cache(maxsize=256)
def _cost(pattern: str) -> _Cost | None:
    """Cost of a pattern; None with nested repetitions."""
    try:
        # The parser of `re` has no public name; its output is stable, and unknown parts of it count as costly.
        return _of_all(import_module("re._parser").parse(pattern).data, inside=False)
    except _Nested:
        return None


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_FIXED = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "CATEGORY", "RANGE")
_FEW = 4


def _of_all(items: Iterable[Any], *, inside: bool) -> _Cost:
    return reduce(_Cost.then, (_of_one(str(kind), argument, inside) for kind, argument in items), _Cost())


def _of_one(kind: str, argument: Any, inside: bool) -> _Cost:
    if kind in _FIXED:
        return _Cost()
    if kind in _REPEATS:
        return _of_repeat(*argument, inside=inside)
    if kind == "BRANCH" and not inside:
        branches = [_of_all(branch, inside=False) for branch in argument[1]]
        return _Cost(max(each.power for each in branches), sum(each.factor for each in branches))
    if kind == "SUBPATTERN":
        return _of_all(argument[-1], inside=inside)
    if kind in ("ASSERT", "ASSERT_NOT"):
        return _of_all(argument[1], inside=inside)
    # Back references, conditions and unknown parts have no bound.
    raise _Nested


def _of_repeat(low: int, high: int, body: Iterable[Any], *, inside: bool) -> _Cost:
    if low == high:
        return _of_all(body, inside=True)
    if inside:
        raise _Nested
    if high <= _FEW:
        once = _of_all(body, inside=False)
        return _Cost(once.power * high, (once.factor + 1) ** high)
    return _Cost(1).then(_of_all(body, inside=True))


def checked_schema(schema: JsonObject) -> JsonObject:
    """A JSON Schema that can be used, or `ValueError`."""
    # Imported late: most bots are loaded by commands that need no schema.
    require_extra("bots", "jsonschema", feature="A scanner of the kind `schema`", code=ErrorCode.CONFIG_INVALID)
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        path = "/".join(str(piece) for piece in error.absolute_path)
        raise ValueError(f"this is not a JSON Schema, at `{path or '/'}`: {error.message[:200]}") from None
    except RecursionError:
        raise ValueError("this schema is nested too deeply") from None
    for problem in _unusable(schema, schema):
        raise ValueError(problem)
    return schema


def _unusable(schema: Any, whole: JsonObject) -> Iterator[str]:
    if isinstance(schema, Mapping):
        yield from _wrong_reference(cast("Mapping[str, Any]", schema), whole)
    for name, each in _pairs(schema):
        # These contain values, not schemas.
        if name not in ("const", "enum", "default", "examples"):
            yield from _unusable(each, whole)


def _wrong_reference(keys: Mapping[str, Any], whole: JsonObject) -> Iterator[str]:
    reference = ref_of(keys)
    if reference is None:
        return
    if not reference.startswith("#"):
        yield f"the reference `{reference[:80]}` is external; only `#/…` is supported"
    elif resolve_pointer(reference, whole) is None and reference[1:] not in _texts_under(whole, "$anchor"):
        yield f"the reference `{reference[:80]}` is not found in the schema"


def checked_expression(pattern: str) -> str:
    """A regular expression, or `ValueError`."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"this is not a regular expression: {error}") from None
    return pattern


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
    code, output, errors = run_process(
        command, text=json.dumps(task), seconds=seconds, what=what, environment=environment
    )
    if code != 0:
        last = errors.strip().splitlines()[-1:] or [f"exit code {code}"]
        raise ScannerFailed(f"{what} failed: {last[0]}")
    return json.loads(output)


def run_process(
    command: Sequence[str],
    *,
    seconds: float,
    what: str,
    text: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    """Run a program to its end, or end it at the timeout; returns its status, output and errors."""
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
    return ended.status, ended.output.decode("utf-8", "replace"), ended.errors.decode("utf-8", "replace")


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
    what = f"the command `{scanner.argv[0]}`"
    code, output, errors = run_process(argv, seconds=seconds, what=what, folder=root)
    indexes = {str(base / path): index for base in (root, root.resolve()) for index, path in enumerate(paths)}
    hits = [hit for finding in _findings(output, errors) if (hit := _file_hit(finding, indexes, root)) is not None]
    if code != 0 and not hits:
        last = (output.strip() or errors.strip()).splitlines()[-1:] or ["no output"]
        raise ScannerFailed(f"{what} ended with {code}: {last[0][:300]}")
    return hits


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

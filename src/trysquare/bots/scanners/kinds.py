"""The four kinds of scanner: regex that cannot hang, JSON Schema, Python callable and command."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

from trysquare.bots.graph import first_error
from trysquare.bots.sandbox import MAX_OUTPUT, SECONDS
from trysquare.bots.scanners.base import (
    Hit,
    PythonScanner,
    RegexScanner,
    Scanner,
    ScannerFailed,
    SchemaScanner,
    Selected,
)
from trysquare.bots.scanners.programs import asked, scan_command, scan_python
from trysquare.bots.scanners.regex_worker import Span, find_spans
from trysquare.core.errors import ErrorCode, require_extra
from trysquare.core.json import JsonObject, ref_of, resolve_pointer
from trysquare.processes.worker import run_worker


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
        return scan_python(scanner, selected, root, seconds=seconds)
    if root is None:
        raise ScannerFailed("a command needs a directory to run in")
    return scan_command(scanner, selected, root, seconds=seconds)


def _scan_schema(scanner: SchemaScanner, selected: Sequence[Selected], seconds: float) -> list[Hit]:
    values = [each.value for each in selected]
    schema = dict(scanner.schema)
    longest = max((len(text) for text in _texts_in(values)), default=0)
    costly = any(worst_steps(pattern, longest) > CHEAP for pattern in _texts_under(schema, "pattern"))
    if costly:
        found = asked({"schema": schema, "values": values}, seconds=seconds, what="the schema")
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


def ask_matcher(task: Mapping[str, Any], *, seconds: float) -> list[Any]:
    """Run a pattern in a process with a timeout."""
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("regex_worker.py"))]
    try:
        ended = run_worker(command, seconds=seconds, given=json.dumps(task).encode(), limit=MAX_OUTPUT)
    except TimeoutError:
        raise ScannerFailed(f"the pattern timed out after {seconds:g} seconds") from None
    return json.loads(ended.output)

"""Running a scanner over what was selected, whatever kind it is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from trysquare.bots.graph.schema import first_error
from trysquare.bots.rules import CommandScanner, PythonScanner, RegexScanner, Scanner, SchemaScanner
from trysquare.bots.scanning.commands import scan_command
from trysquare.bots.scanning.expressions import CHEAP, scan_expression, worst_steps
from trysquare.bots.scanning.findings import Hit, ScannerFailed, Selected
from trysquare.bots.scanning.worker_process import ask_worker

SECONDS = 10.0
"""How long one rule may take."""


def run_scanner(
    scanner: Scanner, selected: Sequence[Selected], root: Path | None, *, seconds: float = SECONDS
) -> list[Hit]:
    """What a scanner finds; `ScannerFailed` where it cannot do its work."""
    if not selected:
        return []
    if isinstance(scanner, RegexScanner):
        return scan_expression(scanner, selected, seconds=seconds)
    if isinstance(scanner, SchemaScanner):
        return _scan_schema(scanner, selected, seconds)
    if isinstance(scanner, PythonScanner):
        return _scan_python(scanner, selected, seconds)
    if root is None:
        raise ScannerFailed("a command needs a folder to run in")
    return scan_command(scanner, selected, root, seconds=seconds)


def _scan_schema(scanner: SchemaScanner, selected: Sequence[Selected], seconds: float) -> list[Hit]:
    values = [each.value for each in selected]
    schema = dict(scanner.schema)
    longest = max((len(text) for text in _texts_in(values)), default=0)
    costly = any(worst_steps(pattern, longest) > CHEAP for pattern in _patterns_in(schema))
    if costly:
        said = ask_worker({"schema": schema, "values": values}, seconds=seconds, what="the schema")
    else:
        said = [(index, 1, told) for index, value in enumerate(values) if (told := first_error(schema, value))]
    return [Hit(index=index, message=f"{scanner.message} ({told})") for index, _, told in said]


def _patterns_in(value: Any) -> Iterator[str]:
    for key, each in _pairs(value):
        if key == "pattern" and isinstance(each, str):
            yield each
        yield from _patterns_in(each)


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


def is_command(scanner: Scanner) -> bool:
    """Whether the scanner reads files itself instead of being given their texts."""
    return isinstance(scanner, CommandScanner)

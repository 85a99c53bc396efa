"""Standalone program: run a Python scanner, or a schema with costly patterns."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from trysquare.bots.graph import first_error


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    # A scanner's own output must not be mixed with the result.
    output, sys.stdout = sys.stdout, sys.stderr
    json.dump(run(task), output)
    output.flush()


def run(task: Mapping[str, Any]) -> list[Any]:
    if "schema" in task:
        found = ((index, first_error(task["schema"], value)) for index, value in enumerate(task["values"]))
        return [(index, 1, error) for index, error in found if error is not None]
    module, _, name = task["callable"].partition(":")
    scanner: Any = import_module(module)
    for piece in name.split("."):
        scanner = getattr(scanner, piece)
    return [
        finding
        for index, value in enumerate(task["values"])
        for finding in _findings(index, scanner(value, **task["options"]))
    ]


def _findings(index: int, found: Any) -> Iterator[tuple[int, int, str]]:
    for each in found or ():
        line, message = each if isinstance(each, (tuple, list)) else (1, each)  # pyright: ignore[reportUnknownVariableType]
        yield index, int(line), str(message)  # pyright: ignore[reportUnknownArgumentType]


if __name__ == "__main__":
    main()

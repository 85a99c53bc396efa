"""The worker: runs a Python scanner, or a schema with costly patterns, in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from trysquare.bots.graph.schema import first_error

Answer = tuple[int, int, str]
"""Which value, which line of it, and what is wrong."""


def main() -> None:
    """Do the task on the standard input. A failure of the scanner is this process's failure."""
    task: dict[str, Any] = json.load(sys.stdin)
    # What a scanner prints must not be mixed with the answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    json.dump(run(task), answers)
    answers.flush()


def run(task: Mapping[str, Any]) -> list[Any]:
    """What a task gives."""
    if "schema" in task:
        found = ((index, first_error(task["schema"], value)) for index, value in enumerate(task["values"]))
        return [(index, 1, told) for index, told in found if told is not None]
    module, _, name = task["callable"].partition(":")
    scanner: Any = import_module(module)
    for piece in name.split("."):
        scanner = getattr(scanner, piece)
    return [
        answer
        for index, value in enumerate(task["values"])
        for answer in _answers(index, scanner(value, **task["options"]))
    ]


def _answers(index: int, said: Any) -> Iterator[Answer]:
    for each in said or ():
        line, message = each if isinstance(each, (tuple, list)) else (1, each)  # pyright: ignore[reportUnknownVariableType]
        yield index, int(line), str(message)  # pyright: ignore[reportUnknownArgumentType]


if __name__ == "__main__":
    main()

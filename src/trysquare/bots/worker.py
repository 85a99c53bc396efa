"""Standalone program: a Python scanner, a method of a bot's own document type, a costly schema or a costly JSONPath.

It reads one task as JSON and writes its result as JSON. `trysquare.bots.sandbox` runs it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType, TracebackType
from typing import Any

from trysquare.bots.graph import first_error


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    # What the code itself prints must not be mixed with the result.
    output, sys.stdout = sys.stdout, sys.stderr

    def report(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        place, line = placed(error, task.get("file"))
        output.write(json.dumps({"failed": f"{place}{type(error).__name__}: {error}"[:500], "line": line}))

    sys.excepthook = report
    output.write(json.dumps({"result": run(task)}, allow_nan=False))


def run(task: Mapping[str, Any]) -> Any:
    if "schema" in task:
        found = ((index, first_error(task["schema"], value)) for index, value in enumerate(task["values"]))
        return [(index, 1, error) for index, error in found if error is not None]
    if "path" in task:
        from trysquare.bots.documents.paths import compiled

        return [list(match.parts) for match in compiled(task["path"]).finditer(task["value"])]
    if "method" in task:
        return _of_type(task)
    scanner: Any = _module(task)
    for piece in task["name"].split("."):
        scanner = getattr(scanner, piece)
    return [
        finding
        for index, value in enumerate(task["values"])
        for finding in _findings(index, scanner(value, **task["options"]))
    ]


def _module(task: Mapping[str, Any]) -> ModuleType:
    if "file" not in task:
        return import_module(task["module"])
    file = Path(task["file"])
    # As for a script, the modules beside it can be imported.
    sys.path.insert(0, str(file.parent))
    found = spec_from_file_location(file.stem, file)
    if found is None or found.loader is None:
        raise ImportError(f"{file.name} is not a Python file")
    module = module_from_spec(found)
    sys.modules[file.stem] = module
    found.loader.exec_module(module)
    return module


def _findings(index: int, found: Any) -> Iterator[tuple[int, int, str]]:
    if isinstance(found, str):
        raise TypeError("a scanner returns a list of messages, not a text")
    for each in found or ():
        line, message = each if isinstance(each, (tuple, list)) else (1, each)  # pyright: ignore[reportUnknownVariableType]
        yield index, int(line), str(message)  # pyright: ignore[reportUnknownArgumentType]


def _of_type(task: Mapping[str, Any]) -> Any:
    """The result of a method; `edits` and results that are no JSON travel as objects and lists."""
    from trysquare.bots.documents.edits import Edits
    from trysquare.bots.documents.formats import DocumentError

    kind = getattr(_module(task), task["class"])(**task["made_of"])
    arguments: list[Any] = task["arguments"]
    if task["method"] == "merge":
        arguments[1] = Edits(**arguments[1])
    try:
        found: Any = getattr(kind, task["method"])(*arguments)
    except DocumentError as error:
        return {"document_error": str(error), "line": error.line}
    if task["method"] == "lines":
        return {"value": list(dict(found).items())}
    if is_dataclass(found):
        return {"value": asdict(found)}  # pyright: ignore[reportArgumentType]
    # Generators are read here, where their code may run.
    value: Any = [*found] if isinstance(found, Iterator) else found
    return {"value": value}


def placed(error: BaseException, file: str | None) -> tuple[str, int]:
    """The last line of the bot's own code that led to an error, for a reader and as a number."""
    if file is None:
        return "", 1
    if isinstance(error, SyntaxError) and error.filename == file:
        lines = [error.lineno or 1]
    else:
        lines = [each.lineno or 1 for each in extract_tb(error.__traceback__) if each.filename == file]
    return (f"{Path(file).name}:{lines[-1]}: ", lines[-1]) if lines else ("", 1)


if __name__ == "__main__":
    main()

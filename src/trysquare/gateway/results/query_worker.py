"""Worker process: grep or JSONPath over an open file, within limits of time and memory.

Runs as a script of its own, so that it starts quickly and shares nothing with the server: a job in JSON on stdin, its
result in JSON on stdout.
"""

from __future__ import annotations

import gc
import json
import os
import re
import resource
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

LONG_LINE = 400
AROUND = 150
"""Characters on both sides of a match in a long line."""


class Refused(Exception):
    def __init__(self, message: str, instruction: str | None = None) -> None:
        super().__init__(message)
        self.instruction = instruction


def grep(job: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The matching lines from match number `offset` on."""
    try:
        pattern = re.compile(job["pattern"], re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise Refused(
            f"`grep` is not a valid regular expression: {error}.", "Send a Python regex, or escape the text."
        ) from None
    found: list[dict[str, Any]] = []
    budget = int(job["budget"])
    for number, match in enumerate(_matches(pattern, data.decode(errors="replace"))):
        if number < job["offset"]:
            continue
        budget -= len(match["text"]) + 30
        if found and (len(found) >= job["length"] or budget < 0):
            return {"matches": found, "more": True}
        found.append(match)
    return {"matches": found, "more": False}


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[dict[str, Any]]:
    """Each matching line once; of a long line, the context of each match."""
    position, line, counted = 0, 1, 0
    while position <= len(text) and (match := pattern.search(text, position)) is not None:
        start = match.start()
        line += text.count("\n", counted, start)
        counted = start
        begin = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - begin <= LONG_LINE:
            position = max(end + 1, match.end())
        else:
            begin, end = max(begin, start - AROUND), min(end, max(match.end(), start) + AROUND, start + LONG_LINE)
            position = max(match.end(), start + 1)
        yield {"line": line, "offset": begin, "text": text[begin:end]}


def query(job: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The values at a path from number `offset` on: at most `length`, and not many more characters than `budget`."""
    path, document = _compiled(job["path"]), _document(data)
    values: Iterator[Any] = (match.obj for match in path.finditer(document))
    shown: list[Any] = []
    budget = int(job["budget"])
    for value in islice(values, job["offset"], None):
        budget -= len(json.dumps(value)) + 2
        if len(shown) >= job["length"] or (shown and budget < 0):
            return {"values": shown, "more": True}
        if budget < 0:
            return {"values": [], "large": _large(value), "more": next(values, _END) is not _END}
        shown.append(value)
    return {"values": shown, "more": False}


_END = object()


def _large(value: Any) -> dict[str, Any]:
    """Type and size of a value that is too large to return."""
    if isinstance(value, dict):
        names: list[str] = [str(name) for name in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return {"type": "object", "names": [name[:80] for name in names[:50]], "count": len(names)}
    if isinstance(value, list):
        return {"type": "array", "count": len(value)}  # pyright: ignore[reportUnknownArgumentType]
    return {"type": "text", "count": len(str(value)), "head": str(value)[:1000]}


def value(job: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The value of a singular path, else the list of all."""
    path, document = _compiled(job["path"]), _document(data)
    found = [match.obj for match in path.finditer(document)]
    if not getattr(path, "singular_query", lambda: False)():
        return {"value": found}
    if not found:
        raise Refused(f"No value at path `{job['path']}`.", "Read the result with the path first.")
    return {"value": found[0]}


_INSTALL = "Use `grep` or `offset`, or install it with: pip install 'trysquare[gateway]'"


def _compiled(path: str) -> Any:
    try:
        import jsonpath
    except ImportError:
        raise Refused("`path` requires the package python-jsonpath, which is not installed.", _INSTALL) from None
    try:
        return jsonpath.JSONPathEnvironment().compile(path)
    except (jsonpath.JSONPathError, RecursionError) as error:
        problem = str(error).splitlines()[0] if str(error) else "invalid syntax"
        raise Refused(f"`path` is not a valid JSONPath: {problem}.", "Send a path such as $.rows[*].id.") from None


def _document(data: bytes) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused("The result is not JSON.", "Use `grep` or `offset`.") from None


_JOBS: dict[str, Callable[[dict[str, Any], bytes], dict[str, Any]]] = {"grep": grep, "query": query, "value": value}


def run_job(job: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The result of a job, or its error."""
    try:
        return _JOBS[job["kind"]](job, data)
    except Refused as refused:
        return {"error": str(refused), "instruction": refused.instruction}
    except RecursionError:
        return {"error": "The result is nested too deeply for this path.", "instruction": "Use `grep`."}


def main() -> None:
    """Run the job on stdin within its limits."""
    # The process ends soon, and collecting garbage would take most of its time.
    gc.disable()
    job = json.loads(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_AS, (job["memory"], job["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer = run_job(job, _read(job["descriptor"], job["size"]))
    except MemoryError:
        return
    sys.stdout.buffer.write(json.dumps(answer).encode())
    sys.stdout.buffer.flush()
    # Freeing the objects would take as long as reading them.
    os._exit(0)


def _read(descriptor: int, size: int) -> bytes:
    parts: list[bytes] = []
    position = 0
    while position < size and (part := os.pread(descriptor, size - position, position)):
        parts.append(part)
        position += len(part)
    return b"".join(parts)


if __name__ == "__main__":
    main()

"""JSONPaths of rules: what a path selects in a document."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from trysquare.bots.documents.shapes import items_of, path_of, properties_of
from trysquare.bots.sandbox import SECONDS, ProgramFailed, ask_worker
from trysquare.core.errors import ErrorCode, InvalidArguments, require_extra
from trysquare.core.json import JsonObject

Pointer: TypeAlias = tuple[str | int, ...]
_MOST_DESCENTS = 2
"""Each `..` visits every value below the ones before it."""
_REGEX_FUNCTIONS = ("match", "search")


@lru_cache(maxsize=512)
def compiled(path: str) -> Any:
    """A JSONPath that can be used, or `ValueError`."""
    require_extra("bots", "jsonpath", feature="A rule with a JSONPath", code=ErrorCode.CONFIG_INVALID)
    import jsonpath

    environment = jsonpath.JSONPathEnvironment()
    for name in _REGEX_FUNCTIONS:
        # A pattern in a path could run for ever; the scanner of the kind `regex` cannot.
        environment.function_extensions.pop(name, None)
    if "=~" in path:
        raise ValueError(f"`{path}`: use a scanner of the kind `regex` instead of `=~`")
    try:
        made: Any = environment.compile(path)
    except (jsonpath.JSONPathError, RecursionError) as error:
        problem = str(error).splitlines()[0] if str(error) else "invalid syntax"
        raise ValueError(f"`{path}` is not a JSONPath: {problem}") from None
    if path.count("..") > _MOST_DESCENTS:
        raise ValueError(f"`{path}` has more than {_MOST_DESCENTS} `..`; name the steps between them")
    return made


def select_path(path: str, value: Any) -> Iterator[tuple[Pointer, Any, str]]:
    """Every value that a path selects, with its place."""
    if is_costly(path):
        yield from _select_in_time(path, value)
        return
    for match in compiled(path).finditer(value):
        pointer: Pointer = tuple(match.parts)
        yield pointer, match.obj, path_of(pointer)


def is_costly(path: str) -> bool:
    """Whether a filter asks a query of many values for every value, so that the time grows with their product."""
    filters = path.partition("[?")[2]
    return any(each in filters for each in ("$", "..", "*"))


def _select_in_time(path: str, value: Any) -> Iterator[tuple[Pointer, Any, str]]:
    """The same in a process that can be ended."""
    compiled(path)
    try:
        found = ask_worker({"path": path, "value": value}, what=f"`{path}`", seconds=SECONDS)
    except ProgramFailed as error:
        hint = "Write a filter without a query such as `$..*` in it, or use a scanner of the kind `python`."
        raise InvalidArguments(f"{error}.", instruction=hint) from None
    for pieces in found:
        selected = value
        for piece in pieces:
            selected = selected[piece]
        yield tuple(pieces), selected, path_of(tuple(pieces))


def unknown_name(path: str, schema: JsonObject) -> str | None:
    """The first name of a path that a schema does not know; None where it knows all of them, or cannot tell."""
    return _follow(path, schema)[1]


def schema_at(path: str, schema: JsonObject) -> Any:
    """The schema of what a path selects; None where nothing tells."""
    return _follow(path, schema)[0]


def _follow(path: str, schema: JsonObject) -> tuple[Any, str | None]:
    level: Any = schema
    for segment in compiled(path).segments:
        if type(segment).__name__ != "JSONPathChildSegment" or len(segment.selectors) != 1:
            return None, None
        name = getattr(segment.selectors[0], "name", None)
        if not isinstance(name, str):
            level = items_of(level, schema)
            continue
        known = properties_of(level, schema)
        if known is None:
            return None, None
        if name not in known:
            return None, name
        level = known[name]
    return level, None

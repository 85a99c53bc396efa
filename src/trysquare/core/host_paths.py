"""Paths of this machine in texts: callers on other machines get the name of a file without its directory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from trysquare.core.errors import ToolError
from trysquare.core.json import as_object
from trysquare.core.result import Result, jsonable

ELSEWHERE = "…"
"""What stands for a directory of this machine."""
_START = re.compile(r"file:/+(?=[^\s/])|(?<![\w/.~$}%:-])/+(?=[^\s/])|(?<=:)/(?=[^\s/])|(?<=-[A-Z])/(?=[^\s/])")
"""Where an absolute path may begin; the slashes of a URL and of a relative path are preceded by something else."""
_NAME = re.compile(r"[^\s\"'`,;:()<>\[\]{}|\\]*")
"""The last part of a path, which need not exist."""
_ADDRESS = re.compile(r"[^\s\"'`<>]*")
_END = re.compile(r"[\s\"'`,;:()<>\[\]{}|\\]|$")
_MOST_ENDS = 16
"""Places in a line at which the name of an existing file may end."""
_MOST_STARTS = 500
_LONGEST = 4096
_UNCHECKED = re.compile(r"(?<![\w/.~$}%-])/[^\s\"'`<>]+")


def without_host_paths(text: str, sent: str = "") -> str:
    """The text with every path of this machine shortened, except those that the caller sent.

    A path is one of this machine if a directory that it begins with exists, so that an author's `/orders/42` stays.
    """
    if "/" not in text:
        return text
    pieces, at = list[str](), 0
    for count, found in enumerate(_START.finditer(text)):
        if found.start() < at:
            continue
        if count >= _MOST_STARTS:
            return "".join((*pieces, _UNCHECKED.sub(ELSEWHERE, text[at:])))
        end = _end_of_path(text, found)
        if end is None or (path := text[found.start() : end]) in sent:
            continue
        pieces += (text[at : found.start()], _shown(path))
        at = end
    return "".join((*pieces, text[at:])) if pieces else text


def _end_of_path(text: str, found: re.Match[str]) -> int | None:
    """Where the path that begins here ends; None if it is not one of this machine."""
    if text.startswith("file:", found.start()):
        address = _ADDRESS.match(text, found.end())
        return found.end() if address is None else address.end()
    line_end = text.find("\n", found.start())
    line = text[found.start() : min(len(text) if line_end < 0 else line_end, found.start() + _LONGEST)]
    known = found.end() - found.start()
    # Directories may have spaces and quotes in their names: each is looked up.
    while (slash := line.find("/", known)) >= 0 and _is_directory(line[:slash]):
        known = slash + 1
    longest = None
    for each in islice(_END.finditer(line, known), _MOST_ENDS):
        if each.start() > known and os.path.lexists(line[: each.start()]):
            longest = each.start()
    if longest is not None:
        return found.start() + longest
    if known == found.end() - found.start():
        return None
    name = _NAME.match(line, known)
    return found.start() + (known if name is None else name.end())


def _is_directory(path: str) -> bool:
    try:
        return os.path.isdir(path)
    except ValueError:
        return False


def _shown(path: str) -> str:
    plain = path.removeprefix("file:")
    scheme = path[: len(path) - len(plain)]
    trimmed = plain.rstrip("/.")
    name = "" if plain.endswith("/") or _is_directory(trimmed) else trimmed.rpartition("/")[2]
    rest = plain[len(trimmed) :].replace("/", "")
    return f"{scheme}{ELSEWHERE}{f'/{name}' if name else ''}{rest}"


def value_without_host_paths(value: Any, sent: str = "") -> Any:
    """The same for every text in a JSON value, names included."""
    return _mapped(value, lambda text: without_host_paths(text, sent))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        parts = cast(Mapping[Any, Any], value).items()
        return {_mapped(name, change): _mapped(part, change) for name, part in parts}
    if isinstance(value, (list, tuple)):
        return [_mapped(part, change) for part in cast(list[Any], value)]
    return value


def relative_to(folders: Sequence[Path], result: Result[Any]) -> Result[Any]:
    """A result whose paths in the first of these folders are relative to it; the others are named from there."""
    first = folders[0]
    names = {str(each): os.path.relpath(each, first) if each.is_relative_to(first) else ELSEWHERE for each in folders}
    # The longest first: one folder may be in another.
    known = "|".join(re.escape(path) for path in sorted(names, key=len, reverse=True))
    within = re.compile(rf"({known})(/|(?![\w-]))")

    def named(found: re.Match[str]) -> str:
        name, slash = names[found[1]], found[2]
        return "" if name == "." and slash else name + slash

    def change(text: str) -> str:
        return within.sub(named, text)

    return replace(
        result,
        value=_mapped(result.value, change),
        error=None if result.error is None else change(result.error),
        message=None if result.message is None else change(result.message),
        instruction=None if result.instruction is None else change(result.instruction),
        warnings=tuple(map(change, result.warnings)),
        next=_mapped(result.next, change),
        fields=_mapped(result.fields, change),
    )


def sent_text(arguments: Any) -> str:
    """What a caller sent, as a text in which its paths are found again."""
    return arguments if isinstance(arguments, str) else "\n".join(_texts(arguments))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for name, part in as_object(value).items() for text in (name, *_texts(part))]
    return [text for part in cast(list[Any], value) for text in _texts(part)] if isinstance(value, list) else []


def remote_failure(result: Result[Any], arguments: Any) -> Result[Any]:
    """A failure as a caller on another machine reads it. What a tool returns as its answer stays as it is."""
    if result.success or result.relayed is not None:
        return result
    sent, fields = sent_text(arguments), dict(result.fields)
    if result.exception is not None:
        fields |= {"exception_type": type(result.exception).__name__, "exception_message": str(result.exception)}

    def text(given: str | None) -> str | None:
        return None if given is None else without_host_paths(given, sent)

    return replace(
        result,
        error=text(result.error),
        message=text(result.message),
        instruction=text(result.instruction),
        warnings=tuple(without_host_paths(each, sent) for each in result.warnings),
        next=None if result.next is None else value_without_host_paths(jsonable(result.next), sent),
        fields=value_without_host_paths(jsonable(fields), sent),
        exception=None,
    )


def remote_error(error: ToolError, arguments: Any) -> ToolError:
    """The same for an error of a prompt, a resource or the protocol."""
    result = remote_failure(Result.from_error(error), arguments)
    return ToolError(
        result.error or "",
        code=error.code,
        instruction=result.instruction,
        next=result.next,
        fields=result.fields,
        meta=error.meta,
    )

"""Reading a state file that git merged: with conflict markers, or with the lines of both sides.

A file that Trysquare wrote has one line for each field and each completion, so the lines of two sides can be united.
What both sides completed stays completed; where their pointers differ, the first that is still open is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from trysquare.core.json import JsonObject, as_list, as_object

_MARKER = re.compile(r"(<{7}|\|{7}|={7}|>{7})(?: .*)?")
_POINTERS = ("current_behavior", "current_action")
_ENDS = ("workflow_complete", "workflow_ended")
_MAX_NAMED = 6

Pairs: TypeAlias = "list[tuple[str, Any]]"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFile:
    """A state file as one document."""

    document: Any
    note: str | None = None
    """What git left in it, if it left anything."""


def read_file(text: str) -> ReadFile:
    """Parse a file; ValueError for one that is no JSON even when the lines of both sides are united."""
    lines = text.splitlines()
    markers = [number for number, line in enumerate(lines, start=1) if _MARKER.fullmatch(line)]
    uniting = _Uniting()
    if not markers:
        try:
            return ReadFile(document=uniting.loads(text), note=_MERGED if uniting.has_met else None)
        except ValueError as error:
            plain = error
        try:
            document = uniting.loads(_with_commas(lines))
        except ValueError:
            raise plain from None
        return ReadFile(document=document, note=_MERGED)
    named = ", ".join(map(str, markers[:_MAX_NAMED])) + (" …" if len(markers) > _MAX_NAMED else "")
    try:
        document = uniting.loads(_with_commas([*_both_sides(lines)]))
    except ValueError as error:
        raise ValueError(f"it has conflict markers of git in the lines {named}, and {error}") from None
    return ReadFile(document=document, note=f"The file had conflict markers of git in the lines {named}; {_UNITED}")


_UNITED = "the completions of both sides were united."
_MERGED = f"The file was merged by git; {_UNITED}"


def _both_sides(lines: list[str]) -> Iterator[str]:
    """The lines of both sides, without the markers and without their common ancestor."""
    is_ancestor = False
    for line in lines:
        marker = _MARKER.fullmatch(line)
        if marker is not None:
            is_ancestor = marker[1].startswith("|")
        elif not is_ancestor:
            yield line


def _with_commas(lines: list[str]) -> str:
    """The lines with a comma between two that stand side by side, and with none elsewhere."""
    bare = [stripped for line in lines if (stripped := line.strip().rstrip(",").rstrip())]
    parts: list[str] = []
    for line, after in zip(bare, [*bare[1:], ""], strict=True):
        is_open, closes = line[-1] in "{[", after[:1] in ("}", "]")
        parts.append(line + ("" if is_open or closes or not after else ","))
    return "\n".join(parts)


class _Uniting:
    """Reads objects in which git left fields twice."""

    def __init__(self) -> None:
        self.has_met = False

    def loads(self, text: str) -> Any:
        self.has_met = False
        return json.loads(text, object_pairs_hook=self._object)

    def _object(self, pairs: Pairs) -> JsonObject:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        several: dict[str, list[Any]] = {}
        for name, value in pairs:
            several.setdefault(name, []).append(value)
        self.has_met = True
        return _united({name: values for name, values in several.items() if len(values) > 1}, found)


def _united(several: dict[str, list[Any]], document: JsonObject) -> JsonObject:
    """An object with one value for each field that stood there more than once."""
    for name, values in several.items():
        if name == "completed_actions":
            document[name] = [each for value in values for each in as_list(value)]
        elif name in ("behaviors", "runs"):
            document[name] = _objects(values)
        elif name in ("version", "timestamp"):
            document[name] = max(values, key=lambda value: (isinstance(value, int), str(value).zfill(40)))
        elif name not in _POINTERS and all(isinstance(value, dict) for value in values):
            _unite_parts(document, name, values)
    if several.keys() & {*_POINTERS} and any(len({*map(str, several.get(name, ()))}) > 1 for name in _POINTERS):
        _choose_pointer(document, several.get("current_action", [document.get("current_action")]))
    return document


def _objects(values: list[Any]) -> JsonObject:
    names = [name for value in values for name in as_object(value)]
    united: JsonObject = {}
    for name in dict.fromkeys(names):
        parts = [as_object(value)[name] for value in values if name in as_object(value)]
        if len(parts) == 1 or all(part == parts[0] for part in parts):
            united[name] = parts[0]
        elif not all("completed_actions" in as_object(part) for part in parts):
            continue  # pointers of a behavior that differ: its completions decide
        else:
            united[name] = _united(
                {key: [as_object(part).get(key) for part in parts] for key in parts[0]}, dict(parts[0])
            )
    return united


def _unite_parts(document: JsonObject, name: str, values: list[Any]) -> None:
    """A behavior or a run that stands there twice."""
    united = _objects([{name: value} for value in values])
    if name in united:
        document[name] = united[name]
    else:
        del document[name]


def _choose_pointer(document: JsonObject, candidates: list[Any]) -> None:
    """The first pointer of a side whose action is still open; without one, the completions decide."""
    done = {as_object(each).get("action_state") for each in as_list(document.get("completed_actions"))}
    document.pop("delivered", None)
    for name in _ENDS:
        document.pop(name, None)
    chosen = next((each for each in candidates if isinstance(each, str) and each not in done), None)
    if chosen is None:
        document.pop("current_action", None)
    else:
        document["current_action"] = chosen
        document["current_behavior"] = chosen.rpartition(".")[0]

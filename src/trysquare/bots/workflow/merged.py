"""Reading a state file that git merged: with conflict markers, or with the lines of both sides.

What either side completed stays completed; where their pointers differ, the first that is still open is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from trysquare.core.json import JsonObject, as_list, as_object

_MARKER = re.compile(r"(<{7}|\|{7}|={7}|>{7})(?: .*)?")
_COMPLETIONS = "completed_actions"
_OF_POINTER = ("current_behavior", "current_action", "delivered", "rejections", "workflow_complete", "workflow_ended")
"""Fields that belong to the pointer of a run: only its own side's apply."""
_STRUCTURE = frozenset({"{", "}", "]", "[", f'"{_COMPLETIONS}": [', f'"{_COMPLETIONS}": []', '"behaviors": {',
                        '"behaviors": {}'})  # fmt: skip
_MAX_NAMED = 6

Values: TypeAlias = "dict[str, list[Any]]"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFile:
    """A state file as one document."""

    document: Any
    note: str | None = None
    """What git left in it, if it left anything."""


def read_file(text: str) -> ReadFile:
    """Parse a file; ValueError for one that is no JSON, even as one that git merged."""
    lines = text.splitlines()
    markers = [number for number, line in enumerate(lines, start=1) if _MARKER.fullmatch(line)]
    if markers:
        return _read_sides(lines, markers)
    fields = _Fields()
    try:
        document = fields.loads(text)
    except ValueError as plain:
        if not text.rstrip().endswith("\n}"):
            # Cut off: what git merged has its end.
            raise
        try:
            return ReadFile(document=_unite(_documents(lines)), note=_MERGED)
        except _NotMerged:
            raise plain from None
    if not fields.were_repeated:
        return ReadFile(document=document)
    return ReadFile(document=_unite(_documents(lines)), note=_MERGED)


def _read_sides(lines: list[str], markers: list[int]) -> ReadFile:
    named = ", ".join(map(str, markers[:_MAX_NAMED])) + (" …" if len(markers) > _MAX_NAMED else "")
    try:
        sides = [json.loads("\n".join(_side(lines, dropped))) for dropped in ("=", "<")]
    except ValueError as error:
        raise ValueError(f"it has conflict markers of git in the lines {named}, and {error}") from None
    note = f"The file had conflict markers of git in the lines {named}; {_UNITED}"
    return ReadFile(document=_unite([as_object(each) for each in sides]), note=note)


_UNITED = "the completions of both sides were united."
_MERGED = f"The file was merged by git; {_UNITED}"


def _side(lines: list[str], dropped: str) -> Iterator[str]:
    """One side of a file with markers; the part after `dropped` belongs to the other one."""
    part = ""
    for line in lines:
        marker = _MARKER.fullmatch(line)
        if marker is not None:
            part = "" if marker[1][0] == ">" else marker[1][0]
        elif part not in (dropped, "|"):
            yield line


class _Fields:
    """Reads JSON and notices fields that stand there twice."""

    def __init__(self) -> None:
        self.were_repeated = False

    def loads(self, text: str) -> Any:
        return json.loads(text, object_pairs_hook=self._object)

    def _object(self, pairs: list[tuple[str, Any]]) -> JsonObject:
        found = dict(pairs)
        self.were_repeated = self.were_repeated or len(found) < len(pairs)
        return found


class _NotMerged(ValueError):
    """A text that is not made of the lines of a state file."""


def _documents(lines: Sequence[str]) -> list[JsonObject]:
    """The sides of a file in which git left the lines of both, one after the other (`merge=union`).

    Such a file has lost its structure, but every line of the main run says by itself what it is.
    """
    fields: Values = {}
    pointers: Values = {}
    completions: list[Any] = []
    for line in (bare for each in lines if (bare := each.strip().rstrip(",").rstrip())):
        if line in _STRUCTURE:
            continue
        if line.startswith("{"):
            completions.append(_json(line, line))
            continue
        for name, value in as_object(_json(f"{{{line}}}", line)).items():
            is_pointer = isinstance(value, dict) and "current_action" in value
            (pointers if is_pointer else fields).setdefault(name, []).append(value)
    if not fields.keys() & {"current_action", "current_behavior"}:
        raise _NotMerged("it has no current action")
    count = max(map(len, (*fields.values(), *pointers.values())))
    return [
        {**_nth(fields, number), "behaviors": _nth(pointers, number), _COMPLETIONS: completions}
        for number in range(count)
    ]


def _json(text: str, line: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise _NotMerged(f"this line is not of a state file: {line[:80]!r}") from None


def _nth(several: Values, number: int) -> JsonObject:
    return {name: values[min(number, len(values) - 1)] for name, values in several.items()}


def _unite(sides: Sequence[JsonObject]) -> JsonObject:
    """One run of several sides."""
    united: JsonObject = {}
    for name in dict.fromkeys(name for side in sides for name in side):
        values = [side[name] for side in sides if name in side]
        match name:
            case "completed_actions":
                lines = [json.dumps(each, sort_keys=True) for value in values for each in as_list(value)]
                united[name] = [json.loads(line) for line in dict.fromkeys(lines)]
            case "behaviors":
                united[name] = _same(values)
            case "runs":
                united[name] = _runs(values)
            case "version" | "timestamp":
                united[name] = max(values, key=lambda value: (isinstance(value, int), str(value).zfill(40)))
            case _:
                united[name] = values[-1]
    if any(side.get("current_action") != sides[0].get("current_action") for side in sides):
        _choose_pointer(united, sides)
    return united


def _same(values: Sequence[Any]) -> JsonObject:
    """The pointers of behaviors that no two sides disagree on; the completions decide on the others."""
    sides = [as_object(value) for value in values]
    found: JsonObject = {}
    for name in dict.fromkeys(name for side in sides for name in side):
        pointers = [side[name] for side in sides if name in side]
        if all(each == pointers[0] for each in pointers):
            found[name] = pointers[0]
    return found


def _runs(values: Sequence[Any]) -> JsonObject:
    sides = [as_object(value) for value in values]
    names = dict.fromkeys(name for side in sides for name in side)
    return {name: _unite([as_object(side[name]) for side in sides if name in side]) for name in names}


def _choose_pointer(united: JsonObject, sides: Sequence[JsonObject]) -> None:
    """The pointer of the first side whose action is still open; without one, the completions decide."""
    done = {as_object(each).get("action_state") for each in as_list(united.get(_COMPLETIONS))}
    for name in _OF_POINTER:
        united.pop(name, None)
    chosen = next((side for side in sides if side.get("current_action") not in (None, *done)), None)
    if chosen is not None:
        united.update({name: chosen[name] for name in _OF_POINTER if name in chosen})
    else:
        united["current_behavior"] = sides[-1].get("current_behavior")

"""Explaining: the report of a recorded failure as a few lines that say why, and where to look."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.origins import Origin, Spot, deciding, origins_of, returned_by
from trysquare.debug.sources import Sources
from trysquare.debug.suspicion import Scene, Suspect, calls_in, is_assertion, missing_name, suspects

LONGEST = 2000
_LINES = 14


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why something failed: the error, where it broke, the value to blame with its way back, and the lines that ran."""

    error: str
    place: str
    code: str
    function: str
    chain: tuple[str, ...] = ()
    blamed: Suspect | None = None
    origins: tuple[Origin, ...] = ()
    deciding: tuple[Origin, ...] = ()
    """The loops and conditions that decided whether the value's line ran."""
    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_text(self, root: str = "", *, longest: int = LONGEST) -> str:
        """The explanation as lines, what matters first, within a length."""
        lines = [f"{self.error}  [{shorter(self.place, root)} in {self.function}: {self.code}]"]
        lines.extend(self._advice(root))
        lines.extend(self._way_back(root))
        lines.extend(shorter(link, root) for link in self.chain)
        lines.extend(self.notes)
        if self.steps:
            lines.append("What ran, with what each line changed:")
            lines.extend(self.steps)
        return _within(lines, longest)

    def _advice(self, root: str) -> list[str]:
        """Where to look, the likeliest first: the way back ends at the line that made the value."""
        if not self.places:
            return []
        first, *others = (f"{shorter(f'{each.file}:{each.line}', root)} `{each.code}`" for each in self.places)
        told = self.places[0].what
        lines = [f"Look first at {first}" + (f": {told}" if told else "")]
        return [*lines, f"then at {', '.join(others[:2])}"] if others else lines

    def _way_back(self, root: str) -> list[str]:
        if self.blamed is None:
            return []
        back = (f"  {shorter(f'{each.file}:{each.line}', root)} `{each.code}` ({each.what})" for each in self.origins)
        return [f"Because {self.blamed.expression} is {self.blamed.value}", *back]

    @property
    def places(self) -> tuple[Origin, ...]:
        """The lines that are likely to be wrong: where the value was made, what decided over it, what it came by."""
        if not self.origins:
            return ()
        last, *before = reversed(self.origins)
        found = {(each.file, each.line): each for each in [*reversed(before), *self.deciding, last]}
        order = dict.fromkeys((each.file, each.line) for each in [last, *self.deciding, *before])
        return tuple(found[place] for place in order)


def explain(failure: JsonObject, sources: Sources | None = None) -> Explanation:
    """Explain one recorded failure."""
    known = sources or Sources()
    frames = _own_frames(failure)
    error_type, message = str(failure["type"]), str(failure["message"])
    first = message.strip().splitlines()[0] if message.strip() else ""
    error = f"{error_type}: {first}" if first else error_type
    chain = tuple(f"{each['link']}: {each['type']}: {each['message']} at {each['where']}" for each in failure["chain"])
    if not frames:
        return Explanation(error=error, place="?", code="", function="?", chain=chain)
    *callers, frame = frames
    spot = Spot(frame=frame, callers=callers)
    blamed, origins = _blamed(spot, error_type, message, known)
    file, line = str(frame["file"]), int(frame["line"])
    return Explanation(
        error=error,
        place=f"{file}:{line}",
        code=str(frame["code"]) or known.line(file, line),
        function=str(frame["function"]),
        chain=chain,
        blamed=blamed,
        origins=tuple(origins),
        deciding=tuple(deciding(origins[-1], known)) if origins else (),
        steps=tuple(_lives(spot, origins, known)),
    )


def _lives(spot: Spot, origins: Sequence[Origin], sources: Sources) -> list[str]:
    """The lines that ran in the failing frame, and in the call that gave it the wrong value."""
    lines = steps_of(spot.record, sources)
    callee = next((each.record for each in reversed(origins) if each.record is not None), None)
    return lines if callee is None else [*lines, f" in {callee['function']}:", *steps_of(callee, sources)]


def _own_frames(failure: JsonObject) -> list[JsonObject]:
    """The user's frames, of the exception that came first: one that was raised from it only passes it on."""
    for frames in (failure.get("context_frames"), failure["frames"]):
        own = [frame for frame in cast(list[JsonObject], frames or []) if frame["own"]]
        if own:
            return own
    return []


def _blamed(spot: Spot, error_type: str, message: str, sources: Sources) -> tuple[Suspect | None, Sequence[Origin]]:
    frame = spot.frame
    statement = _statement(frame, sources)
    if (name := missing_name(error_type, message)) is not None:
        return Suspect(expression=name, value="not defined here"), ()
    values = {**_attributes(spot.record), **cast(dict[str, str], frame.get("locals") or {})}
    scene = Scene(statement=statement, values=values, types=cast(dict[str, str], frame.get("types") or {}))
    if (returned := _returned_on(frame, statement)) is not None and is_assertion(statement):
        return _of_call(returned, sources)
    for suspect in suspects(scene, error_type, message):
        if suspect.value.startswith(("<function", "<class", "<module")):
            continue
        return suspect, origins_of(suspect.expression, suspect.value, spot, sources)
    return _of_call(returned, sources) if returned is not None else (None, ())


def _of_call(callee: JsonObject, sources: Sources) -> tuple[Suspect, Sequence[Origin]]:
    """A call on the failing line gave what is wrong: the way back goes through it."""

    function = str(callee["function"]).rpartition(".")[2]
    value = str(callee.get("returned"))
    return Suspect(expression=f"what {function} returned", value=value), returned_by(callee, sources)


def _returned_on(frame: JsonObject, statement: ast.AST | None) -> JsonObject | None:
    """The last call that the failing line made and that came back; one by the name that the line uses goes first."""
    record = cast(JsonObject, frame.get("record") or {})
    names = calls_in(statement)
    callees = [each for each in cast(list[JsonObject], record.get("callees") or []) if each.get("at") == frame["line"]]
    named = [each for each in callees if str(each["function"]).rpartition(".")[2] in names]
    return (named or callees or [None])[-1]


def _statement(frame: JsonObject, sources: Sources) -> ast.AST | None:
    """The failing statement, or the very part of it, where the interpreter told its columns."""
    return sources.statement(str(frame["file"]), int(frame["line"]))


def _attributes(record: JsonObject) -> dict[str, str]:
    """The last known values of attributes such as `self.total`."""
    values: dict[str, str] = {}
    changes = [cast(dict[str, str], record.get("arguments") or {})]
    changes += [step[1] for step in cast(list[list[Any]], record.get("steps") or []) if len(step) > 1]
    for change in changes:
        values.update({name: text for name, text in change.items() if "." in name})
    return values


def steps_of(record: JsonObject, sources: Sources, *, limit: int = _LINES) -> list[str]:
    """The lines that ran in a frame, each with what it changed, loops folded: its first rounds and its last."""
    if not record:
        return []
    file = str(record["file"])
    steps = cast(list[list[Any]], record["steps"])
    given = ", ".join(f"{name}={text}" for name, text in cast(dict[str, str], record["arguments"]).items())
    lines = [f"  {given}"] if given else []
    shown = steps if len(steps) <= limit else [*steps[: limit // 3], None, *steps[-(limit - limit // 3) :]]
    more = f"  … {len(steps) - limit + int(record['dropped'])} more"
    lines.extend(more if step is None else _step(step, file, sources) for step in shown)
    return lines


def _step(step: list[Any], file: str, sources: Sources) -> str:
    changes = ", ".join(f"{name} = {text}" for name, text in step[1].items()) if len(step) > 1 else ""
    if not step[0]:
        return "  … lines that were not recorded" + (f"   # {changes}" if changes else "")
    code = sources.line(file, int(step[0]))
    return f"  {step[0]}: {code}" + (f"   # {changes}" if changes else "")


def shorter(place: str, root: str) -> str:
    """A place relative to the workspace, where it lies in it."""
    return place.replace(root.rstrip(os.sep) + os.sep, "") if root else place


def _within(lines: list[str], longest: int) -> str:
    kept: list[str] = []
    size = 0
    for line in lines:
        line = line if len(line) <= 240 else line[:239] + "…"
        if size + len(line.encode()) + 1 > longest - 2:
            kept.append("…")
            break
        kept.append(line)
        size += len(line.encode()) + 1
    return "\n".join(kept)

"""Divergence: two recorded runs laid side by side, and the first place where they part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.sources import Sources
from trysquare.debug.traces import shorter

_VALUES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """One step of a run: the function, its line or what became of the call, and what changed."""

    file: str
    function: str
    first_line: int
    at: int | str
    changes: dict[str, str]

    @property
    def place(self) -> tuple[str, str, int | str]:
        return self.file, self.function, self.at

    @property
    def line(self) -> int:
        return self.at if isinstance(self.at, int) else self.first_line


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """Where two runs part: the values that differ at the same step, and the step from which they go other ways."""

    same: int
    """Steps that both made."""
    values: tuple[tuple[Moment, str, str | None, str | None], ...] = ()
    """The moment, the name, its value in the first run and in the second."""
    before: Moment | None = None
    """The last step that both made before they parted."""
    one: Moment | None = None
    other: Moment | None = None


def compare(one: JsonObject, other: JsonObject) -> Divergence:
    """The first differences of two runs, in the functions that both ran."""
    shared = {_key(each) for each in _functions(one)} & {_key(each) for each in _functions(other)}
    left, right = _moments(one, shared), _moments(other, shared)
    values: list[tuple[Moment, str, str | None, str | None]] = []
    for index, (mine, its) in enumerate(zip(left, right, strict=False)):
        if mine.place != its.place:
            before = left[index - 1] if index else None
            return Divergence(same=index, values=tuple(values), before=before, one=mine, other=its)
        if len(values) < _VALUES:
            values.extend(_different(mine, its))
    same = min(len(left), len(right))
    longer = left[same:] or right[same:]
    ended = {"one": left[same]} if len(left) > same else {"other": longer[0]} if longer else {}
    before = left[same - 1] if same else None
    return Divergence(same=same, values=tuple(values[:_VALUES]), before=before if ended else None, **ended)


def divergence_text(found: Divergence, root: str, sources: Sources) -> str:
    """The divergence in a few lines."""
    lines: list[str] = []
    if not found.same and found.one is None and found.other is None:
        return "The two runs share no function of the workspace."
    for moment, name, mine, its in found.values[:_VALUES]:
        what = name or "what it returned"
        head = "First different value" if not lines else "then"
        lines.append(f"{head}: {_told(moment, root, sources)}  {what} = {mine} here, {its} there")
    if found.one is not None or found.other is not None:
        if found.before is not None:
            lines.append(f"First different way: after {_told(found.before, root, sources)}")
        lines.append(f"  here: {_told(found.one, root, sources)}")
        lines.append(f"  there: {_told(found.other, root, sources)}")
    if not lines:
        lines.append("Both runs did the same in the functions that they share.")
    return "\n".join([*lines, f"{found.same} steps in functions that both ran were made by both."])


def _told(moment: Moment | None, root: str, sources: Sources) -> str:
    if moment is None:
        return "nothing more ran"
    place = f"{shorter(moment.file, root)}:{moment.line}"
    if isinstance(moment.at, str):
        return f"{place} {moment.function} {moment.at}"
    return f"{place} `{sources.line(moment.file, moment.line)}` in {moment.function}"


def _different(mine: Moment, its: Moment) -> list[tuple[Moment, str, str | None, str | None]]:
    names = [*mine.changes, *(name for name in its.changes if name not in mine.changes)]
    pairs = [(name, mine.changes.get(name), its.changes.get(name)) for name in names]
    return [(mine, name, first, second) for name, first, second in pairs if first != second]


def _functions(run: JsonObject) -> list[JsonObject]:
    return cast(list[JsonObject], run.get("functions") or [])


def _key(function: JsonObject) -> tuple[str, str]:
    return str(function["file"]), str(function["function"])


def _moments(run: JsonObject, shared: set[tuple[str, str]]) -> Sequence[Moment]:
    functions = _functions(run)
    found: list[Moment] = []
    for step in cast(list[list[Any]], run.get("steps") or []):
        number, at, changes = step
        function = functions[int(number)]
        if _key(function) in shared:
            file, name = _key(function)
            found.append(
                Moment(file=file, function=name, first_line=int(function["first_line"]), at=at, changes=changes)
            )
    return found

"""An explanation as annotated source: the failing line, the suspects in their order, the values beside the lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trysquare.debug.explain.explain import FULL, Explained, Explanation, RanLine
from trysquare.debug.sources import Sources, relative

_AROUND = 3
"""Lines that are shown before and after one that says something."""
_MAX_FAILURES = 10
_MAX_SUSPECTS = 10
_MAX_FILES = 8
_MAX_CHANGES = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceLine:
    """A line of source with what is known of it."""

    number: int
    text: str
    is_failing: bool = False
    rank: int | None = None
    """Its place among the suspects."""
    values: str = ""
    is_after_gap: bool = False
    """Whether lines before it are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """The lines of one file that matter."""

    file: str
    lines: Sequence[SourceLine]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedSuspect:
    """A line that may be wrong, and why."""

    rank: int
    location: str
    code: str
    function: str
    why: str
    values: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedTest:
    """One test that failed."""

    name: str
    error: str
    location: str
    code: str
    suspects: Sequence[RankedSuspect]
    confidence: str
    excerpts: Sequence[Excerpt]
    text: str
    """The whole explanation, as the command line prints it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What was found of a target."""

    summary: str
    """What is said where nothing failed."""
    failures: Sequence[FailedTest]
    more: int
    """Tests that failed and are not explained."""
    warnings: Sequence[str]


def report_of(explained: Explained, root: Path, *, summary: str = "", warnings: Sequence[str] = ()) -> Report:
    """An outcome with the source of each failure."""
    shown = explained.failures[:_MAX_FAILURES]
    failures = [_failed(name, each, root) for name, each in shown]
    more = max(explained.failed_count, len(explained.failures)) - len(shown)
    return Report(summary="" if failures else summary, failures=failures, more=more, warnings=warnings)


def _failed(name: str, explanation: Explanation, root: Path) -> FailedTest:
    found = explanation.localization
    return FailedTest(
        name=name,
        error=explanation.error,
        location=relative(explanation.location, str(root)),
        code=explanation.code,
        suspects=_suspects(explanation, root),
        confidence=found.confidence if found is not None and found.is_located else "",
        excerpts=_excerpts(explanation, root),
        text=explanation.to_text(str(root), longest=FULL),
    )


def _suspects(explanation: Explanation, root: Path) -> list[RankedSuspect]:
    """The suspects of all tests that were run; without them, the lines that the wrong value came by."""
    found = explanation.localization
    if found is None or not found.is_located:
        return [
            RankedSuspect(
                rank=rank, location=relative(each.location, str(root)), code=each.code, function="", why=each.what,
                values="",
            )
            for rank, each in enumerate(explanation.locations[:_MAX_SUSPECTS], start=1)
        ]  # fmt: skip
    failing, passing = found.counts
    return [
        RankedSuspect(
            rank=rank, location=relative(each.location, str(root)), code=each.code, function=each.function,
            why=each.why(failing, passing), values=each.values(),
        )
        for rank, each in enumerate(found.suspects[:_MAX_SUSPECTS], start=1)
    ]  # fmt: skip


def _excerpts(explanation: Explanation, root: Path) -> list[Excerpt]:
    """The source around the failing line, the suspects and the lines that ran, the file of the failure first."""
    sources, values = Sources(), values_beside(explanation.ran)
    failing = _place(explanation.location)
    suspects = explanation.suspects or explanation.locations
    ranks = {(each.file, each.line): rank for rank, each in enumerate(suspects[:_MAX_SUSPECTS], start=1)}
    for each in explanation.suspects[:_MAX_SUSPECTS]:
        if text := each.values():
            values.setdefault((each.file, each.line), text)
    for known in explanation.facts:
        values.setdefault(failing, f"{known.suspect.expression} = {known.suspect.value}")
    marked = dict.fromkeys([failing, *ranks, *values])
    files = [each for each in dict.fromkeys(file for file, _ in marked) if is_inside(each, root)]
    return [
        Excerpt(
            file=relative(file, str(root)),
            lines=list(_lines(file, sources, failing, ranks, values, [line for each, line in marked if each == file])),
        )
        for file in files[:_MAX_FILES]
    ]


def _lines(
    file: str,
    sources: Sources,
    failing: tuple[str, int],
    ranks: Mapping[tuple[str, int], int],
    values: Mapping[tuple[str, int], str],
    marked: Sequence[int],
) -> Iterable[SourceLine]:
    lines, last = sources.lines(file), 0
    shown = {near for line in marked for near in range(line - _AROUND, line + _AROUND + 1)}
    for number in sorted(each for each in shown if 0 < each <= len(lines)):
        place = (file, number)
        yield SourceLine(
            number=number,
            text=lines[number - 1],
            is_failing=place == failing,
            rank=ranks.get(place),
            values=values.get(place, ""),
            is_after_gap=number > last + 1 and last > 0,
        )
        last = number


def values_beside(ran: Iterable[RanLine]) -> dict[tuple[str, int], str]:
    """What each line changed, in the order in which it ran."""
    found: dict[tuple[str, int], list[str]] = {}
    for each in ran:
        found.setdefault((each.file, each.line), []).extend(f"{name} = {text}" for name, text in each.changes.items())
    return {place: _some(list(dict.fromkeys(changes))) for place, changes in found.items()}


def _some(changes: Sequence[str]) -> str:
    """The first and the last changes of a line that ran often."""
    if len(changes) <= _MAX_CHANGES:
        return ", ".join(changes)
    return ", ".join([*changes[: _MAX_CHANGES // 2], "…", *changes[-_MAX_CHANGES // 2 :]])


def is_inside(file: str, root: Path) -> bool:
    """Whether a file is one of the project: what the output of a test names may be any file."""
    try:
        return Path(file).resolve().is_relative_to(root)
    except (OSError, ValueError):
        return False


def _place(location: str) -> tuple[str, int]:
    file, _, line = location.rpartition(":")
    return file, int(line) if line.isdigit() else 0

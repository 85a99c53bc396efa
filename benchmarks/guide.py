"""The section `guide`: content by expression beside the original, and updates by several processes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median

from benchmarks.guide_content import (
    Asking,
    Layout,
    named_documents,
    original_load,
    our_load,
    tagged_and_excluded,
    whole_category,
    wildcard,
    write_content,
)
from benchmarks.guide_updates import LOCKS, updates_seconds, wait_for_dead
from benchmarks.peers.mcp_guide_environment import Original, original
from benchmarks.tables import Table, Target

ONE_CATEGORY = Layout(categories=1, documents=10_000)
BOTH_HOLD = Layout(categories=100, documents=100)
"""The original reads at most 100 documents of a category."""
PROCESSES, UPDATES = 4, 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A kind of request that is measured."""

    title: str
    asking: Asking
    layout: Layout
    beside_original: bool = False


QUESTIONS = (
    Question(title="3 documents by name", asking=named_documents, layout=ONE_CATEGORY),
    Question(title="10 documents by pattern", asking=wildcard, layout=ONE_CATEGORY),
    Question(title="20 documents by tag, one excluded", asking=tagged_and_excluded, layout=ONE_CATEGORY),
    Question(title="3 documents by name", asking=named_documents, layout=BOTH_HOLD, beside_original=True),
    Question(title="10 documents by pattern", asking=wildcard, layout=BOTH_HOLD, beside_original=True),
    Question(title="a category of 100 documents", asking=whole_category, layout=BOTH_HOLD, beside_original=True),
)


@dataclass(slots=True)
class GuideResults:
    """The best of all rounds for CPU and time; for the waits, every one."""

    own: dict[Question, float] = field(default_factory=dict[Question, float])
    """Milliseconds of CPU a call."""
    theirs: dict[Question, float] = field(default_factory=dict[Question, float])
    together: float = 0.0
    alone: float = 0.0
    waits: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """Milliseconds that a process waited for a dead one, by the lock that the dead one held."""


@cache
def _original() -> Original | None:
    found = original()
    if isinstance(found, str):
        print(found, file=sys.stderr)
        return None
    return found


def measure_guide(results: GuideResults, seconds: float, *, quick: bool = False) -> None:
    """One round of everything."""
    questions = [_smaller(each) for each in QUESTIONS] if quick else QUESTIONS
    for layout in dict.fromkeys(question.layout for question in questions):
        with tempfile.TemporaryDirectory() as folder:
            content = Path(folder) / "content"
            write_content(content, layout)
            for question in (each for each in questions if each.layout == layout):
                _measure_question(results, question, content, Path(folder), seconds)
    _measure_updates(results, each=2 if quick else UPDATES)


def _smaller(question: Question) -> Question:
    """The same with little content, and without the original, which would have to be installed first."""
    layout = (
        Layout(categories=1, documents=2_000)
        if question.layout == ONE_CATEGORY
        else Layout(categories=3, documents=100)
    )
    return replace(question, layout=layout, beside_original=False)


def _measure_question(results: GuideResults, question: Question, content: Path, folder: Path, seconds: float) -> None:
    layout, asking = question.layout, question.asking
    load = our_load(content, _made(folder / "ours"), layout, asking, seconds)
    _keep_best(results.own, question, load.cpu_per_call / 1000)
    found = _original() if question.beside_original else None
    if found is not None:
        load = original_load(found, content, _made(folder / "theirs"), layout, asking, seconds)
        _keep_best(results.theirs, question, load.cpu_per_call / 1000)


def _measure_updates(results: GuideResults, *, each: int) -> None:
    alone, together = updates_seconds(1, PROCESSES * each), updates_seconds(PROCESSES, each)
    results.alone = min(results.alone or alone, alone)
    results.together = min(results.together or together, together)
    for lock in LOCKS:
        results.waits.setdefault(lock, []).extend(wait_for_dead(lock) * 1000 for _ in range(3))


def _keep_best(kept: dict[Question, float], question: Question, found: float) -> None:
    kept[question] = min(kept.get(question, found), found)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def guide_tables(results: GuideResults) -> Iterator[Table]:
    """The figures of this section."""
    if results.own:
        yield _content_table(results)
    if results.alone:
        yield _updates_table(results)


def _content_table(results: GuideResults) -> Table:
    rows: list[list[str]] = []
    for question, own in results.own.items():
        theirs = results.theirs.get(question)
        beside = [f"{theirs:.1f} ms", f"{theirs / own:.1f}x"] if theirs else ["-", "-"]
        rows.append([question.title, str(question.layout), f"{own:.2f} ms", *beside])
    found = _original() if results.theirs else None
    name = f"mcp-guide {found.version}" if found else "mcp-guide"
    head = ["what is asked for", "of", "Trysquare, CPU a call", f"{name}, CPU a call", "to ours"]
    return Table(title="The guide: get_content over stdio, after the first call", head=head, rows=rows)


def _updates_table(results: GuideResults) -> Table:
    rows = [
        ["one process makes all updates", f"{results.alone:.2f} s"],
        [f"{PROCESSES} processes make a quarter each", f"{results.together:.2f} s"],
    ]
    for lock, waits in results.waits.items():
        shown = f"{median(waits):.0f} ms (median), {max(waits):.0f} ms (longest of {len(waits)})"
        rows.append([f"update after a process was killed that held the lock of {LOCKS[lock]}", shown])
    return Table(title="The guide: updates of flags, documents and guide.json", head=["what", "time"], rows=rows)


def guide_targets(results: GuideResults) -> Iterator[Target]:
    """What we promise of this section."""
    for question, own in results.own.items():
        promise = f"ms of CPU for {question.title}, {question.layout}"
        yield Target(promise=promise, found=own, limit=20)
    for question, theirs in results.theirs.items():
        promise = f"CPU for {question.title}, {question.layout}, to mcp-guide's"
        yield Target(promise=promise, found=results.own[question] / theirs, limit=0.2)
    if results.alone:
        promise = f"time of {PROCESSES} processes' updates, to one process making all"
        yield Target(promise=promise, found=results.together / results.alone, limit=2)
    for lock, waits in results.waits.items():
        yield Target(promise=f"longest wait for a dead process, {LOCKS[lock]}, ms", found=max(waits), limit=100)

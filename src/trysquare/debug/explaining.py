"""Explaining: the report of a recorded failure as a few lines: the error at its own place, and what is known of why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.blaming import Known, Verdict, calls_from, verdict
from trysquare.debug.origins import Origin, Spot, deciding, told_return
from trysquare.debug.recorder.watcher import FRAMEWORK, USER
from trysquare.debug.sites import Raised, chosen, read_chain, read_raised, shorter
from trysquare.debug.sources import Sources
from trysquare.debug.suspicion import Suspect, is_assertion

LONGEST = 2000
_LINES = 14
_DETAIL = 6
_OTHERS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why something failed, as far as it is known. Every line of it is backed by what was recorded."""

    error: str
    place: str
    code: str
    function: str
    head: Raised | None = None
    """The exception that `error` and `place` are of."""
    passed_on: str = ""
    """The exception that ended the test, where none of its frames is the user's and `head` is one of its chain."""
    chain: tuple[Raised, ...] = ()
    """What it was caused by, or was raised while handling, each with its own place."""
    also_raised: tuple[JsonObject, ...] = ()
    """Exceptions of the user's functions that are no part of this failure: caught, or those of threads and handlers."""
    blamed: Suspect | None = None
    origins: tuple[Origin, ...] = ()
    deciding: tuple[Origin, ...] = ()
    """The loops and conditions that decided whether the value's line ran."""
    facts: tuple[Known, ...] = ()
    """The values of the failing line, where it is not known which of them is wrong."""
    calls: tuple[JsonObject, ...] = ()
    """The calls that the failing statement made."""
    is_test_blamable: bool = True
    """Whether a line of the test may be where to look: it raised itself, and not by an assertion."""
    detail: tuple[str, ...] = ()
    """The lines of the message after its first."""
    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    written: tuple[Raised, ...] = field(default=())
    """Exceptions whose tracebacks stand in the output, such as those of child processes."""
    output: tuple[str, ...] = ()
    """The last lines that the program wrote."""

    @property
    def is_known(self) -> bool:
        """Whether there is a place to look at first that the recording speaks for."""
        return bool(self.places)

    def to_text(self, root: str = "", *, longest: int = LONGEST) -> str:
        """The explanation as lines, what matters first, within a length."""
        lost = [each for each in self.also_raised if _is_lost(each)]
        caught = [each for each in self.also_raised if not _is_lost(each)]
        lines = [*self._heading(root), *self._parts(root), *(_told_aside(each, root) for each in lost[-_OTHERS:])]
        lines.extend([*self._advice(root), *self.detail, *self._way_back(root)])
        lines.extend(_told_aside(each, root) for each in caught[-_OTHERS:])
        lines.extend(f"in the output: {each.to_text(root)}" for each in self.written[-_OTHERS:])
        lines.extend(self.notes)
        if self.output:
            lines.append("The last that it wrote:")
            lines.extend(f"  {line}" for line in self.output)
        if self.steps:
            lines.append("What ran, with what each line changed:")
            lines.extend(self.steps)
        return _within(lines, longest)

    def _heading(self, root: str) -> list[str]:
        """The error with its own place, what it came from with theirs, and whose code raised it."""
        if self.head is None:
            where = f"{shorter(self.place, root)} in {self.function}: {self.code}"
            return [f"{self.error}  [{where}]"]
        lines = [self.head.to_text(root)]
        site, nearest = self.head.site, self.head.nearest
        # A check of a test framework raises where it was called; how it does so inside says nothing.
        if site is not None and site != nearest and site.label not in (USER, FRAMEWORK):
            lines.append(f"raised by {site.to_text(root)}")
        if site is not None and self.head.user is None and not self.head.parts:
            lines.append("No line of your code is in its traceback.")
        if self.passed_on:
            lines.append(f"passed on as {self.passed_on}")
        return [*lines, *(each.to_text(root) for each in self.chain)]

    def _advice(self, root: str) -> list[str]:
        """Where to look, the likeliest first: the way back ends at the line that made the value."""
        if not self.places:
            return []
        first, *others = (f"{shorter(f'{each.file}:{each.line}', root)} `{each.code}`" for each in self.places)
        told = self.places[0].what
        lines = [f"Look first at {first}" + (f": {told}" if told else "")]
        return [*lines, f"then at {', '.join(others[:2])}"] if others else lines

    def _way_back(self, root: str) -> list[str]:
        if self.blamed is not None:
            return [f"Because {self.blamed.expression} is {self.blamed.value}", *_told_origins(self.origins, root)]
        if self.head is None or self.head.user is None or not (self.facts or self.calls):
            return []
        lines = ["Which value is wrong is not known. Known at that line:"]
        for known in self.facts:
            lines.append(f"  {known.suspect.expression} = {known.suspect.value}")
            lines.extend(f"  {line}" for line in _told_origins(known.origins[-2:], root))
        told = "\n".join(lines)
        calls = [f"{told_return(each)}  [{shorter(each['file'], root)}:{each['last_line']}]" for each in self.calls]
        return [*lines, *(f"  called: {call}" for call in calls if call.partition("  [")[0] not in told)]

    def _parts(self, root: str) -> list[str]:
        if self.head is None:
            return []
        lines: list[str] = []
        for part in [*self.head.parts, *(inner for each in self.chain for inner in each.parts)]:
            lines.extend(_told_part(part, root))
        if self.head.parts_left:
            lines.append(f"… {self.head.parts_left} more parts")
        return lines

    @property
    def places(self) -> tuple[Origin, ...]:
        """The lines that are likely to be wrong: where the value was made, what decided over it, what it came by.

        A line of the test itself is one of them only where it raised: what an assertion finds wrong is what it tests.
        Where an exception got lost on the way, none is: what it left undone is not known.
        """
        if not self.origins or self.blamed is None or any(_is_lost(each) for each in self.also_raised):
            return ()
        last, *before = reversed(self.origins)
        found = {(each.file, each.line): each for each in [*reversed(before), *self.deciding, last]}
        order = dict.fromkeys((each.file, each.line) for each in [last, *self.deciding, *before])
        return tuple(found[place] for place in order if self.is_test_blamable or not found[place].is_test)


def explain(failure: JsonObject, sources: Sources | None = None) -> Explanation:
    """Explain one recorded failure."""
    known = sources or Sources()
    own, links = read_raised(failure), read_chain(failure)
    head = chosen(own, links)
    after = links[links.index(head) + 1 :] if head is not own else links
    where = head.nearest
    found, spot = _verdict(head, known)
    origins = found.blamed.origins if found.blamed is not None else ()
    return Explanation(
        error=head.error,
        place="?" if where is None else where.place,
        code="" if where is None else where.code,
        function="?" if where is None else where.function,
        head=head if head is own else _without_link(head),
        passed_on="" if head is own else str(failure["type"]),
        chain=tuple(after),
        also_raised=tuple(cast(list[JsonObject], failure.get("also_raised") or [])),
        blamed=None if found.blamed is None else found.blamed.suspect,
        origins=origins,
        deciding=tuple(deciding(origins[-1], known)) if origins else (),
        facts=() if found.blamed is not None else found.facts,
        calls=() if spot is None else tuple(calls_from(spot, known)[-4:]),
        is_test_blamable=spot is None or _is_test_blamable(spot, known),
        detail=_detail(head.message),
        steps=() if spot is None else tuple(_lives(spot, origins, known)),
        notes=tuple(f"note: {note}" for note in cast(list[str], failure.get("notes") or [])),
    )


def _without_link(raised: Raised) -> Raised:
    return Raised(
        error=raised.error,
        message=raised.message,
        site=raised.site,
        user=raised.user,
        frames=raised.frames,
        parts=raised.parts,
        parts_left=raised.parts_left,
        report=raised.report,
    )


def _verdict(head: Raised, sources: Sources) -> tuple[Verdict, Spot | None]:
    """What the line tells at which an exception came out of the user's code."""
    report = head.report or {}
    own = [frame for frame in cast(list[JsonObject], report.get("frames") or []) if frame["own"]]
    if not own or report.get("source") is not None:
        return Verdict(), None
    *callers, frame = own
    spot = Spot(frame=frame, callers=callers)
    if "module" not in report:
        # No exception: the program stood there when it was stopped, or ended itself.
        return Verdict(), spot
    return verdict(spot, str(report["type"]), str(report["message"]), sources), spot


def _detail(message: str) -> tuple[str, ...]:
    """What a message says after its first line; of one that holds a traceback, its end, where the error stands."""
    lines = [line.rstrip() for line in message.strip().splitlines()[1:] if line.strip()]
    is_traceback = "Traceback (most recent call last)" in message
    return tuple(f"  {line}" for line in (lines[-_DETAIL:] if is_traceback else lines[:_DETAIL]))


def _told_origins(origins: Sequence[Origin], root: str) -> list[str]:
    return [f"  {shorter(f'{each.file}:{each.line}', root)} `{each.code}` ({each.what})" for each in origins]


def _place(told: JsonObject) -> str:
    return f"{told['file']}:{told['line']}"


def _told_part(part: Raised, root: str, depth: int = 1) -> list[str]:
    lines = [f"{'  ' * depth}{part.to_text(root)}"]
    for inner in part.parts:
        lines.extend(_told_part(inner, root, depth + 1))
    return [*lines, f"{'  ' * depth}  … {part.parts_left} more"] if part.parts_left else lines


def _is_lost(aside: JsonObject) -> bool:
    """Whether an exception left the user's code for good, as that of a thread or handler; protocols raise to answer."""
    left = str(aside["left"]).rpartition(".")[2]
    return aside.get("caught") is None and not (left.startswith("__") and left.endswith("__"))


def _is_test_blamable(spot: Spot, sources: Sources) -> bool:
    statement = sources.statement(str(spot.frame["file"]), int(spot.frame["line"]))
    return spot.is_test and not is_assertion(statement)


def _told_aside(aside: JsonObject, root: str) -> str:
    """An exception that is no part of the failure, and what became of it."""
    error = f"{aside['type']}({aside['message']})"
    where = f"{shorter(_place(aside), root)} in {aside['function']}: {aside['code']}"
    caught = cast(JsonObject | None, aside.get("caught"))
    if caught is not None:
        became = f"caught in {caught['function']} at {shorter(_place(caught), root)}"
    else:
        became = f"passed on by {aside['left']}, not caught in your code"
    thread = f" in thread {aside['thread']}" if aside.get("thread") else ""
    return f"also raised{thread}, {became}: {error}  [{where}]"


def _lives(spot: Spot, origins: Sequence[Origin], sources: Sources) -> list[str]:
    """The lines that ran in the failing frame, and in the call that gave it the wrong value."""
    lines = steps_of(spot.record, sources)
    callee = next((each.record for each in reversed(origins) if each.record is not None), None)
    return lines if callee is None else [*lines, f" in {callee['function']}:", *steps_of(callee, sources)]


def steps_of(record: JsonObject, sources: Sources, *, limit: int = _LINES) -> list[str]:
    """The lines that ran in a frame, each with what it changed, loops folded: its first rounds and its last."""
    if not record:
        return []
    file = str(record["file"])
    steps = cast(list[list[Any]], record["steps"])
    known = {**cast(dict[str, str], record["arguments"]), **cast(dict[str, str], record.get("captured") or {})}
    given = ", ".join(f"{name}={text}" for name, text in known.items())
    lines = [f"  {given}"] if given else []
    if record.get("before"):
        lines.append(f"  … {record['before']} lines before these")
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


def _within(lines: list[str], longest: int) -> str:
    kept: list[str] = []
    size = 0
    for line in lines:
        line = line if len(line) <= 240 else line[:239] + "…"
        if size + len(line.encode()) + 1 > longest - 2:
            kept[-1:] = ["…"] if kept and kept[-1].endswith(":") else [*kept[-1:], "…"]
            break
        kept.append(line)
        size += len(line.encode()) + 1
    return "\n".join(kept)

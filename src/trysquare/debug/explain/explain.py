"""Explain a failing test or program: run it once under the recorder, and report why it failed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from trysquare.core.json import JsonObject
from trysquare.core.text import closest_names, truncate
from trysquare.debug.explain.blame import Known, Verdict, calls_from, verdict
from trysquare.debug.explain.failures import Raised, crash_in, main_exception, read_chain, read_raised, tracebacks_in
from trysquare.debug.explain.localization import BUDGET, Localization, SuspectLine, changed_lines, localize
from trysquare.debug.explain.provenance import Origin, SourceLocation, deciding, return_text, steps_of
from trysquare.debug.explain.recording import TIMEOUT, Cost, Run, record_run
from trysquare.debug.explain.suspects import Suspect, is_assertion
from trysquare.debug.recorder.hooks import COMMAND, FRAMEWORK, USER
from trysquare.debug.sessions.launch import Target
from trysquare.debug.sources import Sources, relative
from trysquare.processes.supervisor import ProcessSupervisor

LONGEST = 2000
FULL = 40_000
"""Bytes of an explanation, and of one with everything."""
_WIDEST = 240
_MAX_STEPS = 14
_MAX_DETAIL = 6
_MAX_OTHERS = 3
_MAX_SUSPECTS = 5
_ALL_SUSPECTS = 40
_MAX_OUTPUT = 5
_FRAMEWORK_REPORT = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$", re.MULTILINE)
"""Begin of pytest's report on the tests that failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RanLine:
    """A line that ran, with what it changed."""

    file: str
    line: int
    changes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why something failed, as far as it is known. Every line of it is backed by what was recorded."""

    error: str
    location: str
    code: str
    function: str
    head: Raised | None = None
    """The exception that `error` and `location` are of."""
    passed_on: str = ""
    """The exception that ended the test, if none of its frames is the user's and `head` is one of its chain."""
    chain: tuple[Raised, ...] = ()
    """Its causes, and the exceptions it was raised while handling."""
    also_raised: tuple[JsonObject, ...] = ()
    """Exceptions of the user's functions that are not part of this failure: caught, or of threads and handlers."""
    blamed: Suspect | None = None
    origins: tuple[Origin, ...] = ()
    deciding: tuple[Origin, ...] = ()
    """The loops and conditions that decided whether the value's line ran."""
    facts: tuple[Known, ...] = ()
    """The values of the failing line, if it is not known which of them is wrong."""
    calls: tuple[JsonObject, ...] = ()
    """The calls that the failing statement made."""
    is_test_blamable: bool = True
    """Whether a line of the test may be where to look: it raised itself, and not by an assertion."""
    detail: tuple[str, ...] = ()
    """The lines of the message after its first."""
    steps: tuple[str, ...] = ()
    ran: tuple[RanLine, ...] = ()
    """The recorded lines of the failing frame, and of the call that gave it the wrong value."""
    notes: tuple[str, ...] = ()
    written: tuple[Raised, ...] = ()
    """Exceptions whose tracebacks are in the output, such as those of child processes."""
    output: tuple[str, ...] = ()
    """The last lines that the program wrote."""
    test: tuple[str, ...] = ()
    """The file of the test that failed, and its name in there."""
    localization: Localization | None = None

    @property
    def suspects(self) -> tuple[SuspectLine, ...]:
        """The lines that are likely to be wrong by all tests that were run, the most likely first."""
        return () if self.localization is None else self.localization.suspects

    @property
    def locations(self) -> tuple[Origin, ...]:
        """The lines that are likely to be wrong: where the value was made, what decided over it, what it came by.

        A line of the test itself is one of them only if it raised: what an assertion finds wrong is what it tests.
        If an exception was lost on the way, none is: what it left undone is not known.
        """
        if not self.origins or self.blamed is None or any(_is_lost(each) for each in self.also_raised):
            return ()
        last, *before = reversed(self.origins)
        found = {each.location: each for each in [*reversed(before), *self.deciding, last]}
        order = dict.fromkeys(each.location for each in [last, *self.deciding, *before])
        return tuple(found[each] for each in order if self.is_test_blamable or not found[each].is_test)

    def to_text(self, root: str = "", *, longest: int = LONGEST) -> str:
        """The explanation as lines, most important first, within a number of bytes."""
        count = _MAX_SUSPECTS if longest <= LONGEST else _ALL_SUSPECTS
        lost = [_aside_text(each, root) for each in self.also_raised if _is_lost(each)]
        caught = [_aside_text(each, root) for each in self.also_raised if not _is_lost(each)]
        lines = [*self._heading(root), *self._parts(root), *lost[-_MAX_OTHERS:], *self._advice(root), *self.detail]
        if self.localization is not None and self.localization.note:
            lines.append(self.localization.note)
        if self.suspects:
            lines[-len(self.detail) or len(lines) :] = [*self.detail, *self._suspect_lines(root, count)]
        lines += [*self._provenance(root), *caught[-_MAX_OTHERS:]]
        lines += [f"in the output: {each.to_text(root)}" for each in self.written[-_MAX_OTHERS:]]
        lines += self.notes
        if self.output:
            lines += ["Last output:", *(f"  {line}" for line in self.output)]
        if self.steps:
            lines += ["Lines that ran, with what each changed:", *self.steps]
        return _fit(lines, longest)

    def _heading(self, root: str) -> list[str]:
        """The error and its causes with their locations, and whose code raised it."""
        if self.head is None:
            return [f"{self.error}  [{relative(self.location, root)} in {self.function}: {self.code}]"]
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

    def _suspect_lines(self, root: str, count: int) -> list[str]:
        return [] if self.localization is None else self.localization.to_lines(root, count=count)

    def _advice(self, root: str) -> list[str]:
        """Where to look, the likeliest first."""
        if self.suspects or not self.locations:
            return []
        first, *others = (f"{relative(each.location, root)} `{each.code}`" for each in self.locations)
        what = self.locations[0].what
        lines = [f"Look first at {first}" + (f": {what}" if what else "")]
        return [*lines, f"then at {', '.join(others[:2])}"] if others else lines

    def _provenance(self, root: str) -> list[str]:
        if self.blamed is not None:
            return [f"Because {self.blamed.expression} is {self.blamed.value}", *_origin_lines(self.origins, root)]
        if self.head is None or self.head.user is None or not (self.facts or self.calls):
            return []
        lines = ["Which value is wrong is unknown. Known at that line:"]
        for known in self.facts:
            lines.append(f"  {known.suspect.expression} = {known.suspect.value}")
            lines += [f"  {line}" for line in _origin_lines(known.origins[-2:], root)]
        text = "\n".join(lines)
        calls = [f"{return_text(each)}  [{relative(each['file'], root)}:{each['last_line']}]" for each in self.calls]
        return [*lines, *(f"  called: {call}" for call in calls if call.partition("  [")[0] not in text)]

    def _parts(self, root: str) -> list[str]:
        if self.head is None:
            return []
        parts = [*self.head.parts, *(inner for each in self.chain for inner in each.parts)]
        lines = [line for part in parts for line in _part_lines(part, root)]
        return [*lines, f"… {self.head.parts_left} more parts"] if self.head.parts_left else lines


def explain(failure: JsonObject, sources: Sources) -> Explanation:
    own, chain = read_raised(failure), read_chain(failure)
    head = main_exception(own, chain)
    found, at = _verdict(head, sources)
    blamed = found.blamed
    origins = () if blamed is None else blamed.origins
    return Explanation(
        **_heading_fields(head),
        head=replace(head, link=""),
        passed_on="" if head is own else str(failure["type"]),
        chain=chain if head is own else chain[chain.index(head) + 1 :],
        also_raised=tuple(cast(list[JsonObject], failure.get("also_raised") or [])),
        blamed=None if blamed is None else blamed.suspect,
        origins=origins,
        deciding=tuple(deciding(origins[-1], sources)) if origins else (),
        facts=found.facts if blamed is None else (),
        calls=() if at is None else tuple(calls_from(at, sources)[-4:]),
        is_test_blamable=at is None or (at.is_test and not is_assertion(sources.statement(at.file, at.line))),
        detail=_detail(head.message),
        steps=() if at is None else tuple(_steps(at, origins, sources)),
        ran=() if at is None else tuple(_ran(at, origins)),
        notes=tuple(f"note: {note}" for note in cast(list[str], failure.get("notes") or [])),
        test=tuple(cast(list[str], failure.get("test") or [])),
    )


def _heading_fields(raised: Raised) -> dict[str, Any]:
    at = raised.nearest
    if at is None:
        return {"error": raised.error, "location": "?", "code": "", "function": "?"}
    return {"error": raised.error, "location": at.location, "code": at.code, "function": at.function}


def _verdict(head: Raised, sources: Sources) -> tuple[Verdict, SourceLocation | None]:
    """Judge the line at which an exception left the user's code."""
    report = head.report or {}
    own = [frame for frame in cast(list[JsonObject], report.get("frames") or []) if frame["own"]]
    if not own or report.get("source") is not None:
        return Verdict(), None
    *callers, frame = own
    at = SourceLocation(frame=frame, callers=callers)
    if "module" not in report:
        # No exception: the program was there when it was stopped, or ended itself.
        return Verdict(), at
    return verdict(at, str(report["type"]), str(report["message"]), sources), at


def _detail(message: str) -> tuple[str, ...]:
    """The lines of a message after its first; of one that contains a traceback, its end, where the error is."""
    lines = [f"  {line.rstrip()}" for line in message.strip().splitlines()[1:] if line.strip()]
    is_traceback = "Traceback (most recent call last)" in message
    return tuple(lines[-_MAX_DETAIL:] if is_traceback else lines[:_MAX_DETAIL])


def _origin_lines(origins: Sequence[Origin], root: str) -> list[str]:
    return [f"  {relative(each.location, root)} `{each.code}` ({each.what})" for each in origins]


def _part_lines(part: Raised, root: str, depth: int = 1) -> list[str]:
    indent = "  " * depth
    inner = [line for each in part.parts for line in _part_lines(each, root, depth + 1)]
    more = [f"{indent}  … {part.parts_left} more"] if part.parts_left else []
    return [f"{indent}{part.to_text(root)}", *inner, *more]


def _is_lost(aside: JsonObject) -> bool:
    """Whether an exception left the user's code uncaught, as in a thread or handler; dunder methods raise to answer."""
    left = str(aside["left"]).rpartition(".")[2]
    return aside.get("caught") is None and not (left.startswith("__") and left.endswith("__"))


def _aside_text(aside: JsonObject, root: str) -> str:
    """An exception that is not part of the failure, and how it ended."""
    caught = cast(JsonObject | None, aside.get("caught"))
    if caught is not None:
        end = f"caught in {caught['function']} at {relative(_location(caught), root)}"
    else:
        end = f"passed on by {aside['left']}, not caught in your code"
    thread = f" in thread {aside['thread']}" if aside.get("thread") else ""
    where = f"{relative(_location(aside), root)} in {aside['function']}: {aside['code']}"
    return f"also raised{thread}, {end}: {aside['type']}({aside['message']})  [{where}]"


def _location(found: JsonObject) -> str:
    return f"{found['file']}:{found['line']}"


def _steps(at: SourceLocation, origins: Sequence[Origin], sources: Sources) -> list[str]:
    """The lines that ran in the failing frame, and in the call that gave it the wrong value."""
    lines, callee = _step_lines(at.record, sources), _callee(origins)
    return lines if callee is None else [*lines, f" in {callee['function']}:", *_step_lines(callee, sources)]


def _callee(origins: Sequence[Origin]) -> JsonObject | None:
    """The record of the call that gave the wrong value."""
    return next((each.record for each in reversed(origins) if each.record is not None), None)


def _ran(at: SourceLocation, origins: Sequence[Origin]) -> list[RanLine]:
    """The recorded lines of both frames, with the arguments at the lines where the functions begin."""
    records = [each for each in (at.record, _callee(origins)) if each]
    return [line for record in records for line in _ran_lines(record)]


def _ran_lines(record: JsonObject) -> list[RanLine]:
    file, given = str(record["file"]), cast(dict[str, str], record["arguments"])
    first = [RanLine(file=file, line=int(record["first_line"]), changes=given)] if given else []
    steps = [(int(step[0]), cast(dict[str, str], step[1]) if len(step) > 1 else {}) for step in steps_of(record)]
    return first + [RanLine(file=file, line=line, changes=changes) for line, changes in steps if line]


def _step_lines(record: JsonObject, sources: Sources) -> list[str]:
    """The first and the last lines that ran in a frame, each with what it changed."""
    if not record:
        return []
    steps = steps_of(record)
    known = {**cast(dict[str, str], record["arguments"]), **cast(dict[str, str], record.get("captured") or {})}
    lines = [f"  {', '.join(f'{name}={text}' for name, text in known.items())}"] if known else []
    if record.get("before"):
        lines.append(f"  … {record['before']} lines before these")
    shown = [step_line(step, str(record["file"]), sources) for step in steps]
    if len(steps) > _MAX_STEPS:
        first = _MAX_STEPS // 3
        more = len(steps) - _MAX_STEPS + int(record["dropped"])
        shown[first : first - _MAX_STEPS] = [f"  … {more} more"]
    return lines + shown


def step_line(step: list[Any], file: str, sources: Sources) -> str:
    """A line that ran, with what it changed; a step of line 0 stands for lines that were not recorded."""
    changes = ", ".join(f"{name} = {text}" for name, text in step[1].items()) if len(step) > 1 else ""
    line = f"  {step[0]}: {sources.line(file, int(step[0]))}" if step[0] else "  … lines that were not recorded"
    return line + (f"   # {changes}" if changes else "")


def _fit(lines: list[str], longest: int) -> str:
    fitting: list[str] = []
    size = 0
    for line in (truncate(line, _WIDEST) for line in lines):
        size += len(line.encode()) + 1
        if size > longest - 2:
            fitting[-1:] = ["…"] if fitting and fitting[-1].endswith(":") else [*fitting[-1:], "…"]
            break
        fitting.append(line)
    return "\n".join(fitting)


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """Outcome of a recorded run, with an explanation of each failure."""

    outcome: str
    """failed, passed, exited, unfinished, or the signal that killed it."""
    exit_code: int | None
    failures: tuple[tuple[str, Explanation], ...]
    """The name of each failing test or program that is explained, and why it failed."""
    output: str
    cost: Cost
    failed: tuple[str, ...] = ()
    """The names of all tests that failed, explained or not."""
    failed_count: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    """The test framework's text on each that failed."""
    nearest_tests: tuple[str, ...] = ()
    """The nearest names of tests, if none was found by the name."""
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    ran: int | None = None
    """The number of tests that ran, if that was counted."""


async def explain_failure(
    target: Target, root: Path, supervisor: ProcessSupervisor, *, timeout: float = TIMEOUT,
    env: Mapping[str, str] | None = None, is_run_before: bool = True,
) -> Explained:  # fmt: skip
    """Run a Python target under the recorder, wait for its end, and explain each failure.

    A single test may run once before, unrecorded: of calls far from where it fails, no values are recorded then.
    """
    watch: JsonObject = {"watch": "failure", "run_before": is_run_before}
    run = await record_run(target, root, supervisor, watch, timeout=timeout, env=env)
    found = run.found
    sources = Sources()
    if target.kind == "code":
        sources.put(COMMAND, target.words[0])
    failures = [
        (str(each["name"]) or str(target), _with_output(explain(each, sources), each, run, root, sources))
        for each in cast(list[JsonObject], found.get("failures") or [])
    ]
    if not failures and (crash := crash_in(run.output, root, sources)) is not None:
        note = f"The interpreter itself crashed ({run.outcome}, exit code {run.exit_code}); no more was recorded."
        output = _last_lines(run.output.partition(crash.error)[0])
        failures = [(str(target), Explanation(**_heading_fields(crash), head=crash, notes=(note,), output=output))]
    return Explained(
        outcome=run.outcome,
        exit_code=run.exit_code,
        failures=tuple(failures),
        output=run.output,
        cost=run.cost,
        failed=tuple(cast(list[str], found.get("failed") or [])),
        failed_count=int(found.get("failed_count") or 0),
        reasons=cast(dict[str, str], found.get("reasons") or {}),
        nearest_tests=_nearest(target, cast(list[str], found.get("known_tests") or [])),
        skipped=cast(dict[str, str], found.get("skipped") or {}),
        ran=found.get("ran"),
    )


async def localize_failures(
    explained: Explained, target: Target, root: Path, supervisor: ProcessSupervisor, *, budget: float = BUDGET,
    changes: bool = True, git: bool = True, regression: bool = False, is_processor_time: bool = False,
) -> Explained:  # fmt: skip
    """Add the suspects of the first failing test."""
    if not explained.failures or budget <= 0:
        return explained
    (name, first), *others = explained.failures
    if not first.test:
        return explained
    found = await localize(
        target, first.test, root, supervisor,
        budget=budget, changes=changes, regression=regression, is_processor_time=is_processor_time,
    )  # fmt: skip
    if found.is_located:
        traced = [each.location for each in first.locations]
        found = found.with_hints(traced, await changed_lines(root) if git else {})
    return replace(explained, failures=((name, replace(first, localization=found)), *others))


def _with_output(explanation: Explanation, failure: JsonObject, run: Run, root: Path, sources: Sources) -> Explanation:
    """Add what the program wrote, and the tracebacks in it that are not the explanation's own."""
    written = _written(failure, run)
    own = str(failure.get("printed_by_test", written))
    if int(run.found.get("failed_count") or 0) > 1:
        # Which of several tests wrote it is not known.
        written = own
    attached = str(failure.get("output") or "")
    texts = [str(failure["message"]), *(str(each["message"]) for each in failure["chain"]), attached, own, written]
    known = _locations(explanation)
    found: dict[tuple[str, str], Raised] = {}
    for each in (raised for text in texts for raised in tracebacks_in(text, root, sources)):
        if each.user is not None and each.user.location not in known:
            found.setdefault((each.error, each.user.location), each)
    detail = explanation.detail or _framework_detail(explanation, failure, run)
    return replace(explanation, detail=detail, written=tuple(found.values()), output=_last_lines(attached or own))


def _last_lines(text: str) -> tuple[str, ...]:
    lines = [line.rstrip()[:160] for line in text.splitlines() if line.strip()]
    return tuple(lines[-_MAX_OUTPUT:])


def _framework_detail(explanation: Explanation, failure: JsonObject, run: Run) -> tuple[str, ...]:
    """The test framework's text, if it raised itself and no line of the user's is known."""
    if explanation.head is None or explanation.head.user is not None:
        return ()
    text = str(cast(JsonObject, run.found.get("reasons") or {}).get(str(failure["name"])) or "")
    return tuple(f"  {line.strip()}" for line in text.splitlines() if line.startswith("E"))[:_MAX_OUTPUT]


def _written(failure: JsonObject, run: Run) -> str:
    """The program's output, without the text of the recorder and the test framework on its failure."""
    written = run.output
    for text in (failure.get("printed"), run.found.get("reported")):
        written = written.replace(str(text), "") if text else written
    return _FRAMEWORK_REPORT.split(written)[0] if "printed_by_test" in failure else written


def _nearest(target: Target, known: Sequence[str]) -> tuple[str, ...]:
    asked = next((word for word in target.words if "::" in word or word.endswith(".py")), None)
    if asked is None or not known:
        return ()
    if "::" in known[0]:
        return tuple(closest_names(asked, known, count=3)) if "::" in asked else ()
    return tuple(closest_names(asked.partition("::")[0], known, count=3))


def _locations(explanation: Explanation) -> set[str]:
    """The locations of the exceptions that are in the explanation already."""
    heads = [each for each in [explanation.head, *explanation.chain] if each is not None]
    parts = [part for each in heads for part in each.parts]
    sites = {each.nearest.location for each in [*heads, *parts] if each.nearest is not None}
    return sites | {_location(each) for each in explanation.also_raised}

"""explain_failure: run a failing test or program once, recorded from inside, and say why it failed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from trysquare.core.nearest import nearest
from trysquare.core.types import JsonObject
from trysquare.debug.explaining import Explanation, explain
from trysquare.debug.recorded import TIMEOUT, Cost, Run, record_run
from trysquare.debug.recorder.watcher import COMMAND
from trysquare.debug.sites import Raised
from trysquare.debug.sources import Sources
from trysquare.debug.targets import Target
from trysquare.debug.tracebacks import crash_in, tracebacks_in
from trysquare.processes.nursery import Nursery

_LINES = 5
_REPORT = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$", re.MULTILINE)
"""Where pytest begins to tell of the tests that failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """What a recorded run came to."""

    outcome: str
    """failed, passed, exited, unfinished, or by which signal it was killed."""
    exit_code: int | None
    failures: tuple[tuple[str, Explanation], ...]
    """The name of each failing test or program that is explained, and why it failed."""
    output: str
    cost: Cost
    failed: tuple[str, ...] = ()
    """The names of all tests that failed, also of those that are not explained."""
    failed_count: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the test framework says of each that failed."""
    nearest_tests: tuple[str, ...] = ()
    """Where no test by a name was found: those whose names are nearest to it."""
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    ran: int | None = None
    """How many tests ran, where that was counted."""


async def explain_failure(
    target: Target, root: Path, nursery: Nursery, *, timeout: float = TIMEOUT, env: Mapping[str, str] | None = None
) -> Explained:
    """Run a Python target recorded, wait for its end, and explain each failure."""
    run = await record_run(target, root, nursery, {"watch": "failure"}, timeout=timeout, env=env)
    found = run.found
    sources = Sources()
    if target.kind == "code":
        sources.put(COMMAND, target.words[0])
    failures = [
        (str(each["name"]) or str(target), _with_output(explain(each, sources), each, run, root, sources))
        for each in cast(list[JsonObject], found.get("failures") or [])
    ]
    if not failures and (crash := crash_in(run.output, root, sources)) is not None:
        failures = [(str(target), _of_crash(crash, run))]
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


def _with_output(explanation: Explanation, failure: JsonObject, run: Run, root: Path, sources: Sources) -> Explanation:
    """The explanation with what the program wrote, and the tracebacks in it that are not its own."""
    written = _written(failure, run)
    own = str(failure.get("printed_by_test", written))
    if int(run.found.get("failed_count") or 0) > 1:
        # Which of several tests wrote it is not known.
        written = own
    brought = str(failure.get("output") or "")
    texts = [str(failure["message"]), *(str(each["message"]) for each in failure["chain"]), brought, own, written]
    known = _places(explanation)
    told: dict[tuple[str, str], Raised] = {}
    for text in texts:
        for each in tracebacks_in(text, root, sources):
            if each.user is not None and each.user.place not in known:
                told.setdefault((each.error, each.user.place), each)
    lines = [line.rstrip() for line in (brought or own).splitlines() if line.strip()]
    return replace(
        explanation,
        detail=explanation.detail or _framework_words(explanation, failure, run),
        written=tuple(told.values()),
        output=tuple(line[:160] for line in lines[-_LINES:]),
    )


def _framework_words(explanation: Explanation, failure: JsonObject, run: Run) -> tuple[str, ...]:
    """What the test framework says, where it raised itself and no line of the user's is known."""
    if explanation.head is None or explanation.head.user is not None:
        return ()
    said = str(cast(JsonObject, run.found.get("reasons") or {}).get(str(failure["name"])) or "")
    return tuple(f"  {line.strip()}" for line in said.splitlines() if line.startswith("E"))[:_LINES]


def _written(failure: JsonObject, run: Run) -> str:
    """What the program wrote, without what the recorder and the test framework say of its failure."""
    written = run.output
    for said in (failure.get("printed"), run.found.get("reported")):
        written = written.replace(str(said), "") if said else written
    return _REPORT.split(written)[0] if "printed_by_test" in failure else written


def _nearest(target: Target, known: Sequence[str]) -> tuple[str, ...]:
    asked = [word for word in target.words if "::" in word or word.endswith(".py")]
    if not asked or not known:
        return ()
    if "::" in known[0]:
        return tuple(nearest(asked[0], known, count=3)) if "::" in asked[0] else ()
    return tuple(nearest(asked[0].partition("::")[0], known, count=3))


def _places(explanation: Explanation) -> set[str]:
    """The places at which exceptions are told of already."""
    heads = [explanation.head, *explanation.chain]
    every = [each for each in heads if each is not None]
    parts = [part for each in every for part in each.parts]
    sites = {each.nearest.place for each in [*every, *parts] if each.nearest is not None}
    return sites | {f"{each['file']}:{each['line']}" for each in explanation.also_raised}


def _of_crash(crash: Raised, run: Run) -> Explanation:
    where = crash.nearest
    return Explanation(
        error=crash.error,
        place="?" if where is None else where.place,
        code="" if where is None else where.code,
        function="?" if where is None else where.function,
        head=crash,
        notes=(f"The interpreter itself ended ({run.outcome}, exit code {run.exit_code}); no more was recorded.",),
        output=_before_crash(run.output, crash.error),
    )


def _before_crash(output: str, error: str) -> tuple[str, ...]:
    lines = [line.rstrip()[:160] for line in output.partition(error)[0].splitlines() if line.strip()]
    return tuple(lines[-_LINES:])

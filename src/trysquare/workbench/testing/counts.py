"""Counts: how many tests passed and failed, read from what the test programs print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What a run of tests came to. None is not zero: it means that nobody told."""

    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    failures: tuple[str, ...] = ()
    """Which tests fail, as their program names them."""

    def to_json(self) -> JsonObject:
        """The numbers that are known."""
        told = {"passed": self.passed, "failed": self.failed, "skipped": self.skipped}
        return {name: number for name, number in told.items() if number is not None}


_PYTEST_END = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+)(?: in [\d.]+s.*)=*$", re.MULTILINE)
_PYTEST_NONE = re.compile(r"^=*\s*no tests ran", re.MULTILINE)
_PYTEST_FAILURE = re.compile(r"^(?:FAILED|ERROR) ([^\[\n]+?(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)


def pytest_counts(output: str) -> Counts:
    """What pytest printed with `-rfE`."""
    ends = _PYTEST_END.findall(output)
    if not ends:
        return Counts(passed=0, failed=0) if _PYTEST_NONE.search(output) else Counts()
    numbers = {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", ends[-1])}
    return Counts(
        passed=numbers.get("passed", 0),
        failed=numbers.get("failed", 0) + numbers.get("error", 0),
        skipped=numbers.get("skipped", 0),
        failures=_once(_PYTEST_FAILURE.findall(output)),
    )


_UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
_UNITTEST_END = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
_UNITTEST_FAILURE = re.compile(r"^(?:FAIL|ERROR): (\S+)(?: \((\S+)\))?", re.MULTILINE)


def unittest_counts(output: str) -> Counts:
    """What unittest printed."""
    ran = _UNITTEST_RAN.findall(output)
    if not ran:
        return Counts()
    ends = _UNITTEST_END.findall(output)
    numbers = {word: int(number) for word, number in re.findall(r"(\w+)=(\d+)", ends[-1] if ends else "")}
    failed = numbers.get("failures", 0) + numbers.get("errors", 0)
    skipped = numbers.get("skipped", 0)
    failures = [within or name for name, within in _UNITTEST_FAILURE.findall(output)]
    return Counts(passed=int(ran[-1]) - failed - skipped, failed=failed, skipped=skipped, failures=_once(failures))


def go_events(output: str) -> Iterator[dict[str, Any]]:
    """The events of `go test -json`; other lines are what the build said."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield cast(dict[str, Any], event)


def go_counts(output: str) -> Counts:
    """What `go test -json` printed. A package that does not build fails as a whole."""
    results: dict[str, str] = {}
    for event in go_events(output):
        action, package, test = event.get("Action"), event.get("Package", ""), event.get("Test")
        if action in ("pass", "fail", "skip") and test:
            results[f"{package}.{test}"] = action
        elif action == "fail" and not any(name.startswith(f"{package}.") for name in results):
            results[str(package)] = "fail"
    told = list(results.values())
    failures = tuple(name for name, action in results.items() if action == "fail")
    return Counts(passed=told.count("pass"), failed=len(failures), skipped=told.count("skip"), failures=failures)


_NODE = (
    # What each runner of npm's world prints: how many passed, how many failed, and each that did.
    (r"^Tests:.*?(\d+) passed", r"^Tests:.*?(\d+) failed", r"^\s+● (.+)$"),
    (r"^\s*Tests\s.*?(\d+) passed", r"^\s*Tests\s.*?(\d+) failed", r"^\s*(?:FAIL|\u00d7)\s+(.+?)(?: \d+ms)?$"),
    (
        r"^(?:#|\u2139) pass (\d+)",
        r"^(?:#|\u2139) fail (\d+)",
        r"^\s*(?:not ok \d+ - (?!.*# TODO)|✖ )(.+?)(?: \([\d.]+ms\))?$",
    ),
    (r"^\s*(\d+) passing", r"^\s*(\d+) failing", r"^\s*\d+\) (.+)$"),
)


def npm_counts(output: str) -> Counts:
    """What jest, vitest, node's own runner or mocha printed. Of others nothing is known but how they ended."""
    for passing, failing, failure in _NODE:
        passed, failed = _last(passing, output), _last(failing, output)
        if passed is not None or failed is not None:
            names = re.findall(failure, output, re.MULTILINE) if failed else []
            return Counts(passed=passed or 0, failed=failed or 0, failures=_once(names)[: failed or 0])
    return Counts()


def _last(pattern: str, output: str) -> int | None:
    found = re.findall(pattern, output, re.MULTILINE)
    return int(found[-1]) if found else None


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names))

"""Progress: how far a story is worked out, for pictures and pages to show at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

STAGES = ("criteria", "scenarios", "tests", "code")
"""What a story gets on its way, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """What a story has."""

    counts: tuple[int, ...]
    """How many of each of the stages."""

    @property
    def reached(self) -> tuple[bool, ...]:
        """Which stages it has something of."""
        return tuple(count > 0 for count in self.counts)

    def __str__(self) -> str:
        words = [_WORDS[stage](count) for stage, count in zip(STAGES, self.counts, strict=True) if count]
        return ", ".join(words) if words else "a name so far"


_WORDS: dict[str, Callable[[int], str]] = {
    "criteria": lambda count: f"{count} criteri{'on' if count == 1 else 'a'}",
    "scenarios": lambda count: f"{count} scenario{'' if count == 1 else 's'}",
    "tests": lambda count: "a test file",
    "code": lambda count: f"{count} code file{'' if count == 1 else 's'}",
}


def progress_of(story: Mapping[str, Any]) -> Progress:
    """How far a story is."""
    return Progress(
        counts=(
            len(story.get("acceptance_criteria") or ()),
            len(story.get("scenarios") or ()),
            1 if story.get("test_file") else 0,
            len(story.get("code_files") or ()),
        )
    )


def summary_of(stories: Iterable[Mapping[str, Any]]) -> str:
    """How far several stories are, in a few words."""
    found = [progress_of(story).reached for story in stories]
    if not found:
        return "no story yet"
    by_stage = zip(STAGES, zip(*found, strict=True), strict=True)
    told = [f"{sum(each)} with {stage}" for stage, each in by_stage if any(each)]
    return ", ".join([f"{len(found)} stor{'y' if len(found) == 1 else 'ies'}", *told])

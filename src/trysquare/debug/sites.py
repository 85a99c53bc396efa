"""Sites: an exception as it was reported: where it was raised, the nearest frame of the user's, its chain and parts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.recorder.watcher import FRAMEWORK, STANDARD, USER

_WORD = re.compile(r"\w")
_LINKS = {"cause": "caused by", "context": "raised while handling", "part": "part:"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """A line of a function, and whose code it is: the user's, a library's, the standard library's or a framework's."""

    file: str
    line: int
    function: str
    code: str
    label: str = USER

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def is_users(self) -> bool:
        return self.label == USER

    def to_text(self, root: str = "") -> str:
        place = shorter(self.place, root)
        where = f"{place} in {self.function}" if self.function else place
        told = f"{where}: {self.code}" if self.code else where
        return told if self.is_users else f"{told} ({self.label})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """One exception: its text, the line that raised it, and the frames of its own traceback."""

    error: str
    message: str
    site: Site | None
    """Where it was raised, whoever's code that is."""
    user: Site | None
    """The user's frame nearest to where it was raised; None where no frame is the user's."""
    frames: tuple[Site, ...] = ()
    link: str = ""
    """cause, context or part, for one that belongs to another."""
    parts: tuple[Raised, ...] = ()
    parts_left: int = 0
    report: JsonObject | None = None

    @property
    def nearest(self) -> Site | None:
        """The frame to name: the user's, or that of a library which is neither Python's own nor a test framework's."""
        if self.user is not None:
            return self.user
        others = [each for each in self.frames if each.label not in (STANDARD, FRAMEWORK)]
        return others[-1] if others else self.site

    def to_text(self, root: str = "") -> str:
        """The exception with its own place, as one line."""
        head = f"{_LINKS[self.link]} {self.error}" if self.link else self.error
        where = self.nearest
        if where is None:
            return f"{head}  [no place is known]"
        return f"{head}  [{where.to_text(root)}]"

    def to_json(self) -> JsonObject:
        """What is known of it, as fields."""
        told: JsonObject = {"error": self.error, "raised_at": _json(self.site), "user_frame": _json(self.user)}
        if self.link:
            told["link"] = self.link
        if self.parts:
            told["parts"] = [part.to_json() for part in self.parts]
        return told


def shorter(place: str, root: str) -> str:
    """A place relative to the workspace, where it lies in it."""
    return place.removeprefix(root.rstrip(os.sep) + os.sep) if root else place


def read_raised(report: JsonObject, *, link: str = "") -> Raised:
    """An exception of a recorder's report."""
    frames = tuple(_site(frame) for frame in cast(list[JsonObject], report.get("frames") or []))
    source = cast(JsonObject | None, report.get("source"))
    # Code that could not be compiled did not run: its place is what the exception says, and no frame's.
    compiled = None if source is None else _site({"function": "", **source})
    users = [each for each in frames if each.is_users]
    parts = cast(list[JsonObject], report.get("parts") or [])
    return Raised(
        error=first_line(str(report["type"]), str(report["message"])),
        message=str(report["message"]),
        site=compiled or (frames[-1] if frames else None),
        user=compiled if compiled is not None and compiled.is_users else users[-1] if users else None,
        frames=frames,
        link=link,
        parts=tuple(read_raised(part, link="part") for part in parts),
        parts_left=max(0, int(report.get("parts_count") or 0) - len(parts)),
        report=report,
    )


def read_chain(report: JsonObject) -> tuple[Raised, ...]:
    """What an exception came from, the nearest first."""
    return tuple(read_raised(each, link=str(each["link"])) for each in cast(list[JsonObject], report["chain"]))


def first_line(kind: str, message: str) -> str:
    """An exception's name with the first line of its message."""
    lines = [line.strip() for line in message.splitlines() if _WORD.search(line)]
    if not lines:
        return f"{kind}: {message.strip()}" if message.strip() else kind
    # Of a traceback that came as a text, the error stands at its end.
    return f"{kind}: {lines[-1] if lines[0].startswith('Traceback (') else lines[0]}"


def _site(frame: Mapping[str, Any]) -> Site:
    return Site(
        file=str(frame["file"]),
        line=int(frame["line"]),
        function=str(frame["function"]),
        code=str(frame.get("code") or ""),
        label=str(frame.get("label") or USER),
    )


def _json(site: Site | None) -> JsonObject | None:
    if site is None:
        return None
    return {"file": site.file, "line": site.line, "function": site.function, "code": site.code, "label": site.label}


def chosen(head: Raised, chain: Sequence[Raised]) -> Raised:
    """The exception to begin with: the one that ended the test, or, where none of its frames is the user's, the
    nearest of its chain that has one."""
    if head.user is not None or head.parts:
        return head
    return next((each for each in chain if each.user is not None), head)

"""Exceptions as reported by the recorder, or as read from tracebacks in a program's output."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trysquare.core.json import JsonObject
from trysquare.debug.recorder.hooks import FRAMEWORK, LIBRARY, STANDARD, USER
from trysquare.debug.sources import Sources, relative

_WORD = re.compile(r"\w")
_LINKS = {"cause": "caused by", "context": "raised while handling", "part": "part:"}
_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'^[\s|+]*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?$')
_ERROR = re.compile(r"^[|\s]*(?P<error>[A-Za-z_][\w.]*(?:: .*)?)$")
_FATAL = re.compile(r"^Fatal Python error: .+$|^Windows fatal exception: .+$", re.MULTILINE)
_STANDARD = re.compile(r"^<frozen |[/\\]python3\.\d+[/\\](?!(?:site|dist)-packages)")
_MAX_TRACEBACKS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """A line of a function, and whose code it is: the user's, a library's, the standard library's or a framework's."""

    file: str
    line: int
    function: str
    code: str
    label: str = USER

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def is_users(self) -> bool:
        return self.label == USER

    def to_text(self, root: str = "") -> str:
        text = relative(self.location, root) + (f" in {self.function}" if self.function else "")
        text += f": {self.code}" if self.code else ""
        return text if self.is_users else f"{text} ({self.label})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """One exception: its text, the line that raised it, and the frames of its own traceback."""

    error: str
    message: str
    site: Site | None
    """The line that raised it, whoever's code that is."""
    user: Site | None
    """The user's frame nearest to where it was raised; None if no frame is the user's."""
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
        """The exception with its own location, as one line."""
        head = f"{_LINKS[self.link]} {self.error}" if self.link else self.error
        where = self.nearest
        return f"{head}  [{'unknown location' if where is None else where.to_text(root)}]"


def read_raised(report: JsonObject, *, link: str = "") -> Raised:
    frames = tuple(_site(frame) for frame in cast(list[JsonObject], report.get("frames") or []))
    source = cast(JsonObject | None, report.get("source"))
    # Code that could not be compiled did not run: its location is what the exception says, and no frame's.
    compiled = None if source is None else _site({"function": "", **source})
    parts = cast(list[JsonObject], report.get("parts") or [])
    return Raised(
        error=_first_line(str(report["type"]), str(report["message"])),
        message=str(report["message"]),
        site=compiled or (frames[-1] if frames else None),
        user=compiled if compiled is not None and compiled.is_users else _last_users(frames),
        frames=frames,
        link=link,
        parts=tuple(read_raised(part, link="part") for part in parts),
        parts_left=max(0, int(report.get("parts_count") or 0) - len(parts)),
        report=report,
    )


def read_chain(report: JsonObject) -> tuple[Raised, ...]:
    """Read the causes of an exception, the nearest first."""
    return tuple(read_raised(each, link=str(each["link"])) for each in cast(list[JsonObject], report["chain"]))


def main_exception(head: Raised, chain: Sequence[Raised]) -> Raised:
    """The exception that ended the test, or the nearest of its chain with a frame of the user's if it has none."""
    if head.user is not None or head.parts:
        return head
    return next((each for each in chain if each.user is not None), head)


def _first_line(kind: str, message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if _WORD.search(line)]
    if not lines:
        return f"{kind}: {message.strip()}" if message.strip() else kind
    # In a traceback that came as a text, the error is at the end.
    return f"{kind}: {lines[-1] if lines[0].startswith('Traceback (') else lines[0]}"


def _site(frame: JsonObject) -> Site:
    return Site(
        file=str(frame["file"]),
        line=int(frame["line"]),
        function=str(frame["function"]),
        code=str(frame.get("code") or ""),
        label=str(frame.get("label") or USER),
    )


def tracebacks_in(text: str, root: Path, sources: Sources) -> list[Raised]:
    """Read the exceptions whose tracebacks are in a text, in their order; of many, the last."""
    found = [_read_traceback(part.splitlines(), root, sources) for part in text.split(_BEGIN)[1:]]
    return [each for each in found if each is not None][-_MAX_TRACEBACKS:]


def _read_traceback(lines: Sequence[str], root: Path, sources: Sources) -> Raised | None:
    frames: list[Site] = []
    for index, line in enumerate(lines):
        if (frame := _FRAME.match(line)) is not None:
            frames.append(_frame_site(frame, root, sources))
            continue
        depth = len(lines[index - 1]) - len(lines[index - 1].lstrip()) if index else 0
        error = _ERROR.match(line)
        if frames and error is not None and len(line) - len(line.lstrip(" |")) < max(depth, 2):
            return _raised(error["error"], frames)
    return None


def crash_in(text: str, root: Path, sources: Sources) -> Raised | None:
    """Read where the interpreter itself crashed, from the output of its fault handler."""
    fatal = _FATAL.search(text)
    if fatal is None:
        return None
    rest = text[fatal.end() :]
    # Other threads may come before the one that crashed.
    _, _, current = rest.partition("Current thread ")
    frames: list[Site] = []
    for line in (current or rest).splitlines()[1:]:
        if (frame := _FRAME.match(line)) is None:
            break
        frames.append(_frame_site(frame, root, sources))
    return _raised(fatal.group(0), frames[::-1])


def _raised(error: str, frames: Sequence[Site]) -> Raised:
    site = frames[-1] if frames else None
    return Raised(error=error, message=error, site=site, user=_last_users(frames), frames=tuple(frames))


def _last_users(frames: Sequence[Site]) -> Site | None:
    return next((each for each in reversed(frames) if each.is_users), None)


def _frame_site(frame: re.Match[str], root: Path, sources: Sources) -> Site:
    file, line = frame["file"], int(frame["line"])
    file = file if file.startswith("<") else os.path.join(root, file)
    label = USER if _is_users(file, root) else STANDARD if _STANDARD.search(file) else LIBRARY
    function = (frame["function"] or "").strip()
    return Site(file=file, line=line, function=function, code=sources.line(file, line), label=label)


def _is_users(file: str, root: Path) -> bool:
    """Whether a file is in the workspace and was not installed into it; a text says no more than its path."""
    path = Path(os.path.realpath(file))
    if file.startswith("<") or not path.is_relative_to(os.path.realpath(root)):
        return False
    inner = path.relative_to(os.path.realpath(root)).parts
    return "site-packages" not in inner and "dist-packages" not in inner

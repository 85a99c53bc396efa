"""Tracebacks in what a program wrote: those of child processes and handlers, and the place of a crash."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from trysquare.debug.recorder.watcher import LIBRARY, STANDARD, USER
from trysquare.debug.sites import Raised, Site
from trysquare.debug.sources import Sources

_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'^[\s|+]*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?$')
_ERROR = re.compile(r"^[|\s]*(?P<error>[A-Za-z_][\w.]*(?:: .*)?)$")
_FATAL = re.compile(r"^Fatal Python error: (?P<what>.+)$|^Windows fatal exception: (?P<other>.+)$", re.MULTILINE)
_STANDARD = re.compile(r"^<frozen |[/\\]python3\.\d+[/\\](?!(?:site|dist)-packages)")
_MOST = 5


def tracebacks_in(text: str, root: Path, sources: Sources) -> list[Raised]:
    """The exceptions whose tracebacks stand in a text, in their order; of many, the last."""
    found = [_read(part.splitlines(), root, sources) for part in text.split(_BEGIN)[1:]]
    return [each for each in found if each is not None][-_MOST:]


def _read(lines: Sequence[str], root: Path, sources: Sources) -> Raised | None:
    frames: list[Site] = []
    for index, line in enumerate(lines):
        if (frame := _FRAME.match(line)) is not None:
            frames.append(_site(frame, root, sources))
            continue
        depth = len(lines[index - 1]) - len(lines[index - 1].lstrip()) if index else 0
        told = _ERROR.match(line)
        if frames and told is not None and len(line) - len(line.lstrip(" |")) < max(depth, 2):
            return _raised(told["error"], frames)
    return None


def crash_in(text: str, root: Path, sources: Sources) -> Raised | None:
    """The place at which the interpreter itself died, as its fault handler wrote it."""
    fatal = _FATAL.search(text)
    if fatal is None:
        return None
    rest = text[fatal.end() :]
    # Other threads may stand before the one that died.
    _, _, current = rest.partition("Current thread ")
    frames: list[Site] = []
    for line in (current or rest).splitlines()[1:]:
        if (frame := _FRAME.match(line)) is None:
            break
        frames.append(_site(frame, root, sources))
    return _raised(fatal.group(0), frames[::-1])


def _raised(error: str, frames: Sequence[Site]) -> Raised:
    users = [each for each in frames if each.is_users]
    return Raised(
        error=error,
        message=error,
        site=frames[-1] if frames else None,
        user=users[-1] if users else None,
        frames=tuple(frames),
    )


def _site(frame: re.Match[str], root: Path, sources: Sources) -> Site:
    file, line = _absolute(frame["file"], root), int(frame["line"])
    label = USER if _is_users(file, root) else STANDARD if _STANDARD.search(file) else LIBRARY
    function = (frame["function"] or "").strip()
    return Site(file=file, line=line, function=function, code=sources.line(file, line), label=label)


def _absolute(file: str, root: Path) -> str:
    return file if file.startswith("<") else os.path.join(root, file)


def _is_users(file: str, root: Path) -> bool:
    """Whether a file lies in the workspace and was not installed into it; another process said no more of it."""
    path = Path(os.path.realpath(file))
    if file.startswith("<") or not path.is_relative_to(os.path.realpath(root)):
        return False
    inner = path.relative_to(os.path.realpath(root)).parts
    return "site-packages" not in inner and "dist-packages" not in inner

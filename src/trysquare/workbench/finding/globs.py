"""Globs: patterns of file names, matched piece by piece, so that no pattern takes long."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from trysquare.core.errors import InvalidArguments

_MOST_FORMS = 64
_BRACES = re.compile(r"\{([^{}]*)\}")


def matches(path: str, pattern: str) -> bool:
    """Whether a path fits: `*` within a name, `**` over folders, `{a,b}` either; without `/` the name alone counts."""
    if "/" not in pattern:
        name = path.rpartition("/")[2]
        return any(fnmatchcase(name, form) for form in forms(pattern))
    return any(_fits(tuple(path.split("/")), tuple(form.strip("/").split("/"))) for form in forms(pattern))


@lru_cache(maxsize=256)
def forms(pattern: str) -> tuple[str, ...]:
    """The patterns that one with braces stands for."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        form = waiting.pop(0)
        braces = _BRACES.search(form)
        if braces is None:
            done.append(form)
        else:
            waiting += [form[: braces.start()] + each + form[braces.end() :] for each in braces[1].split(",")]
        if len(done) + len(waiting) > _MOST_FORMS:
            raise InvalidArguments(f"The pattern stands for more than {_MOST_FORMS} others. Use fewer braces.")
    return tuple(done)


def _fits(pieces: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    """Whether the pieces of a path fit the pieces of a pattern: which of its beginnings each piece can end."""
    reached = {0}
    for piece in (*pieces, None):
        # `**` also stands for no folder at all.
        for at in sorted(reached):
            while at < len(patterns) and patterns[at] == "**":
                at += 1
                reached.add(at)
        if piece is None:
            return len(patterns) in reached
        reached = _after(piece, patterns, reached)
    return False


def _after(piece: str, patterns: tuple[str, ...], reached: set[int]) -> set[int]:
    following: set[int] = set()
    for at in reached:
        if at < len(patterns) and patterns[at] == "**":
            following.add(at)
        elif at < len(patterns) and fnmatchcase(piece, patterns[at]):
            following.add(at + 1)
    return following

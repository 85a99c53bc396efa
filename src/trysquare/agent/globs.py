"""Patterns of names and paths: `*` within a part, `**` across parts, `?` one character, and nothing else."""

from __future__ import annotations

import functools
import re


def matches(text: str, pattern: str) -> bool:
    """Whether a name fits a pattern, in which `*` stands for anything."""
    return _compiled(pattern, False).fullmatch(text) is not None


def path_matches(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern. `docs/**` holds for the folder too, `*.py` for files at the top alone."""
    if _compiled(pattern, True).fullmatch(path) is not None:
        return True
    return pattern.endswith("/**") and path == pattern[:-3]


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str, of_path: bool) -> re.Pattern[str]:
    written = [_regex(piece, of_path) for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern)]
    return re.compile("".join(written), re.DOTALL)


def _regex(piece: str, of_path: bool) -> str:
    if not of_path:
        return {"**/": ".*/", "**": ".*", "*": ".*", "?": "."}.get(piece, re.escape(piece))
    # Written so that no two neighbours can take the same characters: a pattern must not cost time by the power.
    return {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))

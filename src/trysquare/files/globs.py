"""Patterns of names and paths: `*` within a part, `**` across parts, `?` one character, and nothing else."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable


def matches(text: str, pattern: str) -> bool:
    """Whether a name fits a pattern, in which `*` stands for anything."""
    return _compiled(pattern, False).fullmatch(text) is not None


def path_matches(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern. `docs/**` holds for the folder too, `*.py` for files at the top alone."""
    if _compiled(pattern, True).fullmatch(path) is not None:
        return True
    return pattern.endswith("/**") and path == pattern[:-3]


def is_under(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path, or a folder that it lies in, fits a pattern, whatever the case of its letters.

    This is how a path is kept from somebody: a folder that is denied is denied with all that is in it, and a file stays
    what it is on a disk that does not tell cases apart.
    """
    parts = path.casefold().split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    wanted = [pattern.casefold().removeprefix("./").rstrip("/") for pattern in patterns]
    return any(path_matches(each, pattern) for pattern in wanted for each in above)


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str, of_path: bool) -> re.Pattern[str]:
    written = [_regex(piece, of_path) for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern)]
    return re.compile("".join(written), re.DOTALL)


def _regex(piece: str, of_path: bool) -> str:
    if not of_path:
        return {"**/": ".*/", "**": ".*", "*": ".*", "?": "."}.get(piece, re.escape(piece))
    # Written so that no two neighbours can take the same characters: a pattern must not cost time by the power.
    return {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))

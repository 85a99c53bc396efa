"""Globs: the only pattern language for names and paths, compiled to regular expressions that take linear time.

`?` is one character and `*` any number of them; in a path neither crosses `/`. A segment `**` is any number of
segments, none included, so that `docs/**` matches `docs` too; `**` next to other characters is any text, `/` included.
Patterns of files and documents also have `[a-z]`, `[!a-z]` and `{a,b}`. In policies brackets and braces are literal:
commands contain them, and a rule for a directory such as `app/[id]` must hold for exactly that directory.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from trysquare.core.errors import InvalidArguments

_MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*)\}")
_CLASS = re.compile(r"(\[!?+\]?+[^\]]*+\])")
# Matched against the reversed pattern: a search for its end would take quadratic time.
_TRAILING = re.compile(r"(?:\*{2,}/)*")
_CROSSING = re.compile(r"((?<![^/])\*{2,}/|\*{2,})")


def matches(text: str, pattern: str) -> bool:
    """Match a name or a command line, in which `*` stands for any text; brackets and braces are literal."""
    return compile_glob(pattern, crossing=True).fullmatch(text) is not None


def path_matches(path: str, pattern: str) -> bool:
    """Match a path from its start: `*.py` is a file at the top. Brackets and braces are literal."""
    return compile_glob(pattern).fullmatch(path) is not None


def file_matches(path: str, pattern: str) -> bool:
    """Match a file, also with `[a-z]` and `{a,b}`; a pattern without `/` is for its name in any directory."""
    anywhere = "/" not in pattern
    return compile_glob(pattern.strip("/"), extended=True, anywhere=anywhere).fullmatch(path) is not None


def is_under(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path or a directory above it matches a pattern, ignoring case.

    This is how paths are denied: a denied directory is denied with everything in it, and a file stays the same on a
    disk that ignores case.
    """
    parts = path.casefold().split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    normal = [pattern.casefold().removeprefix("./").rstrip("/") for pattern in patterns]
    return any(path_matches(each, pattern) for pattern in normal for each in above)


@functools.lru_cache(maxsize=1024)
def compile_glob(
    pattern: str, *, crossing: bool = False, extended: bool = False, anywhere: bool = False
) -> re.Pattern[str]:
    """Compile a glob, to be used with `fullmatch`.

    `crossing`: `*` and `?` match `/` as well. `extended`: `[a-z]` and `{a,b}` are special. `anywhere`: the pattern may
    also match what follows any `/`.
    """
    written = _alternatives(pattern) if extended else [pattern]
    if crossing:
        forms = [_translate_stars(re.sub(r"\*+", "*", form), ".", extended) for form in written]
    else:
        forms = [_translate_path(form, extended) for form in written]
    return re.compile(f"{'(?:.*/)?' if anywhere else ''}(?:{'|'.join(forms)})", re.DOTALL)


def _translate_path(pattern: str, extended: bool) -> str:
    """Translate block by block. A block between two `**` is atomic: the first place that matches is as good as any."""
    if re.fullmatch(r"\*{2,}", pattern):
        return ".*"
    trailing = _TRAILING.match(pattern[::-1])
    body = pattern[: len(pattern) - trailing.end()] if trailing else pattern
    first, *rest = _CROSSING.split(body)
    written = _translate_block(first, extended)
    for at in range(0, len(rest), 2):
        skipped = "(?:[^/]+/)*?" if rest[at].endswith("/") else ".*?"
        is_last = at + 2 == len(rest)
        written += f"(?{':' if is_last else '>'}{skipped}{_translate_block(rest[at + 1], extended)})"
    return written if body == pattern else f"{written}(?:/.*)?"


def _translate_block(block: str, extended: bool) -> str:
    return "/".join(_translate_stars(segment, "[^/]", extended) for segment in block.split("/"))


def _translate_stars(text: str, any_character: str, extended: bool) -> str:
    """Translate a text whose `*` stay inside it; all but the last are atomic, so that nothing is tried twice."""
    pieces = _CLASS.split(text) if extended else [text]
    parts = [""]
    for at, piece in enumerate(pieces):
        if at % 2:
            parts[-1] += f"(?={any_character}){_translate_class(piece[1:-1])}"
            continue
        head, *others = (any_character.join(map(re.escape, part.split("?"))) for part in piece.split("*"))
        parts[-1] += head
        parts += others
    if len(parts) == 1:
        return parts[0]
    middle = "".join(f"(?>{any_character}*?{part})" for part in parts[1:-1])
    return f"{parts[0]}{middle}{any_character}*?{parts[-1]}"


def _translate_class(body: str) -> str:
    """Translate what stands between brackets; a range that runs backwards is empty."""
    negated = body.startswith("!")
    members = ""
    for low, high in re.findall(r"(.)(?:-(.))?", body[negated:], re.DOTALL):
        if not high or low <= high:
            members += re.escape(low) + (f"-{re.escape(high)}" if high else "")
    if not members:
        return "." if negated else r"(?!)"
    return f"[{'^' * negated}{members}]"


def _alternatives(pattern: str) -> list[str]:
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        form = waiting.pop(0)
        braces = _BRACES.search(form)
        if braces is None:
            done.append(form)
        else:
            waiting += [form[: braces.start()] + each + form[braces.end() :] for each in braces[1].split(",")]
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            raise InvalidArguments(
                f"The pattern `{pattern[:80]}` has more than {_MAX_ALTERNATIVES} alternatives. Use fewer braces."
            )
    return done

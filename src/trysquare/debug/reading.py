"""Reading: what a line of a language with braces says, told by its words: names, calls, writes, heads of blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trysquare.debug.debugger import Variable

_STRINGS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`")
_COMMENT = re.compile(r"//.*$|/\*.*?\*/")
_PATH = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|\?\.)[A-Za-z_$][\w$]*|\[[\w$.\"'+\- ]+\])*")
_CALL = re.compile(r"([A-Za-z_$][\w$]*)\s*\(")
_HEAD = re.compile(r"^(?:\}\s*)?(?:else\s+)?(?:if|for|while|switch)\b")
_WORDS = frozenset(
    [
        *("if", "for", "while", "return", "const", "let", "var", "int", "char", "new", "throw", "else", "struct"),
        *("void", "double", "float", "long", "sizeof", "typeof", "function", "await", "async", "of", "in", "switch"),
        *("case", "assert", "require", "console", "true", "false", "null", "NULL", "undefined", "printf", "size_t"),
        *("unsigned", "fn", "mut", "match", "assert_eq", "println", "equal", "strictEqual", "deepEqual", "ok"),
        "deepStrictEqual",
    ]
)
"""Words of the languages and of their assertions: no values of the program's."""


def bare(line: str) -> str:
    """A line without its comments, its texts emptied."""
    return _COMMENT.sub("", _STRINGS.sub('""', line))


def names_in(line: str) -> list[str]:
    """Names and the paths that begin with them, each once, in order; a path before its own name."""
    text = bare(line)
    found: list[str] = []
    for match in _PATH.finditer(text):
        path = match.group(0)
        root = re.split(r"\.|->|\[|\?", path)[0]
        if root in _WORDS or text[match.end() :].lstrip().startswith("("):
            path = path.rpartition(".")[0]
        if root not in _WORDS and path:
            found += [path, root] if path != root else [root]
    return list(dict.fromkeys(found))


def calls_in(line: str) -> list[str]:
    """The functions that a line calls, by the last part of their names."""
    return [name for name in _CALL.findall(bare(line)) if name not in _WORDS]


def divisors_in(line: str) -> list[str]:
    """What a line divides by."""
    return [found for found in re.findall(r"[/%]\s*\(?\s*([A-Za-z_$][\w$.]*)", bare(line)) if found not in _WORDS]


def pointers_in(line: str) -> list[str]:
    """What a line looks through: `p->x`, `*p`, `p[i]`."""
    text = bare(line)
    through = re.findall(r"([A-Za-z_]\w*(?:(?:->|\.)\w+)*)\s*(?:->|\[)", text)
    starred = re.findall(r"(?<![\w\)])\*\s*([A-Za-z_]\w*)", text)
    return list(dict.fromkeys([*through, *starred]))


def heads_around(lines: Sequence[str], line: int) -> tuple[int, ...]:
    """The loops and conditions around a line, innermost first, told by its indentation."""
    found: list[int] = []
    if not 0 < line <= len(lines):
        return ()
    indent = _indent(lines[line - 1])
    for number in range(line - 1, 0, -1):
        text = lines[number - 1]
        if not text.strip() or _indent(text) >= indent:
            continue
        indent = _indent(text)
        if _HEAD.match(text.strip()):
            found.append(number)
        elif not text.strip().startswith("}"):
            break
    return tuple(found)


def writes(line: str, name: str) -> bool:
    """Whether a line gives a name, or a part of it, another value."""
    plain = re.escape(name)
    part = r"(?:\s*\[[^\]]*\]|(?:\.|->)\w+)*"
    assigned = rf"(?:^|[^\w$.>]){plain}{part}\s*(?:[-+*/%|&^]|<<|>>)?=(?!=)"
    return re.search(rf"{assigned}|{plain}{part}\s*(?:\+\+|--)|(?:\+\+|--)\s*{plain}\b", bare(line)) is not None


def writes_field(line: str, field: str) -> bool:
    """Whether a line gives a field of anything another value."""
    return re.search(rf"(?:\.|->){re.escape(field)}\s*=(?!=)", bare(line)) is not None


def heads_of_writes(lines: Sequence[str], line: int, name: str) -> tuple[int, ...]:
    """The heads around the writes of a name further down in the same function: they may have kept it as it was."""
    found: list[int] = []
    for number in range(line + 1, len(lines) + 1 if name else 0):
        text = lines[number - 1]
        if text.strip() and not _indent(text):
            break
        if writes(text, name):
            found.extend(heads_around(lines, number)[:1])
    return tuple(found)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


_STEP = re.compile(r"""\s*(?:(?:\.|->|\?\.)?\s*([A-Za-z_$@][\w$]*)|\[\s*(\d+|"[^"\\]*"|'[^'\\]*')\s*\])\s*""", re.ASCII)


def path_of(expression: str) -> list[str] | None:
    """The names and indexes of a plain path such as `a.b[0].c`; None for any other expression."""
    path: list[str] = []
    place, text = 0, expression.strip()
    while place < len(text):
        found = _STEP.match(text, place)
        is_joined = found is not None and text[place : found.end()].lstrip()[:1] in ".-?["
        if found is None or bool(path) is not is_joined:
            return None
        path.append(found[1] or found[2].strip("\"'"))
        place = found.end()
    return path or None


def part_named(name: str, parts: Sequence[Variable]) -> Variable | None:
    """The part that a step of a path leads to, however the debugger writes its name."""
    return next((part for part in parts if part.name.strip("[]\"'") == name or part.name == name), None)

"""Docstrings in Google, NumPy and Sphinx style: the prose, and what they say of each argument."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import dedent

_ARGUMENTS = "args|arguments|parameters|params|keyword args|keyword arguments|other parameters"
_OTHERS = (
    "returns?|raises|yields?|receives|attributes|methods|examples?|notes?|warnings?|warns|see also|references|todo|"
    "exceptions|except"
)
_GOOGLE = re.compile(rf"(?P<arguments>{_ARGUMENTS})?(?:{_OTHERS})?:\s*", re.IGNORECASE)
_NUMPY = re.compile(rf"(?P<arguments>{_ARGUMENTS})?(?:{_OTHERS})?\s*", re.IGNORECASE)
_UNDERLINE = re.compile(r"\s*(-{3,}|={3,})\s*")
_GOOGLE_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+)\s*(?:\(.*?\))?\s*:(?:\s+(?P<text>.*)|\s*)$")
_NUMPY_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_FIELD = re.compile(r"[:@](?P<kind>\w+)(?:\s+(?P<what>[^:]*?))?:(?:\s+(?P<text>.*)|\s*)$")
_ARGUMENT_FIELDS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_FIELDS = _ARGUMENT_FIELDS | frozenset(
    {"type", "return", "returns", "rtype", "raise", "raises", "except", "exception", "yield", "yields", "ytype"}
    | {"var", "ivar", "cvar", "vartype", "meta"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Docstring:
    """What a docstring says: its prose, and a text for each argument that it describes."""

    prose: str = ""
    arguments: dict[str, str] = field(default_factory=dict[str, str])


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring of any of the three styles. What is written in none of them is prose."""
    if not text or not text.strip():
        return Docstring()
    reader = _Reader(_cleaned(text).splitlines())
    reader.read()
    prose = re.sub(r"\n{3,}", "\n\n", "\n".join(reader.prose)).strip()
    return Docstring(prose=prose, arguments={name: " ".join(parts) for name, parts in reader.described.items()})


def _cleaned(text: str) -> str:
    """The text without its indentation; the first line of a docstring has none."""
    first, _, rest = text.expandtabs().partition("\n")
    return f"{first.strip()}\n{dedent(rest)}".strip()


class _Reader:
    """Reads lines one after another: prose, a section that goes on as long as it is indented, or a field."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self.prose: list[str] = []
        self.described: dict[str, list[str]] = {}

    def read(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            found = _FIELD.match(line)
            if found is not None and found["kind"] in _FIELDS:
                self._read_field(found)
            elif self._is_numpy():
                self._at += 2
                self._read_section(_NUMPY.fullmatch(line), _NUMPY_ENTRY, self._numpy_block())
            elif line.strip() and (head := _GOOGLE.fullmatch(line)) is not None and line.strip() != ":":
                self._at += 1
                self._read_section(head, _GOOGLE_ENTRY, self._indented_block())
            else:
                self.prose.append(line)
                self._at += 1

    def _is_numpy(self) -> bool:
        line, following = self._lines[self._at], self._lines[self._at + 1 : self._at + 2]
        is_head = bool(line.strip()) and _NUMPY.fullmatch(line) is not None
        return is_head and bool(following) and _UNDERLINE.fullmatch(following[0]) is not None

    def _read_field(self, found: re.Match[str]) -> None:
        self._at += 1
        text = [found["text"] or "", *(line.strip() for line in self._indented_block())]
        if found["kind"] in _ARGUMENT_FIELDS and found["what"]:
            # `:param int count: text` has the type before the name.
            self._describe(found["what"].split()[-1], text)

    def _indented_block(self) -> list[str]:
        """The lines that follow with an indentation, and what is empty between them."""
        start = end = self._at
        for at, line in enumerate(self._lines[start:], start + 1):
            if line.startswith(" ") and line.strip():
                end = at
            elif line.strip():
                break
        self._at = end
        return self._lines[start:end]

    def _numpy_block(self) -> list[str]:
        """The lines up to the next section: NumPy's entries are not indented."""
        start = self._at
        while self._at < len(self._lines) and not self._is_numpy():
            self._at += 1
        return self._lines[start : self._at]

    def _read_section(self, head: re.Match[str] | None, entry: re.Pattern[str], lines: list[str]) -> None:
        if head is None or not head["arguments"]:
            return
        names: list[str] = []
        for line in dedent("\n".join(lines)).splitlines():
            found = None if line.startswith(" ") else entry.match(line)
            if found is not None:
                names = [name.strip() for name in found["names"].split(",")]
                text = found.groupdict().get("text")
                for name in names:
                    self._describe(name, [text or ""])
            elif line.strip() and (line.startswith(" ") or entry is _GOOGLE_ENTRY):
                for name in names:
                    self._describe(name, [line.strip()])

    def _describe(self, name: str, text: list[str]) -> None:
        known = self.described.setdefault(name.lstrip("*"), [])
        known.extend(part.strip() for part in text if part.strip())

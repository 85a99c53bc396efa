"""LLVM's source-based coverage, read from a program and its raw profile without LLVM's own tools.

Those tools have to be of the compiler's own version, and few machines have them. A program has its mapping of counters
to source in two sections of its file; a raw profile has the counters, in the order of the program's functions.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from trysquare.debug.explain.suites.suite import Line
from trysquare.debug.sources import Sources

_RAW_MAGIC = 0xFF6C70726F667281
_HEADERS = {8: 11, 9: 14, 10: 16}
"""The numbers in the header of a raw profile, by its version."""
_RECORDS = {8: 48, 9: 64, 10: 64}
_MAPPINGS = range(5, 8)
"""The versions of a mapping with compressed file names, and function records in a section of their own."""
_WORD = re.compile(r"\w")
_GAP = 1 << 31

Term = tuple[Literal["zero", "counter", "sum", "difference"], int]
_TERMS: tuple[Literal["zero", "counter", "difference", "sum"], ...] = ("zero", "counter", "difference", "sum")


class Unsupported(Exception):
    """A program or a profile that this module cannot read."""


class Region(NamedTuple):
    file: str
    line: int
    column: int
    last: int
    end: int
    """The last column, counted from 1, is before this one."""
    term: Term


@dataclass(frozen=True, kw_only=True, slots=True)
class _Function:
    regions: tuple[Region, ...]
    expressions: tuple[tuple[Term, Term], ...]

    def value(self, term: Term, counters: tuple[int, ...]) -> int:
        kind, number = term
        if kind == "zero":
            return 0
        if kind == "counter":
            return counters[number] if number < len(counters) else 0
        left, right = (self.value(each, counters) for each in self.expressions[number])
        return left + right if kind == "sum" else left - right


class Coverage:
    """The mapping of one program. Raises `Unsupported`."""

    def __init__(self, program: bytes, root: Path) -> None:
        self._root = str(root)
        self._sources = Sources()
        sections = dict(_sections(program))
        if "__llvm_covfun" not in sections or "__llvm_covmap" not in sections:
            raise Unsupported("the program has no coverage in it")
        self._files = dict(_file_names(sections["__llvm_covmap"]))
        self._functions = dict(self._read_functions(sections["__llvm_covfun"]))

    def lines(self, profile: bytes) -> frozenset[Line]:
        """The lines of the workspace that ran."""
        found: set[Line] = set()
        for key, counters in _counters(profile):
            function = self._functions.get(key)
            if function is not None and any(counters):
                found.update(self._lines_of(function, counters))
        return frozenset(found)

    def _lines_of(self, function: _Function, counters: tuple[int, ...]) -> Iterator[Line]:
        """The lines with code that ran. Of two regions around it the inner one counts."""
        painted: dict[Line, bytearray] = {}
        regions = sorted(function.regions, key=lambda each: (each.line, each.column, -each.last, -each.end))
        for each in regions:
            ran = int(function.value(each.term, counters) > 0)
            texts = self._sources.lines(each.file)
            for line in range(each.line, min(each.last, len(texts)) + 1):
                size = len(texts[line - 1])
                begin = each.column - 1 if line == each.line else 0
                end = min(each.end - 1, size) if line == each.last else size
                row = painted.setdefault((each.file, line), bytearray(size))
                row[begin:end] = bytes([ran]) * max(0, end - begin)
        for (file, line), row in painted.items():
            text = self._sources.lines(file)[line - 1]
            if any(row[found.start()] for found in _WORD.finditer(text)):
                yield file, line

    def _read_functions(self, data: bytes) -> Iterator[tuple[tuple[int, int], _Function]]:
        at = 0
        while at + 28 <= len(data):
            name, size, function, files = struct.unpack_from("<QIQQ", data, at)
            body = data[at + 28 : at + 28 + size]
            at = (at + 28 + size + 7) & ~7
            known = self._files.get(files)
            if known is not None and (read := _read_function(_Numbers(body), known, self._root)).regions:
                yield (name, function), read


class _Numbers:
    """A row of numbers of variable length."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def next(self) -> int:
        value = shift = 0
        while self.at < len(self.data):
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
        raise Unsupported("its mapping ends in the middle of a number")

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]


def _read_function(numbers: _Numbers, files: list[str], root: str) -> _Function:
    ids = [numbers.next() for _ in range(numbers.next())]
    expressions = [(_term(numbers.next()), _term(numbers.next())) for _ in range(numbers.next())]
    regions: list[Region] = []
    for number in ids:
        file = files[number] if number < len(files) else ""
        line = 0
        for _ in range(numbers.next()):
            term = _region_term(numbers.next(), numbers)
            line += numbers.next()
            column, count, end = numbers.next(), numbers.next(), numbers.next()
            if term is not None and not end & _GAP and file.startswith(f"{root}{os.sep}"):
                regions.append(Region(file, line, column, line + count, end, term))
    return _Function(regions=tuple(regions), expressions=tuple(expressions))


def _term(number: int) -> Term:
    return _TERMS[number & 3], number >> 2


def _region_term(number: int, numbers: _Numbers) -> Term | None:
    """What counts a region of code; None for other kinds of regions."""
    if number & 3:
        return _term(number)
    if number & 4:
        return None  # the place of a macro, whose own code is in another file
    kind = number >> 3
    if kind == 0:
        return "zero", 0
    for _ in range({2: 0, 4: 2, 5: 2, 6: 5}.get(kind, 0)):
        numbers.next()
    return None


def _sections(program: bytes) -> Iterator[tuple[str, bytes]]:
    """The sections of an ELF file."""
    if program[:5] != b"\x7fELF\x02":
        raise Unsupported("the program is not an ELF file of 64 bits")
    table, size, count, names = (*struct.unpack_from("<Q", program, 40), *struct.unpack_from("<HHH", program, 58))
    headers = [struct.unpack_from("<IIQQQQ", program, table + size * each) for each in range(count)]
    start = headers[names][4]
    for name, _, _, _, offset, length in headers:
        begin = start + name
        yield program[begin : program.index(b"\0", begin)].decode(), program[offset : offset + length]


def _file_names(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """The files of each part of a program, by the checksum of their names."""
    at = 0
    while at + 16 <= len(data):
        _, size, _, version = struct.unpack_from("<IIII", data, at)
        if version not in _MAPPINGS:
            raise Unsupported(f"its mapping has version {version + 1}")
        encoded = data[at + 16 : at + 16 + size]
        at = (at + 16 + size + 7) & ~7
        numbers = _Numbers(encoded)
        count, plain, packed = numbers.next(), numbers.next(), numbers.next()
        inner = _Numbers(zlib.decompress(numbers.take(packed)) if packed else numbers.take(plain))
        folder, *files = [inner.take(inner.next()).decode(errors="replace") for _ in range(count)] or [""]
        names = [folder, *(os.path.normpath(Path(folder) / each) for each in files)]
        yield int.from_bytes(hashlib.md5(encoded, usedforsecurity=False).digest()[:8], "little"), names


def _counters(profile: bytes) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    """The counters of each function, by the checksums of its name and its structure."""
    if len(profile) < 88:
        raise Unsupported("the profile is empty")
    magic, version = struct.unpack_from("<QQ", profile)
    version &= 0xFFFFFFFF
    if magic != _RAW_MAGIC or version not in _HEADERS:
        raise Unsupported(f"the profile has version {version}")
    header = struct.unpack_from(f"<{_HEADERS[version]}Q", profile)
    ids, count, before, number, delta = header[2], header[3], header[4], header[5], header[8 if version == 8 else 10]
    size = _RECORDS[version]
    data = 8 * _HEADERS[version] + ids
    counters = data + count * size + before
    values = struct.unpack_from(f"<{number}Q", profile, counters)
    # Behind the name, the structure and the pointers, of which later versions have one more.
    field = 40 if version == 8 else 48
    for each in range(count):
        at = data + each * size
        name, structure, pointer = struct.unpack_from("<QQQ", profile, at)
        [length] = struct.unpack_from("<I", profile, at + field)
        first = ((pointer - (delta - each * size)) & 0xFFFFFFFFFFFFFFFF) // 8
        yield (name, structure), values[first : first + length]

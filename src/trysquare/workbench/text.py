"""Text that keeps its encoding and line ends, excerpts of it."""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import dataclass, replace

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject

_MARKS = (
    # Longer marks first: that of UTF-32 starts like that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_VERSION_DIGITS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """The text of a file and how to write it back."""

    content: str
    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str = "\n"

    def lines(self) -> list[str]:
        """The lines with their ends. A lone CR ends a line only in a text without LF."""
        end = "\n" if "\n" in self.content else "\r"
        *pieces, last = self.content.split(end)
        lines = [piece + end for piece in pieces]
        return [*lines, last] if last else lines

    def having(self, content: str) -> Text:
        return replace(self, content=content)

    def adapted(self, given: str) -> str:
        """The caller's text with this file's line ends."""
        plain = given.replace("\r\n", "\n")
        return plain if self.newline == "\n" else plain.replace("\n", self.newline)

    def encoded(self, path: str) -> bytes:
        try:
            return self.mark + self.content.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = self.content[error.start]
            raise ToolError(
                f"`{path}` is encoded as {self.encoding}, which cannot represent {character!a}. Nothing was changed.",
                code=ErrorCode.FILE_NOT_ALLOWED,
                instruction="Use characters of that encoding, or convert the file to UTF-8 first.",
            ) from None


def read_call(path: str) -> JsonObject:
    """The call that reads a file again."""
    return {"tool": "file", "arguments": {"action": "read", "path": path}}


def version_of(data: bytes) -> str:
    """Short content hash."""
    return hashlib.sha256(data).hexdigest()[:_VERSION_DIGITS]


def decoded(data: bytes, path: str) -> Text:
    """Decode a file; a binary one is refused."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        content = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        if mark or _BINARY.search(data):
            raise _binary(path, len(data)) from None
        # An unknown single-byte encoding: every byte maps to a character and back.
        content, encoding = data.decode("latin-1"), "latin-1"
    if encoding == "utf-8" and "\0" in content:
        raise _binary(path, len(data))
    return Text(content=content, encoding=encoding, mark=mark, newline=_newline(content))


def _binary(path: str, size: int) -> ToolError:
    return ToolError(
        f"`{path}` is a binary file ({size:,} bytes); only text can be read and edited.",
        code=ErrorCode.FILE_NOT_ALLOWED,
        instruction="Leave it unchanged, or inspect it with a program through `bash`.",
    )


def _newline(content: str) -> str:
    """The most frequent line end."""
    both = content.count("\r\n")
    alone = content.count("\n") - both
    if both == alone == 0:
        return "\r" if "\r" in content else "\n"
    return "\r\n" if both > alone else "\n"


MAX_LINES = 1_000
MAX_CHARACTERS = 30_000
MAX_LINE = 2_000
_AROUND = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    output: str
    first: int
    last: int
    total: int

    def next_call(self, path: str, last: int) -> JsonObject | None:
        """The call that reads on; None if the excerpt reaches `last`."""
        if self.last >= last:
            return None
        arguments = {"action": "get_lines", "path": path, "start_line": self.last + 1}
        return {"tool": "code_edit", "arguments": arguments}


def around(text: Text, first: int, last: int) -> str:
    return excerpt(text, max(1, first - _AROUND), min(last + _AROUND, first + 40)).output


def excerpt(text: Text, first: int = 1, last: int | None = None, form: str = "{number}\t{line}") -> Excerpt:
    """Lines of a text, up to a bounded number of lines and characters."""
    lines = text.lines()
    until = min(len(lines), last or len(lines), first + MAX_LINES - 1)
    shown: list[str] = []
    characters = 0
    for number in range(first, until + 1):
        line = lines[number - 1].rstrip("\r\n")
        if len(line) > MAX_LINE:
            line = f"{line[:MAX_LINE]}… ({len(line):,} characters)"
        line = form.format(number=number, line=line)
        characters += len(line) + 1
        if characters > MAX_CHARACTERS and shown:
            break
        shown.append(line)
    return Excerpt(output="\n".join(shown), first=first, last=first + len(shown) - 1, total=len(lines))

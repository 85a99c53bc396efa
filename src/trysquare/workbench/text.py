"""Text: a file's contents as text, with all that must stay as it was: encoding, mark at the head, line ends."""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import dataclass, replace

from trysquare.core.errors import ErrorCode, ToolError

_MARKS = (
    # The longer marks first: that of UTF-32 begins like that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NOT_IN_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_VERSION_LETTERS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """The text of a file, with its own line ends, and how it is to be written back."""

    content: str
    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str = "\n"

    def lines(self) -> list[str]:
        """Its lines, each with its line end."""
        return split_lines(self.content)

    def having(self, content: str) -> Text:
        """Another content, to be written in the same way."""
        return replace(self, content=content)

    def adapted(self, given: str) -> str:
        """What a caller wrote, with this file's line ends."""
        plain = given.replace("\r\n", "\n")
        return plain if self.newline == "\n" else plain.replace("\n", self.newline)

    def encoded(self, path: str) -> bytes:
        """The bytes of the file."""
        try:
            return self.mark + self.content.encode(self.encoding)
        except UnicodeEncodeError as error:
            letter = self.content[error.start]
            raise ToolError(
                f"`{path}` is written in {self.encoding}, which has no letter for {letter!a}. Nothing was changed.",
                code=ErrorCode.FILE_NOT_ALLOWED,
                instruction="Use letters of that encoding, or convert the file to UTF-8 first.",
            ) from None


def version_of(data: bytes) -> str:
    """What tells these contents from any others."""
    return hashlib.sha256(data).hexdigest()[:_VERSION_LETTERS]


def decoded(data: bytes, path: str) -> Text:
    """The text of a file, or a refusal of what is no text."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        content = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        content, encoding = _as_latin(data, mark, path), "latin-1"
    if encoding == "utf-8" and "\0" in content:
        raise _binary(path, len(data))
    return Text(content=content, encoding=encoding, mark=mark, newline=_newline(content))


def _as_latin(data: bytes, mark: bytes, path: str) -> str:
    """Text of an unknown single-byte encoding: each byte a letter, so that it can be written back as it was."""
    if mark or _NOT_IN_TEXT.search(data):
        raise _binary(path, len(data))
    return data.decode("latin-1")


def _binary(path: str, size: int) -> ToolError:
    return ToolError(
        f"`{path}` is a binary file of {size:,} bytes, and only text is read and edited.",
        code=ErrorCode.FILE_NOT_ALLOWED,
        instruction="Leave it alone, or look at it with a program through `bash`.",
    )


def split_lines(content: str) -> list[str]:
    """The lines of a text with their ends. A carriage return alone ends a line only where nothing else does."""
    end = "\n" if "\n" in content else "\r"
    pieces = content.split(end)
    lines = [piece + end for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def _newline(content: str) -> str:
    """The line end that most lines have."""
    both = content.count("\r\n")
    alone = content.count("\n") - both
    if both == alone == 0:
        return "\r" if "\r" in content else "\n"
    return "\r\n" if both > alone else "\n"

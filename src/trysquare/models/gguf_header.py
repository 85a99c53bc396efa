"""GGUF header: what a file of weights says of itself, read without its weights."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from trysquare.core.errors import ErrorCode, ToolError

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_ENTRIES = 16_000_000
_LONGEST_TEXT = 64 * 1024 * 1024


def read_gguf_header(path: Path) -> Mapping[str, Any]:
    """The metadata of a GGUF file; texts are bytes, since a vocabulary's are not always UTF-8."""
    try:
        with path.open("rb") as file:
            return _Header(file).read()
    except (ValueError, struct.error, EOFError, OverflowError, MemoryError) as error:
        raise ToolError(
            f"{path} is no GGUF file that can be read: {error}.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Name a whole GGUF file of version 2 or 3, in little-endian order.",
        ) from error
    except OSError as error:
        raise ToolError(
            f"{path} cannot be read: {error.strerror}.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Name a GGUF file, or install a model: `trysquare models list` shows which there are.",
        ) from error


class _Header:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self) -> Mapping[str, Any]:
        if self._bytes(4) != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        version, _tensors, entries = struct.unpack("<IQQ", self._bytes(20))
        if version not in (2, 3):
            raise ValueError(f"its version is {version}")
        found: dict[str, Any] = {}
        for _ in range(min(entries, _MOST_ENTRIES)):
            key = self._text().decode("utf-8", errors="replace")
            found[key] = self._value(self._number("I"))
        return found

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            return self._array()
        if kind not in _NUMBERS:
            raise ValueError(f"it has a value of the unknown kind {kind}")
        return self._number(_NUMBERS[kind])

    def _array(self) -> Any:
        kind, length = struct.unpack("<IQ", self._bytes(12))
        if length > _MOST_ENTRIES:
            raise ValueError(f"it has a list of {length} entries")
        if kind in _NUMBERS:
            form = _NUMBERS[kind]
            return struct.unpack(f"<{length}{form}", self._bytes(length * struct.calcsize(form)))
        return [self._value(kind) for _ in range(length)]

    def _text(self) -> bytes:
        length = self._number("Q")
        if length > _LONGEST_TEXT:
            raise ValueError(f"it has a text of {length} bytes")
        return self._bytes(length)

    def _number(self, form: str) -> Any:
        return struct.unpack("<" + form, self._bytes(struct.calcsize("<" + form)))[0]

    def _bytes(self, length: int) -> bytes:
        found = self._file.read(length)
        if len(found) < length:
            raise EOFError("it ends in the middle of its header")
        return found

"""Bytes that are kept on the disk, without a name by which anybody else could find them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias


class KeptBytes:
    """Bytes in a file without a name. It goes when nobody holds this object any more, and not while somebody reads."""

    def __init__(self, pieces: Iterable[bytes | memoryview], folder: Path) -> None:
        self.descriptor, path = tempfile.mkstemp(dir=folder)
        os.unlink(path)
        self.size = 0
        for piece in pieces:
            left = memoryview(piece)
            self.size += len(left)
            while left:
                left = left[os.write(self.descriptor, left) :]

    def __del__(self) -> None:
        if (descriptor := getattr(self, "descriptor", None)) is not None:
            os.close(descriptor)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` to `end`, or all that follow."""
        wanted = (self.size if end is None else min(end, self.size)) - start
        parts: list[bytes] = []
        while wanted > 0 and (part := os.pread(self.descriptor, wanted, start)):
            parts.append(part)
            start, wanted = start + len(part), wanted - len(part)
        return b"".join(parts)


Store: TypeAlias = Callable[[Iterable[bytes | memoryview]], KeptBytes]
"""Puts bytes, piece by piece, on the disk."""

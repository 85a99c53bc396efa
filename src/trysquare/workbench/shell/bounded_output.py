"""BoundedOutput: the beginning and the end of what a command writes, however much it is."""

from __future__ import annotations

from collections import deque

HEAD = 12 * 1024
TAIL = 20 * 1024


class BoundedOutput:
    """Takes bytes and keeps the first and the last of them."""

    def __init__(self, *, head: int = HEAD, tail: int = TAIL) -> None:
        self._head_size, self._tail_size = head, tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0
        self.total = 0

    def add(self, chunk: bytes) -> None:
        """Take what came."""
        self.total += len(chunk)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._in_tail += len(chunk)
        while self._tail and self._in_tail - len(self._tail[0]) >= self._tail_size:
            self._in_tail -= len(self._tail.popleft())

    @property
    def left_out(self) -> int:
        """Bytes that are not kept."""
        return self.total - len(self._head) - min(self._in_tail, self._tail_size)

    def head(self) -> bytes:
        """The beginning alone."""
        return bytes(self._head)

    def text(self) -> str:
        """What is kept, with a line that says how much is missing between."""
        tail = b"".join(self._tail)[-self._tail_size :]
        if not self.left_out:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head = bytes(self._head).decode("utf-8", "replace")
        return f"{head}\n… {self.left_out:,} bytes left out …\n{tail.decode('utf-8', 'replace')}"

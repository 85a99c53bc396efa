"""Answer: what a server said to a call, unread."""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    """The result object of a `tools/call` as the server wrote it, in JSON. `is_error` is what it says of itself."""

    body: bytes
    is_error: bool = False
    notes: tuple[str, ...] = ()
    """What whoever reads the answer should know of how it came about."""

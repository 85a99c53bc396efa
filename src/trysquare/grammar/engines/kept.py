"""Kept: what was compiled, by its text, as long as it is not too much."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

Compiled = TypeVar("Compiled")
MOST_GRAMMARS = 512
MOST_CHARACTERS = 4_000_000
"""Of grammars' texts in all. A grammar of ten thousand files takes forty times its text, so they must not pile up."""


class Kept(Generic[Compiled]):
    """Compiled grammars; those that were not used for longest go first."""

    def __init__(
        self,
        compile: Callable[[str], Compiled],
        *,
        most_grammars: int = MOST_GRAMMARS,
        most_characters: int = MOST_CHARACTERS,
    ) -> None:
        self._compile = compile
        self._most_grammars, self._most_characters = most_grammars, most_characters
        self._grammars: OrderedDict[str, Compiled] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._grammars)

    def of(self, text: str) -> Compiled:
        """The compiled grammar, made if it is not there."""
        with self._lock:
            if text in self._grammars:
                self._grammars.move_to_end(text)
                return self._grammars[text]
        # Two threads may compile the same; that costs time, and waiting for a slow one would cost more.
        compiled = self._compile(text)
        with self._lock:
            self._keep(text, compiled)
        return compiled

    def _keep(self, text: str, compiled: Compiled) -> None:
        if text not in self._grammars:
            self._characters += len(text)
        self._grammars[text] = compiled
        while len(self._grammars) > self._most_grammars or (
            self._characters > self._most_characters and len(self._grammars) > 1
        ):
            oldest, _ = self._grammars.popitem(last=False)
            self._characters -= len(oldest)

"""Instructions: the parts that tell an agent what to do in one action, packed into a budget of tokens.

Parts come in the order in which an agent should read them. What has not changed since it was last delivered is named by
its digest instead of sent; what does not fit is named with a handle to fetch it. Parts are never cut.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trysquare.catalog.tokens import count_tokens
from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject

DEFAULT_BUDGET = 6_000
SHORT_DIGEST = 12
_FRAME = 12
"""Tokens that a part's name and braces cost beside its content."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of the instructions: a name, its content as JSON, and how much it matters."""

    name: str
    content: Any
    priority: int = 0
    """Parts of a higher priority are kept first when the budget is short."""

    def digest(self) -> str:
        """What changes when the content does."""
        return hashlib.sha256(f"{self.name}\n{dump_json(self.content)}".encode("utf-8", "replace")).hexdigest()

    def tokens(self) -> int:
        """What the part costs the reader."""
        text = self.content if isinstance(self.content, str) else dump_json(self.content)
        return _counted(text) + _FRAME


# The same parts are delivered again and again, and counting is what a delivery costs most.
_counted = lru_cache(maxsize=1_024)(count_tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pack:
    """What is delivered of an action's instructions."""

    sent: tuple[Part, ...]
    unchanged: tuple[Part, ...] = ()
    left_out: tuple[Part, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(part.tokens() for part in self.sent)

    def digests(self) -> tuple[str, ...]:
        """The digests that the reader holds once this has arrived."""
        return tuple(part.digest()[:SHORT_DIGEST] for part in (*self.sent, *self.unchanged))

    def to_json(self) -> JsonObject:
        """The instructions as a tool's answer holds them."""
        document: JsonObject = {part.name: part.content for part in self.sent}
        if self.unchanged:
            document["unchanged"] = {part.name: part.digest()[:SHORT_DIGEST] for part in self.unchanged}
        if self.left_out:
            document["left_out"] = [{"part": part.name, "tokens": part.tokens()} for part in self.left_out]
        return document


def pack(parts: Sequence[Part], *, budget: int = DEFAULT_BUDGET, held: AbstractSet[str] = frozenset()) -> Pack:
    """Choose what to deliver: whole parts, the most important first, in reading order."""
    present = [part for part in parts if part.content not in (None, "", [], {})]
    unchanged = tuple(part for part in present if part.digest()[:SHORT_DIGEST] in held)
    fresh = [part for part in present if part not in unchanged]
    left = budget - _FRAME * len(unchanged)
    fitting: set[str] = set()
    for part in sorted(fresh, key=lambda each: -each.priority):
        if part.tokens() <= left:
            left -= part.tokens()
            fitting.add(part.name)
    return Pack(
        sent=tuple(part for part in fresh if part.name in fitting),
        unchanged=unchanged,
        left_out=tuple(part for part in fresh if part.name not in fitting),
    )

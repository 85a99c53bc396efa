"""Instructions of an action, packed into a token budget."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trysquare.core.json import JsonObject
from trysquare.core.result import dump_json
from trysquare.core.tokens import SHORT_DIGEST, BudgetSelection, count_tokens, is_held
from trysquare.core.tokens import fit_budget as pack_items

ALL_PARTS = "*"
_FRAME = 12
"""Tokens of a part's name and braces."""
_CALL = 70
"""Tokens of an omitted part with the call that fetches it."""
_MOST_NAMED = 8
_NAMED_SHARE = 4
"""Omitted parts may take a fourth of the budget."""

Fetch = Callable[[str], JsonObject]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of the instructions. Parts are sent whole or not at all, in reading order."""

    name: str
    content: Any
    priority: int = 0
    """Parts of higher priority are sent first when the budget is short."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.name}\n{dump_json(self.content)}".encode("utf-8", "replace")).hexdigest()

    @property
    def tokens(self) -> int:
        text = self.content if isinstance(self.content, str) else dump_json(self.content)
        return _counted(text) + _FRAME

    @property
    def is_empty(self) -> bool:
        return self.content in (None, "", [], {})


# The same parts are delivered again and again, and counting is what a delivery costs most.
_counted = lru_cache(maxsize=1_024)(count_tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pack:
    parts: BudgetSelection[Part]
    named: int = _MOST_NAMED
    """How many omitted parts are listed one by one."""

    def digests(self) -> tuple[str, ...]:
        """Digests of the parts that the reader has after this delivery."""
        return self.parts.held()

    def to_json(self, fetch: Fetch) -> JsonObject:
        document: JsonObject = {part.name: part.content for part in self.parts.sent}
        if self.parts.unchanged:
            document["unchanged"] = {part.name: part.digest[:SHORT_DIGEST] for part in self.parts.unchanged}
        if self.parts.left_out:
            document["left_out"] = self._left_out(fetch)
        return document

    def _left_out(self, fetch: Fetch) -> list[JsonObject]:
        ranked = sorted(self.parts.left_out, key=lambda part: -part.priority)
        entries = listed(ranked[: self.named], fetch)
        if more := ranked[self.named :]:
            entries.append({"more_parts": len(more), "fetch": fetch(ALL_PARTS)})
        return entries


def pack(parts: Sequence[Part], *, budget: int, held: AbstractSet[str] = frozenset()) -> Pack:
    """Select the parts to deliver, by priority; unchanged ones are sent as digests."""
    present = [part for part in parts if not part.is_empty]
    left = budget - _FRAME * sum(1 for part in present if is_held(part.digest, held))
    named = min(_MOST_NAMED, max(0, budget // (_NAMED_SHARE * _CALL) - 1))

    def naming(left_out: int) -> int:
        return _CALL * (left_out if left_out <= named else named + 1)

    return Pack(parts=pack_items(present, budget=left, held=held, naming=naming), named=named)


def listed(parts: Sequence[Part], fetch: Fetch) -> list[JsonObject]:
    """All parts, each with its tokens and the call that fetches it."""
    return [
        {"part": part.name, "tokens": part.tokens, "fetch": fetch(part.name)} for part in parts if not part.is_empty
    ]

"""Instructions: the parts that tell an agent what to do in one action, packed into a budget of tokens.

Parts come in the order in which an agent should read them. What has not changed since it was last delivered is named by
its digest instead of sent; what does not fit is named with the call that fetches it. Parts are never cut.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trysquare.catalog.packing import SHORT_DIGEST, Packed, is_held
from trysquare.catalog.packing import pack as pack_items
from trysquare.catalog.tokens import count_tokens
from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject

ALL_PARTS = "*"
"""The name under which the list of all parts is fetched."""
_FRAME = 12
"""Tokens that a part's name and braces cost beside its content."""
_CALL = 70
"""Tokens that it costs to name a part that is left out, with the call that fetches it."""
_MOST_NAMED = 8
_NAMED_SHARE = 4
"""Naming what is left out takes at most a fourth of the budget."""

Fetch = Callable[[str], JsonObject]
"""The call that fetches a part by its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of the instructions: a name, its content as JSON, and how much it matters."""

    name: str
    content: Any
    priority: int = 0
    """Parts of a higher priority are kept first when the budget is short."""

    @property
    def digest(self) -> str:
        """What changes when the content does."""
        return hashlib.sha256(f"{self.name}\n{dump_json(self.content)}".encode("utf-8", "replace")).hexdigest()

    @property
    def tokens(self) -> int:
        """What the part costs the reader."""
        text = self.content if isinstance(self.content, str) else dump_json(self.content)
        return _counted(text) + _FRAME

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say."""
        return self.content in (None, "", [], {})


# The same parts are delivered again and again, and counting is what a delivery costs most.
_counted = lru_cache(maxsize=1_024)(count_tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class Pack:
    """What is delivered of an action's instructions."""

    parts: Packed[Part]
    named: int = _MOST_NAMED
    """How many of the parts that are left out are named one by one."""

    def digests(self) -> tuple[str, ...]:
        """The digests that the reader holds once this has arrived."""
        return self.parts.held()

    def to_json(self, fetch: Fetch) -> JsonObject:
        """The instructions as a tool's answer holds them."""
        document: JsonObject = {part.name: part.content for part in self.parts.sent}
        if self.parts.unchanged:
            document["unchanged"] = {part.name: part.digest[:SHORT_DIGEST] for part in self.parts.unchanged}
        if self.parts.left_out:
            document["left_out"] = self._left_out(fetch)
        return document

    def _left_out(self, fetch: Fetch) -> list[JsonObject]:
        ranked = sorted(self.parts.left_out, key=lambda part: -part.priority)
        told: list[JsonObject] = [
            {"part": part.name, "tokens": part.tokens, "fetch": fetch(part.name)} for part in ranked[: self.named]
        ]
        if more := ranked[self.named :]:
            told.append({"more_parts": len(more), "fetch": fetch(ALL_PARTS)})
        return told


def pack(parts: Sequence[Part], *, budget: int, held: AbstractSet[str] = frozenset()) -> Pack:
    """Choose what to deliver: whole parts, the most important first, in reading order."""
    present = [part for part in parts if not part.is_empty]
    left = budget - _FRAME * sum(1 for part in present if is_held(part.digest, held))
    named = min(_MOST_NAMED, max(0, budget // (_NAMED_SHARE * _CALL) - 1))

    def naming(left_out: int) -> int:
        return _CALL * (left_out if left_out <= named else named + 1)

    return Pack(parts=pack_items(present, budget=left, held=held, naming=naming), named=named)


def listed(parts: Sequence[Part], fetch: Fetch) -> list[JsonObject]:
    """All parts, each with what it costs and the call that fetches it."""
    return [
        {"part": part.name, "tokens": part.tokens, "fetch": fetch(part.name)} for part in parts if not part.is_empty
    ]

"""The outline of a JSON value: its shape in one short line, for a reader who cannot see all of it.

{total: int, rows: [2000 x {id: int, name: str, tags: [3 x str]}]}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from trysquare.core.types import JsonObject

MAX_CHARACTERS = 800
_DEPTH = 6
_KEYS = 24
_ITEMS = 20
_KINDS = 3
_NAMES: dict[type, str] = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}
"""In this order: a bool is an int as well."""


def outline(value: Any, *, is_cut: bool = False) -> str:
    """The shape of a JSON value. `is_cut` says that only its beginning is known, so that counts are lower bounds."""
    text = ""
    for depth in range(_DEPTH, 0, -1):
        text = _Outliner(depth=depth).shape(value, is_cut=is_cut)
        if len(text) <= MAX_CHARACTERS:
            return text
    return text[: MAX_CHARACTERS - 1] + "…"


class _Outliner:
    """Writes the shape of a value down to some depth."""

    def __init__(self, *, depth: int) -> None:
        self._depth = depth

    def shape(self, value: Any, *, is_cut: bool, depth: int = 0) -> str:
        if isinstance(value, dict):
            return self._object(cast(JsonObject, value), depth, is_cut)
        if isinstance(value, list):
            return self._list(cast(list[Any], value), depth, is_cut)
        return next((name for kind, name in _NAMES.items() if isinstance(value, kind)), "any")

    def _object(self, value: JsonObject, depth: int, is_cut: bool) -> str:
        if not value or depth >= self._depth:
            return "{…}" if value else "{}"
        names = list(value)
        # Only what stands last in what is known can have been cut.
        parts = [
            f"{_name(name)}: {self.shape(value[name], is_cut=is_cut and name == names[-1], depth=depth + 1)}"
            for name in names[:_KEYS]
        ]
        if len(names) > _KEYS or is_cut:
            parts.append(f"… {len(names) - _KEYS} more" if len(names) > _KEYS else "…")
        return "{" + ", ".join(parts) + "}"

    def _list(self, items: list[Any], depth: int, is_cut: bool) -> str:
        if not items or depth >= self._depth:
            return "[…]" if items else "[]"
        kinds = _unique(
            self.shape(item, is_cut=is_cut and place == len(items), depth=depth + 1)
            for place, item in enumerate(items[:_ITEMS], start=1)
        )
        told = " | ".join(kinds[:_KINDS]) + (" | …" if len(kinds) > _KINDS else "")
        return f"[{len(items)}{'+' if is_cut else ''} x {told}]"


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _name(name: str) -> str:
    return name if name.isidentifier() and len(name) <= 40 else repr(name[:40])

"""The JSON shapes that pass through every room."""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object. Its values are whatever JSON allows, so `Any` is the honest type."""

"""Cleaning: a JSON value without the characters that nobody sees."""

from __future__ import annotations

from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.gateway.answers.hidden_text import cleaned_text


def cleaned_value(value: Any) -> Any:
    """The same value, with every text and every name in it cleaned."""
    if isinstance(value, str):
        return cleaned_text(value)
    if isinstance(value, dict):
        return {cleaned_text(name): cleaned_value(part) for name, part in cast(JsonObject, value).items()}
    return [cleaned_value(item) for item in cast(list[Any], value)] if isinstance(value, list) else value

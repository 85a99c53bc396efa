"""Lone surrogates: half characters that JSON escapes allow and UTF-8 does not.

They come from file names that are no text and from clients that cut a character in two. An answer with one inside
cannot be encoded, so they are replaced on the way out.
"""

from __future__ import annotations

from typing import Any, cast


def is_encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replaced_text(text: str) -> str:
    """The text with every half character replaced by the sign for it, U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def replaced(value: Any) -> Any:
    """A JSON value with every half character in it replaced, in keys as well."""
    if isinstance(value, str):
        return replaced_text(value)
    if isinstance(value, dict):
        return {replaced(key): replaced(part) for key, part in cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [replaced(part) for part in cast(list[Any], value)]
    return value

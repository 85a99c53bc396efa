"""Patterns of other servers' schemas, matched in linear time: a hostile one must not hang the gateway.

Pydantic's regular expressions come from Rust and never backtrack. A pattern that they do not know, or read
otherwise than JavaScript does, is not checked here; the server knows best what it meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

_LONGEST_PATTERN, _LONGEST_TEXT, _MOST_REPEATS = 500, 10_000, 1_000
_REPEATS = re.compile(r"\{(\d+)(?:,(\d*))?\}")
# Rust alone reads these as sets within sets.
_READ_OTHERWISE = re.compile(r"&&|--|~~|\[[^\]\\]*\[")


@lru_cache(maxsize=2_000)
def text_test(pattern: str) -> Callable[[str], bool] | None:
    """Whether a text holds the pattern; None if that cannot be told safely."""
    if len(pattern) > _LONGEST_PATTERN or _READ_OTHERWISE.search(pattern) or _repeats(pattern) > _MOST_REPEATS:
        return None
    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None
    return lambda text: len(text) > _LONGEST_TEXT or validator.isinstance_python(text) or _is_broken(text)


def _repeats(pattern: str) -> int:
    """How much a pattern grows when its counted repeats are written out."""
    counts = (max(int(least[:9]), int((most or "0")[:9])) for least, most in _REPEATS.findall(pattern))
    return math.prod(max(count, 1) for count in counts)


def _is_broken(text: str) -> bool:
    """Whether a text has half a character in it, which Rust does not take."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)

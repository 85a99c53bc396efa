"""Values that JSON allows and that nobody expects."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

TEXTS = (
    "",
    "a",
    "\x00",
    "line\nbreak",
    "\ud800",
    "half\udfff",
    "\u202ereversed",
    "\U0001f9ea",
    "'; drop table notes; --",
    "../../etc/passwd",
    "{{7*7}}",
    "%s%n%x",
    "NaN",
    "null",
    "\\u0000",
    "é" * 300,
    "x" * 5000,
)
NUMBERS = (0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**64), 10**400, 0.1, -0.0, 1e308, 5e-324)
SCALARS: tuple[Any, ...] = (None, True, False, *NUMBERS, *TEXTS)

any_text = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(TEXTS)
any_scalar = st.sampled_from(SCALARS) | st.integers() | st.floats(allow_nan=True, allow_infinity=True) | any_text
any_value = st.recursive(
    any_scalar,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)


def random_value(random: Random, depth: int = 3) -> Any:
    """A value of any shape, from a seeded source: cheaper than Hypothesis where thousands are sent at once."""
    kind = random.randrange(8)
    if depth <= 0 or kind < 5:
        return random.choice(SCALARS)
    if kind == 5:
        return [random_value(random, depth - 1) for _ in range(random.randrange(4))]
    return {random.choice(TEXTS): random_value(random, depth - 1) for _ in range(random.randrange(4))}

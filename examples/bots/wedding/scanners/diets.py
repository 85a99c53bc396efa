"""A scanner of this bot, which runs in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator


def known(value: str, *, diets: list[str]) -> Iterator[str]:
    """Report a diet that the kitchen does not cook."""
    if value and value not in diets:
        yield f"The kitchen does not cook {value}; it cooks {', '.join(diets)}."

"""Safety: a filter over text that finds a few kinds of dangerous pieces, and says which it looks for.

It knows patterns, not meanings. What is not in `COVERED` it does not look for: not insults, not violence, not hate,
not self-harm, not advice that harms. Text that passes is not thereby safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

from trysquare.core.errors import NotFound

Category: TypeAlias = Literal["credentials", "personal_data", "destructive_commands"]

COVERED: Mapping[Category, str] = MappingProxyType(
    {
        "credentials": "private keys, tokens with the well-known beginnings of large services, JSON web tokens, "
        "and passwords inside of addresses",
        "personal_data": "payment card numbers with a right check digit, IBANs with right check digits, "
        "and American social security numbers written with hyphens",
        "destructive_commands": "shell commands that delete everything, overwrite a disk, run what they download, "
        "or fork without end",
    }
)
"""Every category that there is, with all that it finds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A piece of text that a category covers."""

    category: Category
    what: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pattern:
    category: Category
    what: str
    expression: re.Pattern[str]


def _pattern(category: Category, what: str, expression: str) -> _Pattern:
    return _Pattern(category=category, what=what, expression=re.compile(expression))


_PATTERNS = (
    _pattern("credentials", "a private key", r"-----BEGIN (?:[A-Z]{2,12} )?PRIVATE KEY-----"),
    _pattern("credentials", "an AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    _pattern("credentials", "a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{22,251})\b"),
    _pattern("credentials", "a key of a model's API", r"\bsk-[A-Za-z0-9_-]{20,200}"),
    _pattern("credentials", "a Slack token", r"\bxox[abprs]-[A-Za-z0-9-]{10,250}"),
    _pattern(
        "credentials",
        "a JSON web token",
        r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}",
    ),
    _pattern("credentials", "a password in an address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/:@]{1,200}@"),
    _pattern("personal_data", "a payment card number", r"\b(?:\d[ -]?){12,18}\d\b"),
    _pattern("personal_data", "an IBAN", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b"),
    _pattern("personal_data", "a social security number", r"\b(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b"),
    _pattern(
        "destructive_commands",
        "deleting everything",
        r"\brm\s+(?:-{1,2}[a-zA-Z-]{1,30}\s+){1,5}(?:/|/\*|~|~/|\$HOME/?)(?=\s|$|[;&|`'\")])",
    ),
    _pattern(
        "destructive_commands",
        "overwriting a disk",
        r"\bdd\s[^\n]{0,200}\bof=/dev/(?:sd|nvme|vd|hd|xvd|disk)"
        r"|\bmkfs(?:\.\w{1,10})?\s[^\n]{0,100}/dev/|>\s*/dev/(?:sd|nvme|vd|hd)\w",
    ),
    _pattern(
        "destructive_commands",
        "running what is downloaded",
        r"\b(?:curl|wget)\s[^\n|;]{1,500}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b",
    ),
    _pattern("destructive_commands", "forking without end", r":\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:"),
)


class SafetyFilter:
    """Looks for some categories, or for all that are covered."""

    def __init__(self, categories: Sequence[str] = tuple(COVERED)) -> None:
        for category in categories:
            if category not in COVERED:
                raise NotFound(
                    f"The safety filter does not cover `{category}`.",
                    instruction=f"It covers {', '.join(COVERED)} and nothing else.",
                )
        self.categories = cast(tuple[Category, ...], tuple(categories))

    def find(self, text: str) -> tuple[Found, ...]:
        """Every piece that is covered, in the order of the text."""
        found = (each for pattern in _PATTERNS if pattern.category in self.categories for each in _find(pattern, text))
        return tuple(sorted(found, key=lambda each: (each.start, each.end)))

    def redact(self, text: str) -> str:
        """The text with what was found replaced by what it is."""
        done = 0
        parts: list[str] = []
        for each in self.find(text):
            if each.start >= done:
                parts += [text[done : each.start], f"[{each.what} was removed]"]
                done = each.end
        return "".join([*parts, text[done:]])


def _find(pattern: _Pattern, text: str) -> Iterator[Found]:
    for match in pattern.expression.finditer(text):
        check = _CHECKS.get(pattern.what)
        if check is None or check(match[0]):
            yield Found(category=pattern.category, what=pattern.what, start=match.start(), end=match.end())


def _is_card(text: str) -> bool:
    """Whether the last digit is the check digit of the others, by Luhn's rule."""
    digits = [int(letter) for letter in reversed(text) if letter.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) if place % 2 else digit for place, digit in enumerate(digits)]
    return len(digits) >= 13 and len(set(digits)) > 1 and sum(doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    compact = text.replace(" ", "")
    moved = compact[4:] + compact[:4]
    return 15 <= len(compact) <= 34 and int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1


_CHECKS = {"a payment card number": _is_card, "an IBAN": _is_iban}

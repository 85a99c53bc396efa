"""Sampling presets, and the safety filter of a model's text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

from trysquare.core.errors import NotFound
from trysquare.models.base import Sampling, did_you_mean

Category: TypeAlias = Literal["credentials", "personal_data", "destructive_commands"]

COVERED: Mapping[Category, str] = MappingProxyType(
    {
        "credentials": "private keys, tokens with the well-known beginnings of large services, JSON web tokens, "
        "and passwords in URLs",
        "personal_data": "payment card numbers with a right check digit, IBANs with right check digits, "
        "and American social security numbers written with hyphens",
        "destructive_commands": "shell commands that delete everything, overwrite a disk, run what they download, "
        "or fork without end",
    }
)
"""Every category, with all that it finds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A match of the safety filter."""

    category: Category
    what: str
    start: int
    end: int


_PATTERNS: tuple[tuple[Category, str, str], ...] = (
    ("credentials", "a private key", r"-----BEGIN (?:[A-Z]{2,12} )?PRIVATE KEY-----"),
    ("credentials", "an AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("credentials", "a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{22,251})\b"),
    ("credentials", "a key of a model's API", r"\bsk-[A-Za-z0-9_-]{20,200}"),
    ("credentials", "a Slack token", r"\bxox[abprs]-[A-Za-z0-9-]{10,250}"),
    ("credentials", "a JSON web token", r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}"),
    ("credentials", "a password in an address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/:@]{1,200}@"),
    ("personal_data", "a payment card number", r"\b(?:\d[ -]?){12,18}\d\b"),
    ("personal_data", "an IBAN", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b"),
    ("personal_data", "a social security number", r"\b(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b"),
    ("destructive_commands", "deleting everything",
     r"\brm\s+(?:-{1,2}[a-zA-Z-]{1,30}\s+){1,5}(?:/|/\*|~|~/|\$HOME/?)(?=\s|$|[;&|`'\")])"),
    ("destructive_commands", "overwriting a disk",
     r"\bdd\s[^\n]{0,200}\bof=/dev/(?:sd|nvme|vd|hd|xvd|disk)"
     r"|\bmkfs(?:\.\w{1,10})?\s[^\n]{0,100}/dev/|>\s*/dev/(?:sd|nvme|vd|hd)\w"),
    ("destructive_commands", "running what is downloaded",
     r"\b(?:curl|wget)\s[^\n|;]{1,500}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b"),
    ("destructive_commands", "forking without end", r":\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:"),
)  # fmt: skip


class SafetyFilter:
    """Finds pieces of text by patterns, in some categories or in all of `COVERED`.

    Nothing else is detected: no insults, violence, hate, self-harm or harmful advice. Text that passes may be unsafe.
    """

    def __init__(self, categories: Sequence[str] = tuple(COVERED)) -> None:
        if unknown := [category for category in categories if category not in COVERED]:
            raise NotFound(
                f"The safety filter does not cover `{unknown[0]}`.",
                instruction=f"It covers {', '.join(COVERED)} and nothing else.",
            )
        self.categories = cast(tuple[Category, ...], tuple(categories))

    def find(self, text: str) -> tuple[Found, ...]:
        """Every match, in the order of the text."""
        found = [
            Found(category=category, what=what, start=match.start(), end=match.end())
            for category, what, pattern in _PATTERNS
            if category in self.categories
            for match in re.finditer(pattern, text)
            if what not in _CHECKS or _CHECKS[what](match[0])
        ]
        return tuple(sorted(found, key=lambda each: (each.start, each.end)))

    def redact(self, text: str) -> str:
        """The text with each match replaced by its description."""
        done = 0
        parts: list[str] = []
        for each in self.find(text):
            if each.start >= done:
                parts += [text[done : each.start], f"[{each.what} was removed]"]
                done = each.end
        return "".join([*parts, text[done:]])


def _is_card(text: str) -> bool:
    """Whether the last digit is the check digit by the Luhn algorithm."""
    digits = [int(letter) for letter in reversed(text) if letter.isdigit()]
    doubled = [digit * 2 - 9 * (digit > 4) if index % 2 else digit for index, digit in enumerate(digits)]
    return len(digits) >= 13 and len(set(digits)) > 1 and sum(doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    compact = text.replace(" ", "")
    moved = compact[4:] + compact[:4]
    return 15 <= len(compact) <= 34 and int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1


_CHECKS = {"a payment card number": _is_card, "an IBAN": _is_iban}


@dataclass(frozen=True, slots=True)
class Preset:
    """Sampling parameters for a purpose."""

    name: str
    about: str
    sampling: Sampling
    constraint: Literal["calls", "json", "nothing"] = "nothing"
    filtered: bool = False
    """Whether the safety filter checks the response."""


_JSON = "JSON constrained to a schema"
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in (
    Preset("tool_call", "One tool call, constrained to the tools' grammar; greedy.",
           Sampling(temperature=0.0, top_k=1), constraint="calls"),
    Preset("json_strict", f"{_JSON}, nearly deterministic.",
           Sampling(temperature=0.1, top_k=40, top_p=0.9), constraint="json"),
    Preset("json_loose", f"{_JSON}, with some freedom in its strings.",
           Sampling(temperature=0.5, top_k=40, top_p=0.95), constraint="json"),
    Preset("safe_chat", "Plain text, checked by the safety filter.",
           Sampling(temperature=0.7, top_k=40, top_p=0.95), filtered=True),
    Preset("code_generation", "Source code: low temperature, not filtered.",
           Sampling(temperature=0.2, top_k=50, top_p=0.95)),
    Preset("creative", "Varied text.", Sampling(temperature=0.8, top_k=100, top_p=0.95)),
    Preset("deterministic", "Greedy, with a fixed seed.", Sampling(temperature=0.0, top_k=1, seed=0)),
)})  # fmt: skip


def find_preset(name: str) -> Preset:
    if name in PRESETS:
        return PRESETS[name]
    raise NotFound(
        f"Unknown sampling preset `{name}`.{did_you_mean(name, PRESETS)}",
        instruction=f"Use one of {', '.join(PRESETS)}.",
    )

"""Posts: how long one may be in each network, counted as the network counts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trysquare.agent.writing.analysis import Network
from trysquare.core.errors import InvalidArguments

_ADDRESS = re.compile(r"https?://\S+")
_ADDRESS_LENGTH = 23
_NARROW = ((0, 4351), (8192, 8205), (8208, 8223), (8242, 8247))
"""The characters that count once on Twitter; all others count twice."""
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def twitter_length(text: str) -> int:
    """The length on Twitter: every address counts the same, and wide characters count twice."""
    addresses = len(_ADDRESS.findall(text))
    rest = unicodedata.normalize("NFC", _ADDRESS.sub("", text))
    return addresses * _ADDRESS_LENGTH + sum(1 if _is_narrow(ord(letter)) else 2 for letter in rest)


def _is_narrow(number: int) -> bool:
    return any(first <= number <= last for first, last in _NARROW)


def bluesky_length(text: str) -> int:
    """At least the number of characters that a reader sees, which is what Bluesky counts."""
    return sum(1 for letter in text if letter not in _JOINERS and unicodedata.category(letter) not in ("Mn", "Me"))


@dataclass(frozen=True, kw_only=True, slots=True)
class PostLimit:
    """How long a post may be."""

    most: int
    length: Callable[[str], int]
    bytes: int | None = None


LIMITS: Mapping[Network, PostLimit] = {
    "twitter": PostLimit(most=280, length=twitter_length),
    "linkedin": PostLimit(most=3000, length=len),
    "bluesky": PostLimit(most=300, length=bluesky_length, bytes=3000),
}


def checked_post(network: Network, text: str) -> int:
    """The length of a post; one that the network would refuse is refused here."""
    limit, length = LIMITS[network], LIMITS[network].length(text)
    if length > limit.most:
        raise InvalidArguments(
            f"The post for {network} counts {length} characters; at most {limit.most} are allowed.",
            instruction=f"Make it at least {length - limit.most} characters shorter and write it again.",
        )
    if limit.bytes is not None and len(text.encode()) > limit.bytes:
        raise InvalidArguments(f"The post for {network} has more than {limit.bytes} bytes. Make it shorter.")
    return length

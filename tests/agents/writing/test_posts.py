"""Posts are counted as their networks count them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.agents.writing.draft import LIMITS, Network, bluesky_length, checked_post, twitter_length
from trysquare.core.errors import InvalidArguments


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        ("Bees fly.", 9),
        ("über", 4),
        ("蜂が飛ぶ", 8),
        ("🐝", 2),
        ("see https://example.org/a/very/long/address/that/does/not/count?x=1", 27),
        ("http://a.b http://c.d", 47),
        ("e\u0301", 1),
    ],
)
def test_twitter_counts_addresses_alike_and_wide_characters_twice(text: str, length: int) -> None:
    assert twitter_length(text) == length


@pytest.mark.parametrize(("text", "length"), [("Bees", 4), ("e\u0301", 1), ("🐝", 1), ("❤\ufe0f", 1), ("蜂", 1)])
def test_bluesky_counts_what_a_reader_sees(text: str, length: int) -> None:
    assert bluesky_length(text) == length


@pytest.mark.parametrize(("network", "most"), [("twitter", 280), ("linkedin", 3000), ("bluesky", 300)])
def test_a_post_may_be_as_long_as_its_network_allows_and_no_longer(network: Network, most: int) -> None:
    assert checked_post(network, "x" * most) == most
    with pytest.raises(InvalidArguments, match=rf"has {most + 7} characters") as refused:
        checked_post(network, "x" * (most + 7))
    assert "at least 7 characters" in (refused.value.instruction or "")


def test_bluesky_also_bounds_the_bytes() -> None:
    with pytest.raises(InvalidArguments, match="more than 3000 bytes"):
        checked_post("bluesky", "e" + "\u0301" * 2000)


@given(st.text(max_size=400), st.sampled_from(sorted(LIMITS)))
def test_what_is_taken_is_never_too_long(text: str, network: Network) -> None:
    try:
        length = checked_post(network, text)
    except InvalidArguments:
        return
    assert length <= LIMITS[network].most

"""Presets are found by name, and tokens are drawn as they say."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.errors import NotFound
from trysquare.models import Sampling
from trysquare.models.local.decoding import draw
from trysquare.models.local.runtime import Candidate
from trysquare.models.sampling import PRESETS, find_preset


def tokens(*probabilities: float) -> list[Candidate]:
    """Tokens with these probabilities."""
    return [Candidate(token=number, probability=probability) for number, probability in enumerate(probabilities)]


def drawn(candidates: list[Candidate], sampling: Sampling, times: int = 300) -> set[int]:
    """Every token that comes in so many draws."""
    source = random.Random(1)
    return {draw(candidates, sampling, source) for _ in range(times)}


def test_every_preset_of_the_catalogue_is_there() -> None:
    names = "tool_call json_strict json_loose safe_chat code_generation creative deterministic"
    assert list(PRESETS) == names.split()
    assert all(find_preset(name).about.endswith(".") for name in PRESETS)


def test_a_misspelt_preset_is_refused_with_the_nearest() -> None:
    with pytest.raises(NotFound, match="`creative`"):
        find_preset("creativ")


def test_at_temperature_zero_only_the_likeliest_comes() -> None:
    assert drawn(tokens(0.3, 0.4, 0.3), Sampling(temperature=0.0)) == {1}


def test_top_k_and_top_p_leave_the_unlikely_out() -> None:
    assert drawn(tokens(0.5, 0.3, 0.2), Sampling(temperature=1.0, top_k=2)) == {0, 1}
    assert drawn(tokens(0.5, 0.3, 0.2), Sampling(temperature=1.0, top_p=0.5)) == {0}
    assert drawn(tokens(0.5, 0.3, 0.2), Sampling(temperature=1.0)) == {0, 1, 2}


def test_a_low_temperature_sharpens() -> None:
    assert drawn(tokens(0.6, 0.4), Sampling(temperature=0.01)) == {0}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0, 2), st.integers(0, 40), st.floats(0, 1))
def test_something_is_always_drawn(shares: list[float], temperature: float, top_k: int, top_p: float) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    assert draw(tokens(*shares), sampling, random.Random(0)) in range(len(shares))

"""Wilson's interval holds the share, narrows with more trials, and never leaves 0 to 1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.intervals import wilson


@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_the_interval_holds_the_share_and_narrows(found: tuple[int, int]) -> None:
    right, trials = found
    low, high = wilson(right, trials)
    more_low, more_high = wilson(right * 10, trials * 10)
    assert 0 <= low <= right / trials + 1e-12
    assert right / trials - 1e-12 <= high <= 1
    assert more_high - more_low < high - low


def test_known_intervals() -> None:
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)

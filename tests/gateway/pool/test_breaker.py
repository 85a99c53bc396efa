"""A server that keeps failing is left alone, longer each time, and forgiven when it works."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.pool.server import LONGEST_REST, CircuitBreaker


def rests(failures: int) -> list[float]:
    """How long each failure in a row makes the next try wait."""
    breaker, found = CircuitBreaker(), list[float]()
    for _ in range(failures):
        breaker.record_failure(100.0, "broken")
        found.append(breaker.retry_after(100.0))
    return found


def test_one_failure_is_forgiven_and_each_further_one_doubles_the_rest() -> None:
    assert rests(9) == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


@given(st.integers(1, 2000), st.floats(0, 200))
def test_the_rest_never_lasts_longer_than_the_longest(failures: int, later: float) -> None:
    breaker = CircuitBreaker()
    for _ in range(failures):
        breaker.record_failure(0.0, "broken")
    assert 0.0 <= breaker.retry_after(later) <= LONGEST_REST
    assert breaker.retry_after(LONGEST_REST) == 0.0


def test_success_forgets_every_failure() -> None:
    breaker = CircuitBreaker()
    for _ in range(5):
        breaker.record_failure(0.0, "broken")
    breaker.record_success()
    assert breaker == CircuitBreaker()

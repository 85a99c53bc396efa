"""Packing: whole items within a budget, nothing lost, nothing sent twice."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.support import size
from trysquare.core.tokens import SHORT_DIGEST, fit_budget, is_held


@dataclass(frozen=True)
class Item:
    """Something to send."""

    number: int
    tokens: int
    priority: int = 0

    @property
    def digest(self) -> str:
        return f"{self.number:064x}"[::-1]


@st.composite
def item_lists(draw: st.DrawFn) -> list[Item]:
    many = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(-2, 2)), max_size=12))
    return [Item(number=number, tokens=tokens, priority=rank) for number, (tokens, rank) in enumerate(many)]


@hypothesis_settings(max_examples=size(300, 5_000))
@given(items=item_lists(), budget=st.integers(0, 120), held=st.sets(st.integers(0, 11)), cost=st.integers(0, 5))
def test_nothing_is_lost_and_what_is_sent_and_named_stays_within_the_budget(
    items: list[Item], budget: int, held: set[int], cost: int
) -> None:
    digests = {Item(number=number, tokens=0).digest[:SHORT_DIGEST] for number in held}
    packed = fit_budget(items, budget=budget, held=digests, naming=lambda left_out: cost * left_out)
    everything = [*packed.sent, *packed.unchanged, *packed.left_out]
    assert sorted(everything, key=lambda item: item.number) == items
    assert not packed.sent or packed.tokens + cost * len(packed.left_out) <= budget
    assert {item.number for item in packed.unchanged} == held & {item.number for item in items}
    for part in (packed.sent, packed.unchanged, packed.left_out):
        assert list(part) == sorted(part, key=lambda item: item.number)


@given(items=item_lists(), budget=st.integers(0, 120))
def test_nothing_is_left_out_for_the_sake_of_something_less_important(items: list[Item], budget: int) -> None:
    packed = fit_budget(items, budget=budget)
    for absent in packed.left_out:
        before = [item for item in packed.sent if (-item.priority, item.number) < (-absent.priority, absent.number)]
        assert sum(item.tokens for item in before) + absent.tokens > budget


def test_naming_what_is_left_out_takes_room_from_what_is_sent():
    items = [Item(number=1, tokens=50), Item(number=2, tokens=50), Item(number=3, tokens=50)]
    assert len(fit_budget(items, budget=100).sent) == 2
    assert len(fit_budget(items, budget=100, naming=lambda left_out: 10 * left_out).sent) == 1


def test_everything_is_sent_where_it_fits_however_much_naming_would_cost():
    items = [Item(number=number, tokens=10) for number in range(5)]
    assert fit_budget(items, budget=50, naming=lambda left_out: 1_000 * left_out).sent == tuple(items)


def test_a_digest_is_held_in_full_or_short():
    digest = "ab" * 32
    assert is_held(digest, {digest})
    assert is_held(digest, {digest[:SHORT_DIGEST]})
    assert not is_held(digest, {digest[: SHORT_DIGEST - 1]})

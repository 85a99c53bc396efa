"""Delivery: what is sent, within a budget, without what is held already."""

from __future__ import annotations

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.guide.contents import piece
from tests.support import size
from trysquare.core.tokens import SHORT_DIGEST
from trysquare.core.tokens import fit_budget as deliver
from trysquare.guide.retrieval import ContentPart, Delivery


def ids(pieces: tuple[ContentPart, ...]) -> list[str]:
    return [each.document.id.name for each in pieces]


def test_without_a_budget_everything_is_sent_in_order():
    found = deliver([piece("a/1"), piece("a/2")])
    assert ids(found.sent) == ["1", "2"]
    assert found.tokens == 2


def test_priority_decides_what_fits_and_the_expression_in_which_order_it_comes():
    pieces = [piece("a/1", tokens=5), piece("a/2", tokens=5, priority=1), piece("a/3", tokens=5)]
    found = deliver(pieces, budget=10)
    assert ids(found.sent) == ["1", "2"]
    assert ids(found.left_out) == ["3"]


def test_a_document_that_is_too_large_leaves_budget_for_smaller_ones():
    found = deliver([piece("a/1", tokens=50, priority=9), piece("a/2", tokens=5)], budget=10)
    assert ids(found.sent) == ["2"]


def test_what_is_held_in_full_or_short_form_is_not_sent_and_costs_nothing():
    pieces = [piece("a/1", digest="f" * 64), piece("a/2", digest="e" * 64), piece("a/3", digest="d" * 64, tokens=3)]
    found = deliver(pieces, held=frozenset({"f" * 64, "e" * SHORT_DIGEST}), budget=3)
    assert (ids(found.unchanged), ids(found.sent)) == (["1", "2"], ["3"])


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[ContentPart], int | None, frozenset[str], Delivery]:
    count = draw(st.integers(0, 12))
    pieces = [
        piece(f"a/{n}", tokens=draw(st.integers(0, 20)), digest=f"{n:064x}"[::-1], priority=draw(st.integers(-2, 2)))
        for n in range(count)
    ]
    budget = draw(st.none() | st.integers(0, 60))
    held = frozenset(each.digest[:SHORT_DIGEST] for each in pieces if draw(st.booleans()))
    return pieces, budget, held, deliver(pieces, budget=budget, held=held)


@hypothesis_settings(max_examples=size(300, 5_000))
@given(deliveries())
def test_nothing_is_lost_nothing_is_sent_twice_and_no_budget_is_passed(
    made: tuple[list[ContentPart], int | None, frozenset[str], Delivery],
):
    pieces, budget, held, found = made
    everything = [*found.sent, *found.unchanged, *found.left_out]
    assert sorted(ids(tuple(everything))) == sorted(ids(tuple(pieces)))
    assert budget is None or found.tokens <= budget
    assert all(each.digest[:SHORT_DIGEST] not in held for each in (*found.sent, *found.left_out))
    assert all(each in pieces for each in found.sent), "documents are sent whole, as they were given"
    assert not (budget is None and found.left_out)
    for part in (found.sent, found.unchanged, found.left_out):
        assert list(part) == [each for each in pieces if each in part], "the expression's order is kept"


@hypothesis_settings(max_examples=size(300, 5_000))
@given(deliveries())
def test_nothing_is_left_out_for_the_sake_of_something_less_important(
    made: tuple[list[ContentPart], int | None, frozenset[str], Delivery],
):
    pieces, budget, _, found = made
    rank = {id(each): (-each.document.priority, number) for number, each in enumerate(pieces)}
    for absent in found.left_out:
        before = [each for each in found.sent if rank[id(each)] < rank[id(absent)]]
        assert budget is not None
        assert sum(each.tokens for each in before) + absent.tokens > budget


@given(deliveries())
def test_asking_again_with_what_is_held_then_sends_only_what_did_not_fit(
    made: tuple[list[ContentPart], int | None, frozenset[str], Delivery],
):
    pieces, _, held, found = made
    again = deliver(pieces, held=held | frozenset(found.held()))
    assert again.sent == found.left_out

"""Values as a model reads them: what matters first, bounded, and no secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.tokens import count_tokens
from trysquare.debug.debugger import Variable
from trysquare.debug.snapshot import ranked, text_of, within_budget

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True)
VARIABLES = st.lists(st.builds(Variable, name=NAMES, value=st.text(max_size=600)), max_size=30)


@pytest.mark.parametrize("name", ["password", "api_key", "apikey", "AUTH_TOKEN", "client_secret", "private_key"])
def test_a_value_whose_name_tells_a_secret_is_masked_unless_it_is_empty(name: str) -> None:
    assert text_of(Variable(name=name, value="'hunter2'")) == "***"
    assert text_of(Variable(name=name, value="None")) == "None"


def test_addresses_go_and_long_values_tell_how_long_they_are() -> None:
    assert text_of(Variable(name="it", value="<Thing object at 0x7f12ab34cd56>")) == "<Thing object>"
    text = text_of(Variable(name="it", value="[" + "1, " * 500 + "]", indexed=500))
    assert text.endswith("… (500 items)")
    assert len(text) < 200


def test_what_changed_stands_on_the_line_or_is_in_the_error_comes_first() -> None:
    names = ["os", "zebra", "total", "item", "price", "__name__"]
    kinds = {"os": "module"}
    variables = [Variable(name=name, value="1", type=kinds.get(name)) for name in names]
    order = ranked(variables, line="total = total + item", changed=frozenset({"price"}), error="KeyError: 'zebra'")
    assert [each.name for each in order] == ["price", "total", "item", "zebra", "__name__", "os"]


@given(VARIABLES, st.integers(0, 400))
def test_no_budget_is_overrun_and_nothing_is_left_out_silently(variables: list[Variable], budget: int) -> None:
    distinct = list({each.name: each for each in variables}.values())
    shown = within_budget(distinct, budget)
    assert sum(count_tokens(f"{name}: {value}\n") for name, value in shown.values.items()) <= budget
    assert [*shown.values, *shown.left_out] == [each.name for each in distinct]
    told = shown.about_left_out()
    assert bool(told) == bool(shown.left_out)
    assert told.get("total_variables", len(distinct)) == len(distinct)


@given(VARIABLES)
def test_ranking_keeps_every_value(variables: list[Variable]) -> None:
    assert sorted(each.name for each in ranked(variables)) == sorted(each.name for each in variables)

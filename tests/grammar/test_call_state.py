from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from trysquare.grammar.calls.call_set import CallState, call_length, state_of, string_end

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ORDER = list(CallState)


def written(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


@given(name=st.text(), arguments=st.dictionaries(st.text(), VALUES, max_size=3))
def test_the_state_only_goes_forward_and_a_whole_call_is_complete(name: str, arguments: dict[str, object]):
    call = written({"name": name, "args": arguments})
    states = [ORDER.index(state_of(call[:end])) for end in range(len(call) + 1)]
    assert states == sorted(states)
    assert (ORDER[states[0]], ORDER[states[-1]]) == (CallState.START, CallState.COMPLETE)
    assert ORDER[states[-2]] is CallState.END


@given(value=st.dictionaries(st.text(), VALUES, max_size=3), behind=st.binary(max_size=5))
def test_the_length_of_an_object_is_known_once_it_is_closed(value: dict[str, object], behind: bytes):
    text = written(value)
    assert call_length(text + behind) == len(text)
    assert all(call_length(text[:end]) is None for end in range(len(text)))


@given(inside=st.text(), behind=st.binary(max_size=5))
def test_a_string_ends_behind_its_quote_and_not_at_an_escaped_one(inside: str, behind: bytes):
    text = written(inside)
    assert string_end(text + behind, 1) == len(text)
    assert all(string_end(text[:end], 1) is None for end in range(1, len(text)))

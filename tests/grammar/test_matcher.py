from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.grammar.generated import cases
from tests.grammar.small_tokenizer import allowed_by, small_engine, small_tokenizer, take_all
from tests.grammar.tools_for_calls import TOOLS, check_answer, closed
from tests.support import size
from trysquare import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.grammar import CallGrammar, CallMatcher, read_schema
from trysquare.grammar.calls.call_set import CallSet, CallState
from trysquare.grammar.engine import ConstrainedText
from trysquare.grammar.filters import allowed_tokens, full_mask
from trysquare.models import ToolSpec

SETS = (
    CallSet(tools=TOOLS),
    CallSet(tools=TOOLS, parallel=True, most_calls=3),
    CallSet(tools={"now": TOOLS["now"]}),
)
END = small_tokenizer().eos_token


def can_be_held(schema: JsonObject) -> bool:
    """Whether a schema is one that no grammar refuses, and that something fits."""
    try:
        read_schema(schema)
    except ToolError:
        return False
    return True


def write(matcher: CallMatcher, text: str) -> None:
    """Take a text byte by byte."""
    take_all(matcher, list(text.encode()))


def write_randomly(matcher: CallMatcher, random: Random, *, most: int = 400) -> None:
    """Choose among what is allowed until the text ends; after so many tokens, go straight to the end."""
    closing = [token for token in range(small_tokenizer().vocab_size) if matcher.bytes_of(token)[:1] in b'"}]']
    while not matcher.has_ended:
        late = len(matcher.tokens) > most
        if late or random.random() < 0.2:
            matcher.fast_forward()
        allowed = allowed_by(matcher)
        likely = [token for token in closing if token in allowed]
        matcher.take(random.choice(likely if likely and (late or random.random() < 0.4) else allowed))


def test_a_call_goes_through_its_seven_states():
    matcher = CallMatcher(CallSet(tools=TOOLS), small_engine())
    states = [matcher.state]
    for byte in b'{"name":"read","args":{"path":"a"}}':
        matcher.take(byte)
        states.append(matcher.state)
    assert list(dict.fromkeys(states)) == list(CallState)


def test_only_the_end_of_text_may_follow_a_complete_call():
    matcher = CallMatcher(CallSet(tools=TOOLS), small_engine())
    write(matcher, '{"name":"now","args":{}}')
    assert matcher.state is CallState.COMPLETE
    assert allowed_by(matcher) == [END]
    assert matcher.forced() == []
    matcher.take(END)
    assert matcher.has_ended
    assert allowed_by(matcher) == []


def test_the_first_thing_is_an_opening_brace():
    matcher = CallMatcher(CallSet(tools=TOOLS), small_engine())
    assert {matcher.bytes_of(token)[:1] for token in allowed_by(matcher)} == {b"{"}


def test_a_tool_that_is_not_offered_cannot_be_named():
    matcher = CallMatcher(CallSet(tools={"read": TOOLS["read"], "now": TOOLS["now"]}), small_engine())
    write(matcher, '{"name":"')
    assert {matcher.bytes_of(token)[:1] for token in allowed_by(matcher)} == {b"r", b"n"}
    with pytest.raises(ToolError) as refused:
        write(matcher, "git")
    assert refused.value.code is ErrorCode.GRAMMAR_REFUSED
    assert matcher.text == b'{"name":"'


def test_a_name_that_begins_another_is_distinguished_by_its_quote():
    matcher = CallMatcher(CallSet(tools=TOOLS), small_engine())
    write(matcher, '{"name":"read')
    assert matcher.tool is None
    assert matcher.names_after(b"") == ("read", "read_file")
    assert matcher.names_after(b'"') == ("read",)
    write(matcher, "_")
    assert matcher.tool == "read_file"


def test_several_calls_are_allowed_up_to_the_most():
    calls = CallSet(tools=TOOLS, parallel=True, most_calls=2)
    matcher = CallMatcher(calls, small_engine())
    write(matcher, '[{"name":"now","args":{}}')
    assert {matcher.bytes_of(token)[:1] for token in allowed_by(matcher)} == {b",", b"]"}
    write(matcher, ',{"name":"read","args":{"path":"x"}}')
    assert {matcher.bytes_of(token)[:1] for token in allowed_by(matcher)} == {b"]"}


def test_a_token_that_ends_one_call_and_begins_the_next_is_allowed():
    matcher = CallMatcher(CallSet(tools=TOOLS, parallel=True), small_engine())
    write(matcher, '[{"name":"read","args":{"path":"x')
    [crossing] = small_engine().tokens_of(b'"}},{"')
    assert crossing in allowed_by(matcher)
    matcher.take(crossing)
    assert (matcher.tool, matcher.state) == (None, CallState.NAME_KEY)
    write(matcher, 'name":"now","args":{}}]')
    assert matcher.is_complete


def test_forced_tokens_are_taken_across_both_stages():
    matcher = CallMatcher(CallSet(tools=TOOLS), small_engine())
    matcher.fast_forward()
    assert matcher.text == b'{"name":"'
    matcher.take(ord("n"))
    matcher.fast_forward()
    assert matcher.text == b'{"name":"now","args":{}}'
    assert matcher.is_complete


def test_names_with_quotes_and_other_letters_are_written_as_json():
    calls = CallSet(tools={'say "hé"': closed(), 'say "no"': closed()})
    matcher = CallMatcher(calls, small_engine())
    matcher.fast_forward()
    write(matcher, "h")
    matcher.fast_forward()
    assert check_answer(matcher.text.decode(), calls) == [{"name": 'say "hé"', "args": {}}]


def test_a_tool_whose_arguments_no_grammar_can_hold_is_refused_when_it_is_chosen_and_nothing_has_changed():
    tools = {"fine": closed(), "odd": {"type": "object", "if": {"minProperties": 2}, "then": {"required": ["a"]}}}
    matcher = CallMatcher(CallSet(tools=tools), small_engine())
    write(matcher, '{"name":"')
    with pytest.raises(ToolError) as refused:
        matcher.take(ord("o"))
    assert refused.value.code is ErrorCode.GRAMMAR_UNSUPPORTED
    assert matcher.text == b'{"name":"'
    matcher.take(ord("f"))
    assert matcher.tool == "fine"


def test_more_tokens_than_were_taken_cannot_be_undone():
    matcher = CallMatcher(CallSet(tools=TOOLS), small_engine())
    write(matcher, "{")
    with pytest.raises(ValueError, match="cannot undo 2 of 1 tokens"):
        matcher.take_back(2)


@pytest.mark.parametrize("calls", SETS)
@pytest.mark.parametrize("seed", range(size(25, 1000)))
def test_whatever_is_sampled_under_the_mask_is_a_valid_call(calls: CallSet, seed: int):
    matcher = CallMatcher(calls, small_engine())
    write_randomly(matcher, Random(seed))
    check_answer(matcher.text.decode(), calls)


@pytest.mark.parametrize("seed", range(size(8, 200)))
def test_calls_of_tools_with_generated_schemas_are_valid(seed: int):
    random = Random(seed)
    schemas = [case.schema for case in cases(seed, 12) if can_be_held(case.schema)]
    tools = {f"tool_{number}": schema for number, schema in enumerate(schemas)}
    calls = CallSet(tools=tools, parallel=bool(seed % 2), most_calls=2)
    for _ in range(5):
        matcher = CallMatcher(calls, small_engine())
        write_randomly(matcher, random)
        check_answer(matcher.text.decode(), calls)


@pytest.mark.parametrize("calls", SETS)
@pytest.mark.parametrize("seed", range(size(6, 200)))
def test_the_two_stages_allow_what_one_grammar_of_all_tools_allows(calls: CallSet, seed: int):
    """A token is lost only where it begins in a name that is still open and ends in the arguments."""
    random = Random(seed)
    offers = [ToolSpec(name=name, description="", schema=schema, flat={}) for name, schema in calls.tools.items()]
    grammar = CallGrammar(offers, parallel=calls.parallel, most_calls=calls.most_calls)
    union: ConstrainedText = small_engine().start(grammar.lark())
    matcher = CallMatcher(calls, small_engine())
    mask = full_mask(matcher.vocabulary_size)
    while not matcher.is_complete:
        union.fill(mask)
        theirs = set(allowed_tokens(mask, matcher.vocabulary_size).nonzero()[0].tolist())
        ours = set(allowed_by(matcher))
        assert ours <= theirs
        lost = [matcher.bytes_of(token) for token in theirs - ours]
        assert all(matcher.tool is None and piece.startswith(b'","args":{') for piece in lost)
        token = random.choice(sorted(ours))
        matcher.take(token)
        assert union.take([token]) == 1
    assert union.is_complete()


@given(seed=st.integers(0, 10_000), parallel=st.booleans())
@settings(max_examples=size(20, 200), deadline=None)
def test_a_forced_token_is_always_allowed_and_writes_what_every_answer_goes_on_with(seed: int, parallel: bool):
    random = Random(seed)
    matcher = CallMatcher(CallSet(tools=TOOLS, parallel=parallel, most_calls=2), small_engine())
    while not matcher.is_complete:
        forced = matcher.forced()
        if forced:
            text = b"".join(map(matcher.bytes_of, forced))
            pieces = [matcher.bytes_of(token) for token in allowed_by(matcher)]
            assert all(text.startswith(piece) or piece.startswith(text) for piece in pieces)
            assert forced[0] in allowed_by(matcher)
        matcher.take(random.choice(allowed_by(matcher)))


class TakingAndUndoing(RuleBasedStateMachine):
    """A matcher that took and gave back tokens is like one that never took them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = CallSet(tools=TOOLS, parallel=True, most_calls=2)
        self.matcher = CallMatcher(self.calls, small_engine())
        self.tokens: list[int] = []

    @rule(choice=st.integers(0, 10_000))
    @precondition(lambda self: not self.matcher.has_ended)
    def take_something(self, choice: int) -> None:
        """A token that is allowed."""
        allowed = allowed_by(self.matcher)
        token = allowed[choice % len(allowed)]
        self.matcher.take(token)
        self.tokens.append(token)

    @rule()
    @precondition(lambda self: not self.matcher.has_ended)
    def take_what_is_forced(self) -> None:
        """Everything that is forced."""
        self.tokens += self.matcher.fast_forward()

    @rule(token=st.integers(0, small_tokenizer().vocab_size - 1))
    def try_anything(self, token: int) -> None:
        """Any token: it is allowed, or it changes nothing. What is forced may also be taken in smaller pieces."""
        may = token in allowed_by(self.matcher)
        forced = b"".join(map(self.matcher.bytes_of, self.matcher.forced()))
        try:
            self.matcher.take(token)
        except ToolError:
            assert not may
        else:
            assert may or forced.startswith(self.matcher.bytes_of(token))
            self.tokens.append(token)

    @rule(share=st.floats(0, 1))
    def undo_some(self, share: float) -> None:
        """Some of the last tokens."""
        count = int(share * len(self.tokens))
        self.matcher.take_back(count)
        del self.tokens[len(self.tokens) - count :]

    @invariant()
    def is_like_a_fresh_one(self) -> None:
        """The same as one that took what is left."""
        fresh = CallMatcher(self.calls, small_engine())
        take_all(fresh, self.tokens)
        assert self.matcher.text == fresh.text
        assert (self.matcher.state, self.matcher.tool) == (fresh.state, fresh.tool)
        assert (self.matcher.is_complete, self.matcher.has_ended) == (fresh.is_complete, fresh.has_ended)
        assert allowed_by(self.matcher) == allowed_by(fresh)


TestTakingAndUndoing = TakingAndUndoing.TestCase
TestTakingAndUndoing.settings = settings(max_examples=size(15, 60), stateful_step_count=size(20, 40), deadline=None)

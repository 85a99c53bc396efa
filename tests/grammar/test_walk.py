from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.grammar.generated import cases
from tests.grammar.small_tokenizer import small_engine
from tests.grammar.test_matcher import can_be_held
from tests.grammar.tools_for_calls import TOOLS, check_answer, closed
from tests.support import size
from trysquare import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.grammar import CallWalk
from trysquare.grammar.calls.call_set import CallSet, call_lark
from trysquare.grammar.calls.walk import Piece
from trysquare.grammar.filters import allowed_tokens, full_mask


def sampled(piece: Piece, random: Random, most: int) -> list[int]:
    """Tokens under a piece's grammar, as a backend samples them: until it is complete, or to the limit."""
    engine = small_engine()
    held = engine.start(piece.lark)
    tokens: list[int] = []
    while len(tokens) < most and not held.is_complete():
        mask = full_mask(engine.vocabulary_size)
        held.fill(mask)
        allowed = allowed_tokens(mask, engine.vocabulary_size).nonzero()[0].tolist()
        closing = [token for token in allowed if engine.bytes_of([token])[:1] in b'"}],']
        token = random.choice(closing if closing and random.random() < 0.3 else allowed)
        if token in engine.end_tokens:
            break
        tokens.append(token)
        held.take([token])
    return tokens


def walked(calls: CallSet, random: Random, tokens_left: int) -> tuple[str, int]:
    """An answer as a backend with a model of random weights writes it, and how many tokens were left."""
    walk = CallWalk(calls)
    while (piece := walk.next(tokens_left=tokens_left)) is not None:
        if piece.forced is not None:
            tokens = small_engine().tokens_of(piece.forced.encode())
            walk.take(piece.forced)
        else:
            tokens = sampled(piece, random, min(tokens_left, piece.most_tokens or tokens_left))
            # What is cut in the middle of a character is left out, as backends do.
            walk.take(small_engine().bytes_of(tokens).decode(errors="ignore"))
        tokens_left -= len(tokens)
        assert tokens_left >= 0
    return walk.text, tokens_left


def take_forced(walk: CallWalk) -> None:
    """Take what is forced, up to the next choice or the end."""
    while (piece := walk.next(tokens_left=500)) is not None and piece.forced is not None:
        walk.take(piece.forced)


def pieces(calls: CallSet, *texts: str, tokens_left: int = 1000) -> list[str]:
    """The forced texts of a walk on which these were chosen, in square brackets what the choice was between."""
    walk, shown, chosen = CallWalk(calls), list[str](), iter(texts)
    while (piece := walk.next(tokens_left=tokens_left)) is not None:
        text = piece.forced if piece.forced is not None else next(chosen)
        choice = f"{text} of {list(piece.choices)}" if piece.choices else f"{text} of its grammar"
        shown.append(text if piece.forced is not None else f"<{choice}>")
        walk.take(text)
    check_answer(walk.text, calls)
    return shown


def test_what_the_schema_forces_is_not_asked_for():
    shown = pieces(CallSet(tools=TOOLS), "gi", "l", "12,", "null}")
    assert shown == snapshot(
        [
            '{"name":"',
            "<gi of ['read\"', 'read_file\"', 'git\"', 'search\"', 'bash\"', 'now\"']>",
            't","args":{"action":"',
            """<l of ['status"', 'log","count":', 'show","paths":[']>""",
            'og","count":',
            "<12, of its grammar>",
            '"ref":',
            """<null} of ['null', '"']>""",
            "}",
        ]
    )


def test_a_value_may_come_with_the_beginning_of_what_follows_it():
    shown = pieces(CallSet(tools=TOOLS), "s", 'x","', "r", "0.5}")
    assert shown == snapshot(
        [
            '{"name":"',
            "<s of ['read\"', 'read_file\"', 'git\"', 'search\"', 'bash\"', 'now\"']>",
            'earch","args":{"query":"',
            '<x"," of its grammar>',
            """<r of ['ratio":', 'where":']>""",
            'atio":',
            "<0.5} of its grammar>",
            "}",
        ]
    )


def test_a_string_that_is_cut_is_closed_and_a_cut_escape_completed():
    calls = CallSet(tools={"read": closed(path={"type": "string"})})
    assert pieces(calls, "half a")[-2:] == ["<half a of its grammar>", '"}}']
    for cut, mended in {"a\\": '\\"}}', "a\\u": '0020"}}', "a\\u00": '20"}}', "a\\u001": '0"}}'}.items():
        assert pieces(calls, cut)[-1] == mended


def test_a_string_that_must_have_characters_gets_them_also_where_hardly_any_fit():
    calls = CallSet(tools={"bash": closed(command={"type": "string", "minLength": 3})})
    walk = CallWalk(calls)
    least = len('{"name":"bash","args":{"command":"abc"}}')
    for left in range(least, least + 40):
        text, _ = walked(calls, Random(left), left)
        [call] = check_answer(text, calls)
        assert len(call["args"]["command"]) >= 3
    with pytest.raises(ToolError, match="No call fits"):
        walked(calls, Random(1), 20)
    take_forced(walk)
    with pytest.raises(ToolError, match="shorter than 3 characters"):
        walk.take('ab"')


def test_several_calls_are_walked_until_the_model_closes_the_array_or_the_most_are_written():
    calls = CallSet(tools={"now": closed(), "nil": closed()}, parallel=True, most_calls=2)
    assert pieces(calls, "no", ",", "ni") == snapshot(
        [
            '[{"name":"',
            """<no of ['now"', 'nil"']>""",
            'w","args":{}}',
            "<, of [',{\"name\":\"', ']']>",
            '{"name":"',
            """<ni of ['now"', 'nil"']>""",
            'l","args":{}}]',
        ]
    )


def test_with_one_tool_without_arguments_everything_is_forced():
    assert pieces(CallSet(tools={"now": closed()})) == ['{"name":"now","args":{}}']


def test_tools_and_properties_that_no_longer_fit_are_not_offered():
    long = closed(text={"type": "string", "minLength": 200})
    calls = CallSet(tools={"long": long, "now": closed()})
    assert pieces(calls, tokens_left=60) == ['{"name":"now","args":{}}']
    optional = CallSet(tools={"say": closed([], text={"type": "string", "minLength": 200}, loud={"type": "boolean"})})
    assert pieces(optional, "}", tokens_left=60)[1] == """<} of ['"loud":', '}']>"""


def test_a_limit_into_which_no_call_fits_is_refused():
    with pytest.raises(ToolError, match="11 tokens") as refused:
        CallWalk(CallSet(tools=TOOLS)).next(tokens_left=20)
    assert refused.value.code is ErrorCode.GRAMMAR_REFUSED


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (("x",), "starts none of the allowed texts"),
        (("read_", "9"), "does not match the schema"),
        (("now", "}"), "no piece was requested"),
        (("search", "a\x01"), "cannot stand in a string"),
        (('read"', 'aaaaaaaaaaaaaaaa"'), "longer than 12 characters"),
        (('read"', 'a"x'), "only"),
    ],
)
def test_text_that_does_not_fit_its_piece_is_refused(chosen: tuple[str, ...], why: str):
    walk = CallWalk(CallSet(tools=TOOLS | {"read_file": closed(n={"type": "integer", "maximum": 5})}))
    *fitting, wrong = chosen
    for text in fitting:
        take_forced(walk)
        walk.take(text)
    take_forced(walk)
    with pytest.raises(ToolError, match=why) as refused:
        walk.take(wrong)
    assert refused.value.code is ErrorCode.GRAMMAR_REFUSED


@given(seed=st.integers(0, 10_000), left=st.integers(60, 700), parallel=st.booleans())
@settings(max_examples=size(60, 600), deadline=None)
def test_whatever_is_sampled_for_the_pieces_is_a_valid_answer_within_its_tokens(seed: int, left: int, parallel: bool):
    calls = CallSet(tools=TOOLS, parallel=parallel, most_calls=3)
    text, _ = walked(calls, Random(seed), left)
    check_answer(text, calls)


@pytest.mark.parametrize("seed", range(size(6, 300)))
def test_answers_for_generated_schemas_are_valid_and_one_grammar_of_all_tools_allows_them(seed: int):
    for number, case in enumerate(cases(seed, 3)):
        if not can_be_held(case.schema):
            continue
        calls = CallSet(tools={"tool": case.schema})
        text, _ = walked(calls, Random(number), 600)
        check_answer(text, calls)
        held = small_engine().start(call_lark("tool", case.schema, "", [""]))
        tokens = small_engine().tokens_of(text.encode())
        assert held.take(tokens) == len(tokens)


@given(
    value=st.fixed_dictionaries(
        {"name": st.text(max_size=8), "tags": st.lists(st.text(max_size=4), max_size=3)},
        optional={"count": st.integers(-99, 99), "deep": st.fixed_dictionaries({"on": st.booleans()})},
    )
)
@settings(max_examples=size(25, 500), deadline=None)
def test_every_valid_answer_can_be_walked(value: JsonObject):
    schema = closed(
        ["name", "tags"],
        name={"type": "string"},
        tags={"type": "array", "items": {"type": "string"}},
        count={"type": "integer"},
        deep=closed(on={"type": "boolean"}),
    )
    ordered = {key: value[key] for key in ("name", "tags", "count", "deep") if key in value}
    target = json.dumps({"name": "t", "args": ordered}, separators=(",", ":"), ensure_ascii=False)
    target = target.replace("\x7f", "\\u007f")
    walk = CallWalk(CallSet(tools={"t": schema, "u": closed()}))
    while (piece := walk.next(tokens_left=5000)) is not None:
        rest = target[len(walk.text) :]
        if piece.forced is not None:
            assert rest.startswith(piece.forced)
            walk.take(piece.forced)
        else:
            held, count = small_engine().start(piece.lark), 0
            while count < len(rest.encode()) and held.take([rest.encode()[count]]):
                count += 1
            walk.take(rest.encode()[:count].decode())
    assert walk.text == target

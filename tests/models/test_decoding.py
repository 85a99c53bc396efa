"""Decoding over a model whose wishes are written down: what it wants is written as far as the grammar lets it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from trysquare.grammar import CallGrammar
from trysquare.models import Sampling, ToolSpec
from trysquare.models.local.decoding import Decoder
from trysquare.models.local.runtime import Candidate, Runtime
from trysquare.models.local.vocabulary import Vocabulary, build_tokenizer

WORDS = ("}}", "},", '},{"', '{"', '":', '":"', '":["', '","', '"}', '"}}', "20", "15", "Ve", "getarian", "get", "play")
END = 256 + len(WORDS)
Wishes = Mapping[str, float]
"""Tokens by their texts, with their probabilities."""


class WishfulRuntime:
    """Says what comes next by what stands there; each wish is a token."""

    def __init__(self, wishes: Callable[[str], Wishes]) -> None:
        self._wishes = wishes
        tokens = [*(bytes([each]) for each in range(256)), *(word.encode() for word in WORDS), b"<end>"]
        self.vocabulary = Vocabulary(tokens=tokens, control=[END], begin=None, end=END)

    @cached_property
    def tokenizer(self) -> Any:
        return build_tokenizer(self.vocabulary, self.tokenize)

    def tokenize(self, text: str) -> list[int]:
        return self.vocabulary.cut(text.encode())

    def likeliest(self, tokens: list[int], most: int) -> list[tuple[int, float]]:
        text = b"".join(self.vocabulary.tokens[token] for token in tokens).decode()
        wished = {self.tokenize(word)[0]: share for word, share in self._wishes(text).items()}
        assert all(self.vocabulary.tokens[token].decode() in self._wishes(text) for token in wished)
        return [(token, math.log(share)) for token, share in sorted(wished.items(), key=lambda pair: -pair[1])][:most]

    def weigh(self, tokens: list[int], among: Sequence[int]) -> list[Candidate]:
        shares = {token: math.exp(log) for token, log in self.likeliest(tokens, END)}
        return [Candidate(token=token, probability=shares.get(token, 1e-9)) for token in among]


def offer(**properties: Any) -> ToolSpec:
    """A tool whose arguments are all required."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return ToolSpec(name="play", description="", schema=schema, flat=schema)


def decoded(tool: ToolSpec, wishes: Callable[[str], Wishes], *, parallel: bool = True) -> Any:
    """The answer of a model with these wishes, read as JSON."""
    runtime = cast(Runtime, WishfulRuntime(wishes))
    decoder = Decoder(runtime, [], Sampling(), lambda: False, tools=frozenset({"play"}))
    found = decoder.follow(CallGrammar([tool], parallel=parallel).walk(), 400)
    assert found.whole
    return json.loads(found.text)


def test_a_model_that_closes_one_brace_too_few_before_another_call_still_makes_both_calls() -> None:
    def wishes(text: str) -> Wishes:
        if text.endswith('"minutes":'):
            return {"20": 0.9} if text.count("minutes") == 1 else {"15": 0.9}
        if text.endswith("20"):
            return {'},{"': 0.5, "}}": 0.1, "}": 0.03}
        if text.endswith("20}"):
            return {'},{"': 0.9}
        # Behind both braces it would end, and it does so behind the second call.
        return {"}}": 0.9} if text.endswith("15") else {"]": 0.9, ",": 0.05}

    calls = decoded(offer(minutes={"type": "integer"}), wishes)
    assert [call["args"]["minutes"] for call in calls] == [20, 15]


def test_an_array_is_not_empty_because_its_bracket_shares_a_token_with_the_first_item() -> None:
    def wishes(text: str) -> Wishes:
        if text.endswith('"tags'):
            return {'":["': 0.9}
        # Given the bracket alone, the model has nothing that it is used to, and would rather close it.
        if text.endswith("["):
            return {"]": 0.4, '"': 0.1}
        return {"a": 0.9} if text.endswith('["') else {'"': 0.5, "]": 0.4, "}}": 0.3}

    call = decoded(offer(tags={"type": "array", "items": {"enum": ["a", "b"]}}), wishes, parallel=False)
    assert call["args"] == {"tags": ["a"]}


def test_what_words_begin_with_in_common_does_not_part_them_from_their_tokens() -> None:
    def wishes(text: str) -> Wishes:
        if text.endswith('"diet":"'):
            return {"Ve": 0.9}
        if text.endswith("Ve"):
            return {"getarian": 0.9}
        return {"a": 0.8, "e": 0.1} if text.endswith("Veg") else {"}": 0.9}

    call = decoded(offer(diet={"enum": ["Vegan", "Vegetarian"]}), wishes, parallel=False)
    assert call["args"] == {"diet": "Vegetarian"}


def test_a_control_token_counts_for_no_text() -> None:
    def wishes(text: str) -> Wishes:
        return {"a": 0.1} if text.endswith('"name":"') else {'"': 0.5}

    runtime = WishfulRuntime(wishes)
    assert list(runtime.vocabulary.prefixes(END)) == []
    assert [runtime.vocabulary.tokens[each] for each in runtime.vocabulary.prefixes(256 + 2)] == [b"},", b"}"]


def test_text_that_is_not_ascii_is_held_back_and_written_once() -> None:
    def wishes(text: str) -> Wishes:
        return {'"': 0.5, "a": 0.4} if text.endswith('"größe":"') else {"]": 0.6, ",": 0.3, "}": 0.2}

    tool = offer(größe={"enum": ["ä", "äé"]}, süß={"type": "array", "items": {"enum": ["ä"]}})
    [call] = decoded(tool, wishes)
    assert call["args"]["größe"] in ("ä", "äé")
    assert set(call["args"]["süß"]) <= {"ä"}

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trysquare.grammar.engines.kept import Kept


def test_what_is_kept_is_compiled_once():
    compiled: list[str] = []
    kept = Kept[int](lambda text: compiled.append(text) or len(text))
    assert [kept.of("ab"), kept.of("ab"), kept.of("c")] == [2, 2, 1]
    assert compiled == ["ab", "c"]


def test_what_was_not_used_for_longest_goes_first():
    compiled: list[str] = []
    kept = Kept[int](lambda text: compiled.append(text) or len(text), most_grammars=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        kept.of(text)
    assert compiled == ["a", "b", "c", "b"]


@given(st.lists(st.text(alphabet="ab", max_size=6), max_size=30))
def test_no_more_is_kept_than_allowed_except_for_one(texts: list[str]):
    kept = Kept[str](lambda text: text, most_grammars=3, most_characters=8)
    recent: list[str] = []
    for text in texts:
        assert kept.of(text) == text
        recent = [each for each in recent if each != text] + [text]
        while len(recent) > 3 or (sum(map(len, recent)) > 8 and len(recent) > 1):
            recent.pop(0)
        assert len(kept) == len(recent)

"""LruCache: bounded by count and size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.cache import LruCache


def test_what_is_cache_is_compiled_once():
    compiled: list[str] = []
    cache = LruCache[str, int](lambda text: compiled.append(text) or len(text), size_of=len)
    assert [cache.of("ab"), cache.of("ab"), cache.of("c")] == [2, 2, 1]
    assert compiled == ["ab", "c"]


def test_what_was_not_used_for_longest_goes_first():
    compiled: list[str] = []
    cache = LruCache[str, int](lambda text: compiled.append(text) or len(text), entries=2, size_of=len)
    for text in ("a", "b", "a", "c", "a", "b"):
        cache.of(text)
    assert compiled == ["a", "b", "c", "b"]


@given(st.lists(st.text(alphabet="ab", max_size=6), max_size=30))
def test_no_more_is_cache_than_allowed_except_for_one(texts: list[str]):
    cache = LruCache[str, str](lambda text: text, entries=3, size=8, size_of=len)
    recent: list[str] = []
    for text in texts:
        assert cache.of(text) == text
        recent = [each for each in recent if each != text] + [text]
        while len(recent) > 3 or (sum(map(len, recent)) > 8 and len(recent) > 1):
            recent.pop(0)
        assert len(cache) == len(recent)

"""Certifying: it counts, it says who refused, and it notices a grammar that is wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.grammar.engines_at_hand import byte_engine
from trysquare.grammar import CallableTool, read_schema
from trysquare.grammar import certify as certifying
from trysquare.grammar.certify import Sample, certify

GOOD = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["n"],
        "additionalProperties": False}  # fmt: skip


def tool(name: str, schema: dict[str, Any]) -> CallableTool:
    return cast(CallableTool, SimpleNamespace(name=name, schema=schema))


def test_a_sound_grammar_holds_and_a_refused_schema_is_reported() -> None:
    certificate = certify([tool("good", GOOD), tool("odd", {"not": {}})], byte_engine(), samples=20)
    assert (certificate.tools, certificate.samples, certificate.holds) == (2, 20, True)
    assert list(certificate.refused) == ["odd"]


def test_the_same_seed_samples_the_same_texts() -> None:
    texts = [certify([tool("good", GOOD)], byte_engine(), samples=9, seed=5).tokens for _ in range(2)]
    assert texts[0] == texts[1]


def test_a_reading_that_drops_a_bound_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    unbounded = {**GOOD, "properties": {"n": {"type": "integer"}}}
    monkeypatch.setattr(certifying, "read_schema", lambda schema: read_schema(unbounded))
    certificate = certify([tool("bad", GOOD)], byte_engine(), samples=20)
    assert not certificate.holds
    assert certificate.invalid > 0
    assert "than the m" in certificate.disagreements[0].why


def test_a_text_that_llama_cpp_writes_is_checked_as_well() -> None:
    def write(gbnf: str, *, seed: int, most_tokens: int) -> Sample:
        assert gbnf.startswith("root ::= ")
        return Sample(text='{"n":100}', tokens=9, cut=False)

    certificate = certify([tool("good", GOOD)], byte_engine(), samples=10, llama_cpp=write)
    assert certificate.by_llama_cpp == 1
    assert {found.refused_by for found in certificate.disagreements} == {"jsonschema", "GBNF", "llguidance"}

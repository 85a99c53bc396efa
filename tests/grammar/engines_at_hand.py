"""Engines at hand: llguidance with one token a byte, and llama.cpp with random weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.models.tiny_gguf import write_tiny_gguf
from tests.support import missing_component
from trysquare.grammar import gbnf_text, grammar_of, read_gbnf, shape_rules
from trysquare.grammar.certify import TextMatcher, accepts
from trysquare.grammar.dialects.lark import lark_text, own_grammar
from trysquare.grammar.engine import GrammarEngine, llguidance_engine
from trysquare.grammar.schema.shapes import ShapeTree
from trysquare.models.local.runtime import Runtime


@cache
def byte_engine() -> GrammarEngine:
    """llguidance for a vocabulary of bytes."""
    from llguidance import LLTokenizer

    return llguidance_engine(LLTokenizer("byte"))


def random_llama_cpp(folder: Path) -> Runtime:
    """llama.cpp with weights that mean nothing."""
    if not (find_spec("gguf") and find_spec("xllamacpp")):
        missing_component("gguf and xllamacpp", "pip install gguf xllamacpp")
    return Runtime(write_tiny_gguf(folder / "tiny.gguf"), context_tokens=2_048, threads=1)


def everyone(tree: ShapeTree) -> list[Callable[[str], bool]]:
    """Whether a text fits, by our GBNF, by our own Lark rules, and by what llguidance makes of the schema."""
    matcher = TextMatcher(read_gbnf(gbnf_text(grammar_of(tree))))
    own = "%llguidance {}\n" + lark_text(own_grammar(tree, root="start"))
    plain = "%llguidance {}\n" + shape_rules(tree.root, tree.named, root="start")
    engine = byte_engine()
    return [matcher.accepts, lambda text: accepts(engine, own, text), lambda text: accepts(engine, plain, text)]

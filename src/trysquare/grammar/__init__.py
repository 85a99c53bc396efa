"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.grammar.calls.grammar import CallableTool, CallGrammar, openai_format, strict_schema
    from trysquare.grammar.calls.matcher import CallMatcher
    from trysquare.grammar.calls.walk import CallWalk
    from trysquare.grammar.dialects.bounds import bounded
    from trysquare.grammar.dialects.gbnf import gbnf_text, schema_to_gbnf
    from trysquare.grammar.dialects.gbnf_parser import check_grammar, fatal_errors, read_gbnf
    from trysquare.grammar.dialects.lark import schema_to_lark, shape_rules
    from trysquare.grammar.dialects.rules import grammar_of
    from trysquare.grammar.narrowing import Facts, narrowed_tools
    from trysquare.grammar.schema.reader import Unsupported, read_schema
    from trysquare.grammar.schema.writer import schema_of

__all__ = [
    "CallGrammar", "CallMatcher", "CallWalk", "CallableTool", "Facts", "Unsupported", "bounded", "check_grammar",
    "fatal_errors", "gbnf_text", "grammar_of", "narrowed_tools", "openai_format", "read_gbnf", "read_schema",
    "schema_of", "schema_to_gbnf", "schema_to_lark", "shape_rules", "strict_schema",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "calls.grammar": "CallGrammar CallableTool openai_format strict_schema",
        "calls.matcher": "CallMatcher",
        "calls.walk": "CallWalk",
        "dialects.bounds": "bounded",
        "dialects.gbnf": "gbnf_text schema_to_gbnf",
        "dialects.gbnf_parser": "check_grammar fatal_errors read_gbnf",
        "dialects.lark": "schema_to_lark shape_rules",
        "dialects.rules": "grammar_of",
        "narrowing": "Facts narrowed_tools",
        "schema.reader": "Unsupported read_schema",
        "schema.writer": "schema_of",
    },
)

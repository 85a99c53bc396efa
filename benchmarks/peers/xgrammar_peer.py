"""Run in xgrammar's own environment: reads a vocabulary and a schema, prints the CPU until the first mask."""

from __future__ import annotations

import json
import sys
import time

import xgrammar  # pyright: ignore[reportMissingImports]


def main() -> None:
    """Compile in one thread and without a cache, as it is for a set of tools that is new."""
    work = json.load(sys.stdin)
    words = [bytes.fromhex(word) for word in work["vocabulary"]]
    known = xgrammar.TokenizerInfo(words, xgrammar.VocabType.RAW, stop_token_ids=[work["end"]])
    mask = xgrammar.allocate_token_bitmask(1, known.vocab_size)
    start = time.process_time_ns()
    compiler = xgrammar.GrammarCompiler(known, max_threads=1, cache_enabled=False)
    compiled = compiler.compile_json_schema(work["schema"], any_whitespace=False)
    xgrammar.GrammarMatcher(compiled).fill_next_token_bitmask(mask)
    print((time.process_time_ns() - start) / 1e6)


if __name__ == "__main__":
    main()

"""The section `grammar`: until a model can be held to calls of many tools, and what a mask costs, beside the engines.

All times are CPU of one thread, without what a tokenizer costs, which is the same for all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.grammar_tools import BenchTool, bench_tools, compact, tokenizer_json
from benchmarks.tables import Table, Target

if TYPE_CHECKING:
    from llguidance import LLTokenizer

SIZES = (1, 75, 1000)
OURS, UNION, XGRAMMAR = "Trysquare", "llguidance, one union", "xgrammar, one union"
ONE_TOOL = "llguidance, one tool"
TRACED = 20
"""How many tools' calls are followed token by token."""
QUICK_VOCABULARY = 2_000
NEEDED = ("llguidance", "numpy", "tokenizers")


@dataclass(slots=True)
class GrammarResults:
    """The best of all rounds for the set-up, and every mask's time for the masks."""

    ready: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    """Milliseconds until the first mask, by who made it and for how many tools."""
    arguments: dict[int, float] = field(default_factory=dict[int, float])
    """Milliseconds that we then need once a tool is chosen."""
    masks: dict[tuple[str, int], list[float]] = field(default_factory=dict[tuple[str, int], list[float]])
    """Microseconds of each mask."""

    def add_ready(self, who: str, tools: int, milliseconds: float) -> None:
        """Keep the better of what is known and what was found."""
        self.ready[who, tools] = min(self.ready.get((who, tools), milliseconds), milliseconds)

    def whole(self, tools: int) -> float:
        """What we need in all: for the names, and for the arguments of the tool that is chosen."""
        return self.ready[OURS, tools] + self.arguments[tools]


def measure_grammar(results: GrammarResults, *, quick: bool = False) -> None:
    """One round of everything."""
    missing = [package for package in NEEDED if not find_spec(package)]
    if missing:
        print(f"the section `grammar` is left out: {', '.join(missing)} missing", file=sys.stderr)
        return
    tokenizer = _tokenizer(QUICK_VOCABULARY) if quick else _tokenizer()
    for count in (1, 20) if quick else SIZES:
        tools = bench_tools(count)
        _measure_ours(results, tokenizer, tools)
        _measure_union(results, tokenizer, tools)
    if not quick:
        _measure_xgrammar(results)


@cache
def _tokenizer(*size: int) -> LLTokenizer:
    from llguidance import LLTokenizer

    return LLTokenizer(tokenizer_json(*size), eos_token=0)


def _milliseconds(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.thread_time_ns()
    done = work()
    return done, (time.thread_time_ns() - start) / 1e6


def _measure_ours(results: GrammarResults, tokenizer: LLTokenizer, tools: Sequence[BenchTool]) -> None:
    from trysquare.grammar import CallMatcher
    from trysquare.grammar.calls.call_set import BEFORE_NAME, CallSet
    from trysquare.grammar.engine import llguidance_engine
    from trysquare.grammar.filters import full_mask

    engine, mask = llguidance_engine(tokenizer), full_mask(tokenizer.vocab_size)

    def start() -> CallMatcher:
        matcher = CallMatcher(CallSet(tools={tool.name: tool.schema for tool in tools}), engine)
        matcher.fill(mask)
        return matcher

    matcher, first = _milliseconds(start)
    results.add_ready(OURS, len(tools), first)
    chosen = tools[len(tools) // 2]

    def choose() -> None:
        for token in tokenizer.tokenize_str(BEFORE_NAME + chosen.name + '"'):
            matcher.take(token)
        matcher.fill(mask)

    _, arguments = _milliseconds(choose)
    results.arguments[len(tools)] = min(results.arguments.get(len(tools), arguments), arguments)
    for tool in _traced(tools):
        followed = CallMatcher(CallSet(tools={each.name: each.schema for each in tools}), engine)
        tokens = tokenizer.tokenize_str(tool.call())
        _follow(results, (OURS, len(tools)), tokens, lambda f=followed: f.fill(mask), followed.take)


def _measure_union(results: GrammarResults, tokenizer: LLTokenizer, tools: Sequence[BenchTool]) -> None:
    from llguidance import LLMatcher
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    mask = allocate_token_bitmask(1, tokenizer.vocab_size)

    def start(offered: Sequence[BenchTool]) -> LLMatcher:
        schema = {"anyOf": [tool.call_schema() for tool in offered]} if len(offered) > 1 else offered[0].call_schema()
        grammar = LLMatcher.grammar_from_json_schema(schema, overrides={"whitespace_flexible": False})
        matcher = LLMatcher(tokenizer, grammar)
        fill_next_token_bitmask(matcher, mask, 0)
        return matcher

    _, first = _milliseconds(lambda: start(tools))
    results.add_ready(UNION, len(tools), first)
    for tool in _traced(tools):
        matcher = start([tool])
        tokens = tokenizer.tokenize_str(tool.call())
        fill = lambda m=matcher: fill_next_token_bitmask(m, mask, 0)  # noqa: E731
        _follow(results, (ONE_TOOL, len(tools)), tokens, fill, matcher.consume_token)


def _traced(tools: Sequence[BenchTool]) -> Sequence[BenchTool]:
    return tools[:: max(1, len(tools) // TRACED)][:TRACED]


def _follow(
    results: GrammarResults,
    key: tuple[str, int],
    tokens: Sequence[int],
    fill: Callable[[], object],
    take: Callable[[int], object],
) -> None:
    """The mask before each token of a call, which has to allow it."""
    times = results.masks.setdefault(key, [])
    for token in tokens:
        start = time.thread_time_ns()
        fill()
        times.append((time.thread_time_ns() - start) / 1e3)
        if take(token) is False:
            raise RuntimeError(f"{key[0]} refuses a call that is valid")


def _measure_xgrammar(results: GrammarResults) -> None:
    from benchmarks.peers.xgrammar_environment import xgrammar_milliseconds

    tokenizer = _tokenizer()
    words = [tokenizer.decode_bytes([token]).hex() for token in range(tokenizer.vocab_size)]
    # In the first round only: with many tools it takes more than ten seconds, so a little more or less says nothing.
    for count in SIZES if not results.ready.get((XGRAMMAR, max(SIZES))) else ():
        schemas = [tool.call_schema() for tool in bench_tools(count)]
        schema = {"anyOf": schemas} if count > 1 else schemas[0]
        found = xgrammar_milliseconds({"vocabulary": words, "end": 0, "schema": compact(schema)})
        if found is not None:
            results.add_ready(XGRAMMAR, count, found)


def grammar_tables(results: GrammarResults) -> Iterator[Table]:
    """The figures of this section."""
    if results.ready:
        yield _ready_table(results)
    if results.masks:
        yield _mask_table(results)


def _sizes(results: GrammarResults) -> list[int]:
    return sorted({tools for _, tools in results.ready})


def _ready_table(results: GrammarResults) -> Table:
    sizes = _sizes(results)
    rows = [
        ["Trysquare: the names", *(f"{results.ready[OURS, tools]:.2f} ms" for tools in sizes)],
        ["Trysquare: and the chosen tool's arguments", *(f"{results.whole(tools):.2f} ms" for tools in sizes)],
    ]
    for who in (UNION, XGRAMMAR):
        found = [results.ready.get((who, tools)) for tools in sizes]
        shown = [f"{each:.1f} ms" if each else "-" for each in found]
        if any(found):
            rows.append([who, *shown])
    title = "Grammars: until the first mask for calls of so many tools, CPU"
    return Table(title=title, head=["engine", *(f"{tools} tools" for tools in sizes)], rows=rows)


def _mask_table(results: GrammarResults) -> Table:
    rows: list[list[str]] = []
    for (who, tools), times in results.masks.items():
        offered = f"{tools} offered" if who == OURS else "1 offered"
        last = sorted(times)[int(len(times) * 0.99)]
        rows.append([who, offered, f"{median(times):.1f} us", f"{last:.1f} us", str(len(times))])
    head = ["engine", "tools", "median", "99 of 100", "masks"]
    return Table(title="Grammars: a mask while a call is written, CPU", head=head, rows=rows)


def grammar_targets(results: GrammarResults) -> Iterator[Target]:
    """What we promise of this section."""
    most = max(SIZES)
    for who, limit in ((UNION, 20), (XGRAMMAR, 100)):
        theirs = results.ready.get((who, most))
        if theirs and (OURS, most) in results.ready:
            promise = f"{who}: time until ready with {most} tools, to ours with the chosen tool's arguments"
            yield Target(promise=promise, found=theirs / results.whole(most), limit=limit, at_least=True)
    for (who, tools), times in results.masks.items():
        raw = results.masks.get((ONE_TOOL, tools))
        if who == OURS and raw:
            promise = f"median of a mask with {tools} tools, to raw llguidance on one tool"
            yield Target(promise=promise, found=median(times) / median(raw), limit=1.5)

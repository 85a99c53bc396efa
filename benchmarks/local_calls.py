"""The section `local`: seconds a tool call on a local model, with and without fast-forward, beside llama.cpp's own.

`python -m benchmarks.local_calls [MODEL] [--requests N] [--threads N]` measures one model by itself.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

import anyio
import anyio.to_thread
import jsonschema

from benchmarks.local_workload import OFFERS, REQUESTS, dialogue
from benchmarks.tables import Table, Target
from trysquare.core.errors import ToolError
from trysquare.core.json import JsonObject
from trysquare.grammar import CallGrammar
from trysquare.models import CallRequest, Model, ModelOptions, ModelRequest, open_model
from trysquare.models.local.install import weights_file
from trysquare.models.local.runtime import reading_threads, writing_threads
from trysquare.models.openai import read_answer

DEFAULT_MODEL = "smollm2-135m"
FAST = "pieces, fast-forward"
PLAIN = "pieces, token by token"
WHOLE = "whole grammar inside llama.cpp, token by token"
NATIVE = "llama.cpp's own tool calling"
MOST_TOKENS = 400
CONTEXT = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One request in one way."""

    seconds: float
    cpu: float
    """Seconds of processor time: what a busy machine does not change."""
    tokens: int
    forced: int
    call: CallRequest | None


class _Clock:
    """Time since it was made, on the wall and in this process."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._cpu


@dataclass(slots=True)
class LocalResults:
    """What came of every request, by the way in which it was asked."""

    model: str = ""
    threads: int | None = None
    asked: dict[str, list[Asked]] = field(default_factory=dict[str, list[Asked]])
    wanted: list[str] = field(default_factory=list[str])


def measure_local(
    results: LocalResults, model: str = DEFAULT_MODEL, *, requests: int = 20, threads: int | None = None
) -> None:
    """Ask every request in every way, one way after another for each, so that a busy moment meets them all."""
    if results.asked:
        return
    try:
        anyio.run(_measure, results, model, requests, threads)
    except ToolError as error:
        print(f"local is left out: {error.message} {error.instruction or ''}", file=sys.stderr)


async def _measure(results: LocalResults, name: str, requests: int, threads: int | None) -> None:
    fast = ModelOptions(threads=threads, context_tokens=CONTEXT)
    others = {PLAIN: replace(fast, fast_forward=False), WHOLE: replace(fast, hold="grammar")}
    asked = REQUESTS[:requests]
    async with AsyncExitStack() as stack:
        ways = {
            way: await stack.enter_async_context(open_model(f"local:{name}", options))
            for way, options in {FAST: fast, **others}.items()
        }
        results.model, results.threads = name, threads
        results.wanted = [wanted for _, wanted in asked]
        for text, _ in asked:
            await ways[FAST].answer(_request(text, held=False))
            print(f"local: {text}", file=sys.stderr)
            for way, model in ways.items():
                results.asked.setdefault(way, []).append(await _ours(model, text))
    results.asked[NATIVE] = await anyio.to_thread.run_sync(_native, name, threads, [text for text, _ in asked])


def _request(text: str, *, held: bool) -> ModelRequest:
    """A request; one that is not held only lets the model read the prompt, so that writing alone is measured."""
    return ModelRequest(
        messages=dialogue(text, told=True),
        tools=OFFERS,
        constraint=CallGrammar(OFFERS) if held else None,
        must_call=True,
        max_tokens=MOST_TOKENS if held else 1,
    )


async def _ours(model: Model, text: str) -> Asked:
    request = _request(text, held=True)
    clock = _Clock()
    answer = await model.answer(request)
    seconds, cpu = clock.read()
    used = answer.usage
    call = answer.calls[0] if answer.calls else None
    return Asked(seconds=seconds, cpu=cpu, tokens=used.completion_tokens, forced=used.forced_tokens, call=call)


def _native(name: str, threads: int | None, texts: Sequence[str]) -> list[Asked]:
    """llama.cpp's own tool calling on the same weights: its server with `tools` and its own templates."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_file(name))
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity, parameters.use_jinja = CONTEXT, 1, -1, True
    parameters.cpuparams.n_threads = threads or writing_threads()
    parameters.cpuparams_batch.n_threads = threads or reading_threads()
    server: Any = xllamacpp.Server(parameters)
    return [_asked_natively(server, text) for text in texts]


def _asked_natively(server: Any, text: str) -> Asked:
    messages = [{"role": message.role, "content": message.text} for message in dialogue(text, told=False)]
    tools = [
        {"type": "function", "function": {"name": o.name, "description": o.description, "parameters": o.schema}}
        for o in OFFERS
    ]
    body = {"messages": messages, "tools": tools, "tool_choice": "required", "temperature": 0, "cache_prompt": True}
    server.handle_chat_completions({**body, "max_tokens": 1})
    clock = _Clock()
    found: JsonObject = server.handle_chat_completions({**body, "max_tokens": MOST_TOKENS})
    seconds, cpu = clock.read()
    answer = read_answer(found, _request(text, held=False), ModelOptions(), "native")
    call = answer.calls[0] if answer.calls else None
    return Asked(seconds=seconds, cpu=cpu, tokens=answer.usage.completion_tokens, forced=0, call=call)


def _file(name: str) -> Path:
    return Path(name) if name.endswith(".gguf") else weights_file(name)


def local_tables(results: LocalResults) -> Iterator[Table]:
    """The ways side by side."""
    if not results.asked:
        return
    head = [
        "way",
        "seconds a call",
        "CPU seconds",
        "tokens a call",
        "sampled",
        "calls that fit their schema",
        "right tool",
        "same call as the first",
    ]
    rows = [_row(results, way) for way in results.asked]
    runtime = f"xllamacpp {version('xllamacpp')}"
    title = f"Tool calls on {results.model}, {len(OFFERS)} tools, {runtime}, {_told(results.threads)}"
    yield Table(title=title, head=head, rows=rows)


def _told(threads: int | None) -> str:
    writing, reading = threads or writing_threads(), threads or reading_threads()
    return f"threads: {writing} for a token, {reading} for a batch"


def _row(results: LocalResults, way: str) -> list[str]:
    asked, count = results.asked[way], len(results.wanted)
    named = [each.call.name if each.call else None for each in asked]
    same = [_same(one, other) for one, other in zip(asked, results.asked[FAST], strict=True)]
    return [
        way,
        f"{mean(each.seconds for each in asked):.2f}",
        f"{mean(each.cpu for each in asked):.2f}",
        f"{mean(each.tokens for each in asked):.1f}",
        f"{mean(each.tokens - each.forced for each in asked):.1f}",
        f"{sum(map(_fits, asked))} of {count}",
        f"{sum(name == wanted for name, wanted in zip(named, results.wanted, strict=True))} of {count}",
        f"{sum(same)} of {count}",
    ]


def _same(one: Asked, other: Asked) -> bool:
    if one.call is None or other.call is None:
        return one.call is other.call
    return (one.call.name, one.call.arguments) == (other.call.name, other.call.arguments)


def _fits(asked: Asked) -> bool:
    schemas = {offer.name: offer.schema for offer in OFFERS}
    if asked.call is None or asked.call.name not in schemas:
        return False
    return jsonschema.Draft202012Validator(schemas[asked.call.name]).is_valid(asked.call.arguments)


def local_targets(results: LocalResults) -> Iterator[Target]:
    """Fast-forward is worth it, and we are not slower than the runtime's own way."""
    if not results.asked:
        return
    seconds = {way: mean(each.seconds for each in asked) for way, asked in results.asked.items()}
    for way, limit in ((PLAIN, 1.8), (WHOLE, 1.8), (NATIVE, 1.0)):
        promise = f"seconds a call on {results.model}, {way}, to fast-forward"
        yield Target(promise=promise, found=seconds[way] / seconds[FAST], limit=limit, at_least=True)


def main() -> int:
    """Measure one model and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_calls", description=__doc__)
    parser.add_argument("model", nargs="?", default=DEFAULT_MODEL, help="an installed model or a GGUF file")
    parser.add_argument("--requests", type=int, default=len(REQUESTS), help="how many requests (default: all)")
    parser.add_argument("--threads", type=int, help="threads of the model (default: as the product)")
    arguments = parser.parse_args()
    results = LocalResults()
    measure_local(results, arguments.model, requests=arguments.requests, threads=arguments.threads)
    for table in local_tables(results):
        print(table.title)
        for row in [table.head, *table.rows]:
            print("  " + " | ".join(row))
    for target in local_targets(results):
        print("  ".join(target.row()))
    return 0 if results.asked else 1


if __name__ == "__main__":
    sys.exit(main())

"""`trysquare grammar`: print, check and certify the grammar of a model's tool calls."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trysquare import grammar as grammars
from trysquare.agents.toolbox import offer_of
from trysquare.app import App, open_app
from trysquare.cli.command import Command, option
from trysquare.cli.options import add_shared_options, load_and_log, tool_names
from trysquare.cli.terminal import count, print_json, styled
from trysquare.core.errors import ConfigurationError, ErrorCode, NotFound, ToolError
from trysquare.core.text import closest_names
from trysquare.grammar.certify import Certificate, GbnfWriter, Sample, TextMatcher, certify

FORMATS = ("gbnf", "lark", "json-schema", "openai")
MOST_SHOWN = 5
_OPTIONS = (
    option("--format", choices=FORMATS, default="gbnf", help="the dialect (default: gbnf)"),
    option("--tool", action="append", metavar="NAME", help="only this tool; can be repeated", complete=tool_names),
    option("--parallel", action="store_true", help="allow an array of calls as the answer"),
    option("--tokens", type=int, metavar="N", help="maximum number of tokens of an answer (gbnf and lark)"),
    option("--schema", type=Path, metavar="FILE", help="use a JSON schema instead of the tools"),
    option("--check", type=Path, metavar="FILE", help="check a GBNF file"),
    option("--text", action="append", metavar="TEXT", help="with --check: match this text"),
    option("--certify", action="store_true", help="sample from random weights and validate every text"),
    option("--samples", type=int, default=1_000, metavar="N", help="number of samples (default: 1000)"),
    option("--seed", type=int, default=0, metavar="S", help="seed of the random weights (default: 0)"),
    option("--weights", type=Path, metavar="GGUF", help="with --certify: sample with llama.cpp as well"),
    add_shared_options,
)


async def grammar(arguments: argparse.Namespace) -> int | None:
    """Print the grammar, or check or certify one."""
    if arguments.check is not None:
        return _check_file(arguments.check, arguments.text or [])
    if arguments.schema is not None:
        return _print_schema(arguments.schema, arguments.format)
    loaded = load_and_log(arguments)
    async with open_app(loaded.settings, origins=loaded.origins, prestart=False, lifespans=False) as app:
        await app.wait_ready()
        tools = _chosen(app, arguments.tool)
    if arguments.certify:
        return _certify(tools, samples=arguments.samples, seed=arguments.seed, weights=arguments.weights)
    return _print_calls(grammars.CallGrammar(tools, parallel=arguments.parallel), arguments.format, arguments.tokens)


def _chosen(app: App, names: Sequence[str] | None) -> list[grammars.CallableTool]:
    tools = {tool.name: tool for tool in app.plain.tools()}
    if not tools:
        raise ConfigurationError("no tools to use.", where="grammar", hint="Name some with --tools.")
    unknown = next((name for name in names or () if name not in tools), None)
    if unknown is not None:
        near = closest_names(unknown, tools)
        raise NotFound(
            f"unknown tool `{unknown}`.",
            instruction=f"Did you mean `{near[0]}`?" if near else "See `trysquare list --all`.",
        )
    return [offer_of(tools[name]) for name in names or tools]


def _print_calls(grammar: grammars.CallGrammar, dialect: str, tokens: int | None) -> None:
    _refuse_together(grammar)
    _print_as(
        dialect,
        gbnf=lambda: grammar.gbnf(tokens=tokens),
        lark=lambda: grammar.lark(tokens=tokens),
        openai=lambda: grammars.openai_format(grammar),
        schema=grammar.json_schema,
    )


def _print_as(dialect: str, **writers: Callable[[], Any]) -> None:
    written = writers.get(dialect, writers["schema"])()
    print(written, end="") if isinstance(written, str) else print_json(written)


def _refuse_together(grammar: grammars.CallGrammar) -> None:
    """Report every tool that cannot be expressed, in one error."""
    refusals: list[str] = []
    for name in grammar.calls.tools:
        try:
            grammar.calls.tree(name)
        except grammars.Unsupported as refusal:
            refusals.append(refusal.message)
    if refusals:
        raise ToolError(
            "\n".join(refusals),
            code=ErrorCode.GRAMMAR_UNSUPPORTED,
            instruction="Name the tools that you want with --tool, or change these schemas.",
        )


def _print_schema(file: Path, dialect: str) -> None:
    try:
        schema = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot be read as a JSON schema: {error}", where=str(file)) from error
    _print_as(
        dialect,
        gbnf=lambda: grammars.schema_to_gbnf(schema),
        lark=lambda: grammars.schema_to_lark(schema),
        openai=lambda: grammars.strict_schema(grammars.read_schema(schema)),
        schema=lambda: grammars.schema_of(grammars.read_schema(schema)),
    )


def _check_file(file: Path, texts: Sequence[str]) -> int:
    """Report errors of a GBNF file, or which texts match it; 1 if there are errors or mismatches."""
    try:
        written = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot be read: {error}", where=str(file)) from error
    grammar = grammars.read_gbnf(written, source=str(file))
    findings = grammars.check_grammar(grammar)
    for finding in findings:
        print(f"{styled('error', 'red') if finding.fatal else styled('warning', 'yellow')}: {finding.text}")
    if any(finding.fatal for finding in findings):
        return 1
    print(f"{file}: {count(len(grammar.rules), 'rule')}, {'usable, with warnings' if findings else 'OK'}")
    matcher = TextMatcher(grammar)
    return max([_match(matcher, text) for text in texts], default=0)


def _match(matcher: TextMatcher, text: str) -> int:
    if matcher.accepts(text):
        print(f"matches: {text}")
        return 0
    stop = matcher.stops_at(text)
    print(f"does not match: {text}")
    print("  it is not complete" if stop is None else f"{'':>{stop + 16}}^")
    return 1


def _certify(tools: Sequence[grammars.CallableTool], *, samples: int, seed: int, weights: Path | None) -> int:
    """Sample, validate and print the counts; 1 if a text was invalid, rejected by an engine, or cut."""
    if samples < 1:
        raise ConfigurationError(f"expected 1 or more samples; got {samples}.", where="--samples")
    if not all(map(find_spec, ("jsonschema", "llguidance", "numpy"))):
        raise ConfigurationError(
            "Sampling needs jsonschema, llguidance and NumPy.",
            where="--certify",
            hint="Run: pip install 'trysquare[local]'",
        )
    from llguidance import LLTokenizer

    from trysquare.grammar.engine import llguidance_engine

    engine = llguidance_engine(LLTokenizer("byte"))
    with nullcontext() if weights is None else _llama_cpp(weights) as writer:
        certificate = certify(tools, engine, samples=samples, seed=seed, llama_cpp=writer)
    _print_certificate(certificate)
    return 0 if certificate.holds else 1


@contextmanager
def _llama_cpp(weights: Path) -> Generator[GbnfWriter]:
    from trysquare.models.local.runtime import Runtime

    if not weights.is_file():
        raise ConfigurationError("file not found.", where=str(weights), hint="Name a GGUF file.")
    with closing(Runtime(weights, context_tokens=2_048, threads=None)) as runtime:

        def write(gbnf: str, *, seed: int, most_tokens: int) -> Sample:
            body: dict[str, Any] = {"prompt": "{", "grammar": gbnf, "seed": seed, "n_predict": most_tokens}
            # Everything that makes a good answer likelier is switched off: what the grammar allows is to be seen.
            found = runtime.complete({**body, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0})
            choice, tokens = found["choices"][0], found["usage"]["completion_tokens"]
            return Sample(text=choice["text"], tokens=tokens, cut=choice["finish_reason"] == "length")

        yield write


def _print_certificate(certificate: Certificate) -> None:
    certified = certificate.tools - len(certificate.refused)
    print(f"{count(certified, 'tool')} certified, {len(certificate.refused)} refused")
    for name, why in certificate.refused.items():
        print(f"  {name}: {why}")
    print(f"{count(certificate.samples, 'text')} sampled from random weights, {count(certificate.tokens, 'token')}")
    print(f"  {certificate.by_llama_cpp} of them by llama.cpp under our GBNF")
    print(f"  {certificate.invalid} invalid for jsonschema")
    print(f"  {len(certificate.disagreements) - certificate.invalid} on which the engines disagree")
    print(f"  {certificate.cut} cut in a bounded grammar, {certificate.unfinished} left unfinished in a free one")
    for found in certificate.disagreements[:MOST_SHOWN]:
        print(f"{styled(found.refused_by, 'red')} refuses a text of `{found.tool}`: {found.why}\n  {found.text}")
    print(styled("holds", "green") if certificate.holds else styled("does not hold", "red"))


COMMAND = Command(
    grammar,
    _OPTIONS,
    examples=(
        "trysquare grammar --tools my_module:tools --format lark",
        'trysquare grammar --check calls.gbnf --text \'{"name": "greet"}\'',
        "trysquare grammar --tools my_module:tools --certify --samples 200",
    ),
)

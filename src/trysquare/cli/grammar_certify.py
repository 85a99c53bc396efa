"""`trysquare grammar --certify`: texts of random weights, checked by those who did not write the grammar."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trysquare.cli.output import count, styled
from trysquare.core.errors import ConfigurationError
from trysquare.grammar.call_grammar import CallableTool
from trysquare.grammar.certifying import Certificate, GbnfWriter, certify
from trysquare.grammar.sampling import Sample

if TYPE_CHECKING:
    from trysquare.models.runtime import Runtime

MOST_SHOWN = 5


def certify_tools(tools: Sequence[CallableTool], *, samples: int, seed: int, weights: Path | None) -> int:
    """Sample, check and print the counts; 1 if a text was invalid, refused by one of the engines, or cut."""
    if samples < 1:
        raise ConfigurationError(f"{samples} is no number of samples.", where="--samples", hint="Give 1 or more.")
    if not (find_spec("llguidance") and find_spec("numpy")):
        raise ConfigurationError(
            "Sampling needs llguidance and NumPy.", where="--certify", hint="Run: pip install 'trysquare[local]'"
        )
    from llguidance import LLTokenizer

    from trysquare.grammar.engines.llguidance import llguidance_engine

    engine = llguidance_engine(LLTokenizer("byte"))
    with ExitStack() as stack:
        writer = None if weights is None else stack.enter_context(_llama_cpp(weights))
        certificate = certify(tools, engine, samples=samples, seed=seed, llama_cpp=writer)
    _print(certificate)
    return 0 if certificate.holds else 1


@contextmanager
def _llama_cpp(weights: Path) -> Generator[GbnfWriter]:
    from trysquare.models.runtime import Runtime

    if not weights.is_file():
        raise ConfigurationError("there is no such file.", where=str(weights), hint="Name a GGUF file.")
    with closing(Runtime(weights, context_tokens=2_048, threads=None)) as runtime:
        yield _writer(runtime)


def _writer(runtime: Runtime) -> GbnfWriter:
    def write(gbnf: str, *, seed: int, most_tokens: int) -> Sample:
        body: dict[str, Any] = {"prompt": "{", "grammar": gbnf, "seed": seed, "n_predict": most_tokens}
        # Everything that makes a good answer likelier is switched off: what the grammar allows is to be seen.
        found = runtime.complete({**body, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0})
        choice = found["choices"][0]
        return Sample(
            text=choice["text"],
            tokens=found["usage"]["completion_tokens"],
            cut=choice["finish_reason"] == "length",
        )

    return write


def _print(certificate: Certificate) -> None:
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

"""Certifying: that what a grammar lets a model write fits the schema, by those who did not write the grammar.

Texts are sampled from random weights under llguidance, and under llama.cpp where it is at hand. Each is given to a
validator of JSON Schema, to our own matcher of the printed GBNF, and to llguidance with both forms of the Lark grammar.
All have to say yes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from trysquare.core.errors import ToolError
from trysquare.core.types import JsonObject
from trysquare.grammar.bounding import bounded
from trysquare.grammar.call_grammar import CallableTool
from trysquare.grammar.engines.engine import Engine
from trysquare.grammar.expressions import Expression, Grammar
from trysquare.grammar.gbnf import gbnf_text
from trysquare.grammar.gbnf_reading import read_gbnf
from trysquare.grammar.lark import lark_text, own_grammar, shape_rules
from trysquare.grammar.refusals import Unsupported
from trysquare.grammar.sampling import RandomModel, Sample
from trysquare.grammar.schema_reading import read_schema
from trysquare.grammar.shape_text import grammar_of
from trysquare.grammar.shapes import ShapeTree
from trysquare.grammar.text_matching import TextMatcher

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

HEADER = "%llguidance {}\n"
ROOM = 320
"""Bytes that a bounded text may have; as many tokens are then enough for every one."""
MOST_TOKENS = 600
"""Where no bound is asked for, a text that is longer is left unfinished."""
LLAMA_CPP_SHARE = 10
"""One of so many texts is llama.cpp's, which is slower."""


class GbnfWriter(Protocol):
    """Something that writes a text under a GBNF grammar, such as llama.cpp with some weights."""

    def __call__(self, gbnf: str, *, seed: int, most_tokens: int) -> Sample:
        """A text, and whether it was cut."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Disagreement:
    """A text that somebody refused."""

    tool: str
    text: str
    refused_by: str
    why: str


@dataclass(kw_only=True, slots=True)
class Certificate:
    """What came out, in numbers."""

    tools: int = 0
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Tools whose schemas no grammar can hold, with the reason."""
    samples: int = 0
    tokens: int = 0
    by_llama_cpp: int = 0
    """How many of the samples llama.cpp wrote."""
    unfinished: int = 0
    """Texts without a bound that were given up."""
    cut: int = 0
    """Texts that a bounded grammar did not bring to an end in as many tokens as it had bytes."""
    disagreements: list[Disagreement] = field(default_factory=list[Disagreement])

    @property
    def holds(self) -> bool:
        """Whether every sampled text was whole, and valid for all."""
        return not self.cut and not self.disagreements

    @property
    def invalid(self) -> int:
        """How many texts the validator refused."""
        return sum(found.refused_by == VALIDATOR for found in self.disagreements)


VALIDATOR = "jsonschema"
OUR_GBNF = "GBNF"
OTHER_LARK = "llguidance"


def certify(
    tools: Sequence[CallableTool],
    engine: Engine,
    *,
    samples: int,
    seed: int = 0,
    llama_cpp: GbnfWriter | None = None,
) -> Certificate:
    """Sample so many texts over all tools and have each checked by everyone."""
    import numpy

    model = RandomModel(engine, numpy.random.default_rng(seed))
    certificate = Certificate(tools=len(tools))
    checked = list(_readable(tools, certificate))
    for number, (tool, tree) in enumerate(checked):
        share = samples // len(checked) + (number < samples % len(checked))
        certifying = _Certifying(tool=tool, tree=tree, engine=engine, certificate=certificate)
        certifying.sample(model, share)
        if llama_cpp is not None:
            certifying.sample_llama_cpp(llama_cpp, -(-share // LLAMA_CPP_SHARE), seed)
    return certificate


def _readable(tools: Iterable[CallableTool], certificate: Certificate) -> Iterable[tuple[CallableTool, ShapeTree]]:
    for tool in tools:
        try:
            yield tool, read_schema(tool.schema)
        except Unsupported as refusal:
            certificate.refused[tool.name] = refusal.message


class _Certifying:
    """Samples and checks the texts of one tool's arguments."""

    def __init__(self, *, tool: CallableTool, tree: ShapeTree, engine: Engine, certificate: Certificate) -> None:
        self._tool, self._engine, self._certificate = tool, engine, certificate
        self._grammar = own_grammar(tree, root="start")
        self._own = HEADER + lark_text(self._grammar)
        self._plain = HEADER + shape_rules(tree.root, tree.named, root="start")
        self._gbnf = gbnf_text(grammar_of(tree))
        self._matcher = TextMatcher(read_gbnf(self._gbnf))
        self._validator = validator_of(tool.schema)

    def sample(self, model: RandomModel, count: int) -> None:
        """Sample texts, bounded and free in turn."""
        short = self._bounded()
        bounded_lark = None if short is None else HEADER + lark_text(short)
        for number in range(count):
            if bounded_lark is not None and number % 2:
                self._count(model.write(bounded_lark, most_tokens=ROOM, patient=True), bounded=True)
            else:
                lark = self._own if number % 4 else self._plain
                self._count(model.write(lark, most_tokens=MOST_TOKENS), bounded=False)

    def sample_llama_cpp(self, write: GbnfWriter, count: int, seed: int) -> None:
        """The same with llama.cpp, bounded where that is possible."""
        short = self._bounded()
        gbnf = self._gbnf if short is None else gbnf_text(replace(short, rules=_rooted(short), root="root"))
        for number in range(count):
            self._count(write(gbnf, seed=seed + number, most_tokens=ROOM), bounded=short is not None)
            self._certificate.by_llama_cpp += 1

    def _bounded(self) -> Grammar | None:
        try:
            return bounded(self._grammar, ROOM)
        except ToolError:
            # Not even the shortest text has so few bytes.
            return None

    def _count(self, sample: Sample, *, bounded: bool) -> None:
        self._certificate.samples += 1
        self._certificate.tokens += sample.tokens
        self._certificate.cut += sample.cut and bounded
        self._certificate.unfinished += sample.cut and not bounded
        if not sample.cut:
            self._certificate.disagreements += [
                Disagreement(tool=self._tool.name, text=sample.text, refused_by=who, why=why)
                for who, why in self._refusals(sample.text)
            ]

    def _refusals(self, text: str) -> Iterable[tuple[str, str]]:
        wrong = first_error(self._validator, text)
        if wrong is not None:
            yield VALIDATOR, wrong
        if not self._matcher.accepts(text):
            yield OUR_GBNF, f"it stops at character {self._matcher.stops_at(text)}"
        for lark in (self._plain, self._own):
            if not accepts(self._engine, lark, text):
                yield OTHER_LARK, f"a grammar of {len(lark)} characters refuses it"


def _rooted(grammar: Grammar) -> dict[str, Expression]:
    """The rules with the one where a text starts under the name that GBNF wants."""
    return {"root" if name == grammar.root else name: rule for name, rule in grammar.rules.items()}


def validator_of(schema: JsonObject) -> Validator:
    """An independent validator of a schema, with the formats that it knows."""
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)(schema, format_checker=FormatChecker())


def first_error(validator: Validator, text: str) -> str | None:
    """What is wrong with a text as JSON, or with its value; None where nothing is."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"no JSON: {error}"
    found = next(iter(validator.iter_errors(value)), None)
    return None if found is None else f"{found.json_path}: {found.message}"


def accepts(engine: Engine, lark: str, text: str) -> bool:
    """Whether an engine takes a whole text under a grammar."""
    held = engine.start(lark)
    tokens = engine.tokens_of(text.encode())
    if held.take(tokens) != len(tokens):
        return False
    return held.is_complete() or held.take([next(iter(engine.end_tokens))]) == 1

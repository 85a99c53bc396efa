"""Certification: sampled texts of a grammar, checked by independent validators.

Texts are sampled from random weights under llguidance, and under llama.cpp where available. A JSON Schema validator,
the matcher of the printed GBNF, and llguidance with both forms of the Lark grammar must all accept each of them.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import abc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.grammar.calls.grammar import CallableTool
from trysquare.grammar.dialects.bounds import bounded
from trysquare.grammar.dialects.gbnf import gbnf_text
from trysquare.grammar.dialects.gbnf_parser import fatal_errors, read_gbnf
from trysquare.grammar.dialects.lark import lark_text, own_grammar, shape_rules
from trysquare.grammar.dialects.rules import grammar_of
from trysquare.grammar.engine import ConstrainedText, GrammarEngine
from trysquare.grammar.schema.reader import Unsupported, read_schema
from trysquare.grammar.schema.shapes import ShapeTree
from trysquare.grammar.text import expressions as ex

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from numpy.random import Generator


PATIENCE = 40
"""After this many tokens, closing tokens become likelier with each further one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A sampled text, and whether the token limit cut it."""

    text: str
    tokens: int
    cut: bool


class RandomModel:
    """Chooses among the allowed tokens by random logits."""

    def __init__(self, engine: GrammarEngine, source: Generator) -> None:
        import numpy

        self._engine, self._source = engine, source
        self._mask = numpy.zeros((engine.vocabulary_size + 31) // 32, dtype=numpy.int32)
        closing = (engine.bytes_of([token])[:1] in (b'"', b"]", b"}") for token in range(engine.vocabulary_size))
        self._closing = numpy.fromiter(closing, dtype=numpy.bool_)
        self._closing[list(engine.end_tokens)] = False

    def write(self, lark: str, *, most_tokens: int, patient: bool = False) -> Sample:
        """Sample a text under a grammar; with `patient`, closing tokens never become likelier."""
        text_state = self._engine.start(lark)
        taken: list[int] = []
        while not text_state.is_complete() and len(taken) < most_tokens:
            text_state.fill(self._mask)
            token = self._chosen(0 if patient else max(0, len(taken) - PATIENCE))
            if token in self._engine.end_tokens:
                break
            text_state.take([token])
            taken.append(token)
        text = self._engine.bytes_of(taken).decode(errors="replace")
        return Sample(text=text, tokens=len(taken), cut=not _may_end(self._engine, text_state))

    def _chosen(self, impatience: int) -> int:
        import numpy

        size = self._engine.vocabulary_size
        allowed = numpy.flatnonzero(numpy.unpackbits(self._mask.view(numpy.uint8), count=size, bitorder="little"))
        logits = self._source.gumbel(size=len(allowed)) + impatience / 4 * self._closing[allowed]
        return int(allowed[logits.argmax()])


def _may_end(engine: GrammarEngine, text_state: ConstrainedText) -> bool:
    return text_state.is_complete() or any(text_state.take([token]) for token in engine.end_tokens)


Frame: TypeAlias = tuple[int, int, int]
"""A node, its progress (letters of a text, turns of a repetition), and the stack below it."""
BOTTOM = -1


class TextMatcher:
    """Matches texts against one grammar.

    Every open path through the grammar is a stack of what has to come. Stacks share their lower parts, so that many
    paths cost little and depth costs no recursion.
    """

    def __init__(self, grammar: ex.Grammar) -> None:
        if errors := fatal_errors(grammar):
            raise ToolError(
                f"Unusable grammar: {errors}",
                code=ErrorCode.GRAMMAR_UNSUPPORTED,
                instruction="Correct these rules.",
            )
        self._nodes = _Nodes(grammar)

    def accepts(self, text: str) -> bool:
        matching = _Matching(self._nodes)
        return matching.stops_at(text) is None and matching.complete

    def begins(self, text: str) -> bool:
        """Whether the text is a prefix of a matching one."""
        return self.stops_at(text) is None

    def stops_at(self, text: str) -> int | None:
        """Index of the first character that does not match; None where all do."""
        return _Matching(self._nodes).stops_at(text)


class _Nodes:
    """Numbered parts of a grammar's rules."""

    def __init__(self, grammar: ex.Grammar) -> None:
        self.parts: list[ex.Expression] = []
        self.inner: list[tuple[int, ...]] = []
        self.starts = {name: self._add(rule) for name, rule in grammar.rules.items()}
        self.root = self.starts[grammar.root]

    def _add(self, part: ex.Expression) -> int:
        inside = tuple(self._add(child) for child in ex.children(part))
        self.parts.append(part)
        self.inner.append(inside)
        return len(self.parts) - 1


class _Matching:
    """The match of one text."""

    def __init__(self, nodes: _Nodes) -> None:
        self._nodes = nodes
        self._frames: list[Frame] = []
        self._numbers: dict[Frame, int] = {}
        self._waiting: list[tuple[ex.Text | ex.Chars, int]] = []
        """What the next character must match, with the stack whose top it is."""
        self.complete = False
        self._open([self._pushed(nodes.root, 0, BOTTOM)])

    def stops_at(self, text: str) -> int | None:
        for index, char in enumerate(text):
            self._open([after for part, stack in self._waiting for after in self._after(part, stack, char)])
            if not self._waiting and not self.complete:
                return index
        return None

    def _after(self, part: ex.Text | ex.Chars, stack: int, char: str) -> Iterator[int]:
        node, done, under = self._frames[stack]
        if isinstance(part, ex.Chars):
            index = bisect_right(part.ranges, (ord(char), 0x110000)) - 1
            if index >= 0 and ord(char) <= part.ranges[index][1]:
                yield under
        elif part.text[done] == char:
            yield under if done + 1 == len(part.text) else self._pushed(node, done + 1, under)

    def _pushed(self, node: int, done: int, under: int) -> int:
        frame = (node, done, under)
        if frame not in self._numbers:
            self._numbers[frame] = len(self._frames)
            self._frames.append(frame)
        return self._numbers[frame]

    def _open(self, stacks: list[int]) -> None:
        """Expand the tops of the stacks until each waits for a character or is empty."""
        seen = set(stacks)
        self._waiting = []
        self.complete = False
        while stacks:
            stack = stacks.pop()
            if stack == BOTTOM:
                self.complete = True
                continue
            part = self._nodes.parts[self._frames[stack][0]]
            if isinstance(part, ex.Chars) or (isinstance(part, ex.Text) and part.text):
                self._waiting.append((part, stack))
                continue
            fresh = [after for after in self._unfolded(part, *self._frames[stack]) if after not in seen]
            seen.update(fresh)
            stacks += fresh

    def _unfolded(self, part: ex.Expression, node: int, done: int, under: int) -> Iterator[int]:
        inner = self._nodes.inner[node]
        match part:
            case ex.Sequence():
                stack = under
                for child in reversed(inner):
                    stack = self._pushed(child, 0, stack)
                yield stack
            case ex.Choice():
                yield from (self._pushed(child, 0, under) for child in inner)
            case ex.Repeat():
                yield from self._turns(part, node, done, under)
            case ex.Rule(name):
                yield self._pushed(self._nodes.starts[name], 0, under)
            case _:
                yield under

    def _turns(self, part: ex.Repeat, node: int, done: int, under: int) -> Iterator[int]:
        if done >= part.fewest:
            yield under
        if part.most is None or done < part.most:
            # Without an upper bound, only turns up to the lower one are counted.
            turns = min(done + 1, part.fewest if part.most is None else part.most)
            yield self._pushed(self._nodes.inner[node][0], 0, self._pushed(node, turns, under))


HEADER = "%llguidance {}\n"
SPACE = 320
"""Byte limit of a bounded text, and so its token limit."""
MOST_TOKENS = 600
"""Token limit of an unbounded text."""
LLAMA_CPP_SHARE = 10
"""One of so many texts is from llama.cpp, which is slower."""


class GbnfWriter(Protocol):
    """Samples a text under a GBNF grammar, such as llama.cpp with some weights."""

    def __call__(self, gbnf: str, *, seed: int, most_tokens: int) -> Sample: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Disagreement:
    """A text that one of the checks rejected."""

    tool: str
    text: str
    refused_by: str
    why: str


@dataclass(kw_only=True, slots=True)
class Certificate:
    """Counts of a certification."""

    tools: int = 0
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Tools with schemas that no grammar can express, with the reason."""
    samples: int = 0
    tokens: int = 0
    by_llama_cpp: int = 0
    """Samples of llama.cpp."""
    unfinished: int = 0
    """Unbounded texts cut at the token limit."""
    cut: int = 0
    """Texts of a bounded grammar that were not complete at its limit."""
    disagreements: list[Disagreement] = field(default_factory=list[Disagreement])

    @property
    def holds(self) -> bool:
        """Whether every sampled text was complete and accepted by all checks."""
        return not self.cut and not self.disagreements

    @property
    def invalid(self) -> int:
        """Texts that the validator rejected."""
        return sum(found.refused_by == VALIDATOR for found in self.disagreements)


VALIDATOR = "jsonschema"
OUR_GBNF = "GBNF"
OTHER_LARK = "llguidance"


def certify(
    tools: abc.Sequence[CallableTool],
    engine: GrammarEngine,
    *,
    samples: int,
    seed: int = 0,
    llama_cpp: GbnfWriter | None = None,
) -> Certificate:
    """Sample texts over all tools, and check each."""
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

    def __init__(self, *, tool: CallableTool, tree: ShapeTree, engine: GrammarEngine, certificate: Certificate) -> None:
        self._tool, self._engine, self._certificate = tool, engine, certificate
        self._grammar = own_grammar(tree, root="start")
        self._own = HEADER + lark_text(self._grammar)
        self._plain = HEADER + shape_rules(tree.root, tree.named, root="start")
        self._gbnf = gbnf_text(grammar_of(tree))
        self._matcher = TextMatcher(read_gbnf(self._gbnf))
        self._validator = validator_of(tool.schema)

    def sample(self, model: RandomModel, count: int) -> None:
        """Sample texts, alternately bounded and unbounded."""
        short = self._bounded()
        bounded_lark = None if short is None else HEADER + lark_text(short)
        for number in range(count):
            if bounded_lark is not None and number % 2:
                self._count(model.write(bounded_lark, most_tokens=SPACE, patient=True), bounded=True)
            else:
                lark = self._own if number % 4 else self._plain
                self._count(model.write(lark, most_tokens=MOST_TOKENS), bounded=False)

    def sample_llama_cpp(self, write: GbnfWriter, count: int, seed: int) -> None:
        """Sample texts with llama.cpp, bounded where possible."""
        short, gbnf = self._bounded(), self._gbnf
        if short is not None:
            rules = {"root" if name == short.root else name: rule for name, rule in short.rules.items()}
            gbnf = gbnf_text(replace(short, rules=rules, root="root"))
        for number in range(count):
            self._count(write(gbnf, seed=seed + number, most_tokens=SPACE), bounded=short is not None)
            self._certificate.by_llama_cpp += 1

    def _bounded(self) -> ex.Grammar | None:
        try:
            return bounded(self._grammar, SPACE)
        except ToolError:
            return None  # the shortest text is longer

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
            yield OUR_GBNF, f"no match at character {self._matcher.stops_at(text)}"
        for lark in (self._plain, self._own):
            if not accepts(self._engine, lark, text):
                yield OTHER_LARK, f"rejected by a grammar of {len(lark)} characters"


def validator_of(schema: JsonObject) -> Validator:
    """An independent validator of a schema, with its formats."""
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)(schema, format_checker=FormatChecker())


def first_error(validator: Validator, text: str) -> str | None:
    """The first error of a text as JSON, or of its value; None where it is valid."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"invalid JSON: {error}"
    found = next(iter(validator.iter_errors(value)), None)
    return None if found is None else f"{found.json_path}: {found.message}"


def accepts(engine: GrammarEngine, lark: str, text: str) -> bool:
    """Whether an engine accepts a whole text under a grammar."""
    text_state = engine.start(lark)
    tokens = engine.tokens_of(text.encode())
    if text_state.take(tokens) != len(tokens):
        return False
    return _may_end(engine, text_state)

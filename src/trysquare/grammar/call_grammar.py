"""CallGrammar: what an answer of tool calls is held to, in every dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from trysquare.core.types import JsonObject
from trysquare.grammar.bounding import bounded
from trysquare.grammar.call_set import AFTER_NAME, BEFORE_NAME, MOST_CALLS, CallSet, written
from trysquare.grammar.expressions import Grammar, Rule, Text, in_sequence, one_of, repeated
from trysquare.grammar.gbnf import gbnf_text
from trysquare.grammar.lark import lark_text, shape_rules
from trysquare.grammar.refusals import Unsupported
from trysquare.grammar.schema_writing import schema_of
from trysquare.grammar.shape_text import ShapeWriter
from trysquare.grammar.shapes import (
    NOTHING,
    Arrays,
    Objects,
    Property,
    Shape,
    ShapeTree,
    any_of,
    constants_of,
)
from trysquare.grammar.walk import CallWalk


class CallableTool(Protocol):
    """What a grammar needs to know of a tool."""

    @property
    def name(self) -> str:
        """What a call names it."""
        ...

    @property
    def schema(self) -> JsonObject:
        """The exact schema of its arguments."""
        ...


class CallGrammar:
    """Calls of some tools, as `{"name":…,"args":{…}}`; with `parallel`, an array of them.

    Schemas are read when a dialect is asked for, so that a grammar of a thousand tools costs nothing to make.
    """

    def __init__(
        self,
        tools: Sequence[CallableTool],
        parallel: bool = False,
        most_calls: int = MOST_CALLS,
        *,
        loosely: bool = False,
    ) -> None:
        schemas = {tool.name: tool.schema for tool in tools}
        self._calls = CallSet(tools=schemas, parallel=parallel, most_calls=most_calls, loosely=loosely)
        self._trees: dict[str, ShapeTree] = {}

    @property
    def calls(self) -> CallSet:
        """The tools, and how many calls an answer may have."""
        return self._calls

    def lark(self, *, tokens: int | None = None) -> str:
        """For llguidance; with `tokens`, no answer has more bytes, so that none is cut."""
        if tokens is not None:
            grammar = self._grammar(root="start")
            return f"%llguidance {{}}\n{lark_text(bounded(grammar, tokens))}"
        names = {name: f"tool_{number}" for number, name in enumerate(self._calls.tools, start=1)}
        lines = [
            f"%llguidance {{}}\n{self._lark_start()}",
            f"call: {' | '.join(map(self._lark_call, names.items()))}\n",
        ]
        for name, rule in names.items():
            tree = self.tree_of(name)
            lines.append(shape_rules(tree.root, tree.named, root=rule))
        return "".join(lines)

    def _lark_start(self) -> str:
        if not self._calls.parallel:
            return "start: call\n"
        return f'start: "[" call ("," call){{0,{self._calls.most_calls - 1}}} "]"\n'

    def _lark_call(self, names: tuple[str, str]) -> str:
        name, rule = names
        grammar = Grammar(rules={"call": in_sequence(_before(name), Rule(rule), Text("}"))}, root="call")
        return lark_text(grammar).removeprefix("call: ").strip()

    def gbnf(self, *, tokens: int | None = None) -> str:
        """For llama.cpp's own grammars; with `tokens`, no answer has more bytes, so that none is cut."""
        grammar = self._grammar(root="root")
        return gbnf_text(grammar if tokens is None else bounded(grammar, tokens))

    def _grammar(self, *, root: str) -> Grammar:
        trees = {name: self.tree_of(name) for name in self._calls.tools}
        writer = ShapeWriter(_joined(trees))
        call = Rule(writer.free_name("call"))
        options = [
            in_sequence(_before(name), writer.text_of(tree.root, name), Text("}")) for name, tree in trees.items()
        ]
        if not self._calls.parallel:
            return writer.grammar(one_of(options), name=root)
        writer.add(call.name, one_of(options))
        more = repeated(in_sequence(Text(","), call), 0, self._calls.most_calls - 1)
        return writer.grammar(in_sequence(Text("["), call, more, Text("]")), name=root)

    def json_schema(self) -> JsonObject:
        """For servers that take a JSON schema."""
        return schema_of(self.tree())

    def tree(self) -> ShapeTree:
        """The shapes of a whole answer."""
        trees = {name: self.tree_of(name) for name in self._calls.tools}
        call = any_of(_call_shape(name, tree) for name, tree in trees.items())
        root = Arrays(rest=call, fewest=1, most=self._calls.most_calls) if self._calls.parallel else call
        return ShapeTree(root=root, named=_joined(trees))

    def walk(self) -> CallWalk:
        """A fresh start through the grammar, for a backend that fast-forwards."""
        return CallWalk(self._calls)

    def tree_of(self, name: str) -> ShapeTree:
        """The shapes of a tool's arguments. A refusal names the tool."""
        if name not in self._trees:
            try:
                self._trees[name] = self._calls.read(name, label=f"{name}#")
            except Unsupported as refusal:
                raise refusal.of_tool(name) from refusal
        return self._trees[name]


def _before(name: str) -> Text:
    return Text(BEFORE_NAME + written(name) + AFTER_NAME)


def _joined(trees: Mapping[str, ShapeTree]) -> dict[str, Shape]:
    return {name: shape for tree in trees.values() for name, shape in tree.named.items()}


def _call_shape(name: str, tree: ShapeTree) -> Objects:
    named = Property(name="name", shape=constants_of([f'"{written(name)}"']), required=True)
    return Objects(properties=(named, Property(name="args", shape=tree.root, required=True)), others=NOTHING)

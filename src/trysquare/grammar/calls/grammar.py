"""CallGrammar in every dialect, and strict schemas of OpenAI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from trysquare.core.json import JsonObject
from trysquare.grammar.calls.call_set import AFTER_NAME, BEFORE_NAME, MOST_CALLS, CallSet, written
from trysquare.grammar.calls.walk import CallWalk
from trysquare.grammar.dialects.bounds import bounded
from trysquare.grammar.dialects.gbnf import gbnf_text
from trysquare.grammar.dialects.lark import lark_text, shape_rules
from trysquare.grammar.dialects.rules import ShapeWriter
from trysquare.grammar.schema import shapes
from trysquare.grammar.schema.reader import Unsupported, at
from trysquare.grammar.schema.writer import SchemaWriter, pattern_text, schema_of
from trysquare.grammar.text import expressions as ex


class CallableTool(Protocol):
    """Name and exact argument schema of a tool."""

    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> JsonObject: ...


class CallGrammar:
    """Calls of some tools, as `{"name":…,"args":{…}}`; with `parallel`, an array of them. Schemas are read lazily."""

    def __init__(
        self,
        tools: Sequence[CallableTool],
        parallel: bool = False,
        most_calls: int = MOST_CALLS,
        *,
        loosely: bool = False,
    ) -> None:
        schemas = {tool.name: tool.schema for tool in tools}
        self.calls = CallSet(tools=schemas, parallel=parallel, most_calls=most_calls, loosely=loosely)

    def lark(self, *, tokens: int | None = None) -> str:
        """For llguidance; with `tokens`, no response has more bytes, so that none is cut."""
        if tokens is not None:
            grammar = self._grammar(root="start")
            return f"%llguidance {{}}\n{lark_text(bounded(grammar, tokens))}"
        names = {name: f"tool_{number}" for number, name in enumerate(self.calls.tools, start=1)}
        several = f'"[" call ("," call){{0,{self.calls.most_calls - 1}}} "]"'
        lines = [
            f"%llguidance {{}}\nstart: {several if self.calls.parallel else 'call'}\n",
            f"call: {' | '.join(map(self._lark_call, names.items()))}\n",
        ]
        for name, rule in names.items():
            tree = self.calls.tree(name)
            lines.append(shape_rules(tree.root, tree.named, root=rule))
        return "".join(lines)

    def _lark_call(self, names: tuple[str, str]) -> str:
        name, rule = names
        grammar = ex.Grammar(rules={"call": ex.in_sequence(_before(name), ex.Rule(rule), ex.Text("}"))}, root="call")
        return lark_text(grammar).removeprefix("call: ").strip()

    def gbnf(self, *, tokens: int | None = None) -> str:
        """For llama.cpp's own grammars; with `tokens`, no response has more bytes, so that none is cut."""
        grammar = self._grammar(root="root")
        return gbnf_text(grammar if tokens is None else bounded(grammar, tokens))

    def _grammar(self, *, root: str) -> ex.Grammar:
        trees = self._trees()
        writer = ShapeWriter(_joined(trees))
        call = ex.Rule(writer.free_name("call"))
        options = ex.one_of(
            ex.in_sequence(_before(name), writer.text_of(tree.root, name), ex.Text("}")) for name, tree in trees.items()
        )
        if not self.calls.parallel:
            return writer.grammar(options, name=root)
        writer.add(call.name, options)
        more = ex.repeated(ex.in_sequence(ex.Text(","), call), 0, self.calls.most_calls - 1)
        return writer.grammar(ex.in_sequence(ex.Text("["), call, more, ex.Text("]")), name=root)

    def json_schema(self) -> JsonObject:
        """For servers that take a JSON schema."""
        return schema_of(self.tree())

    def tree(self) -> shapes.ShapeTree:
        """The shapes of a whole response."""
        trees = self._trees()
        call = shapes.any_of(
            _closed_object(name=shapes.constants_of([f'"{written(name)}"']), args=tree.root)
            for name, tree in trees.items()
        )
        root = shapes.Arrays(rest=call, fewest=1, most=self.calls.most_calls) if self.calls.parallel else call
        return shapes.ShapeTree(root=root, named=_joined(trees))

    def walk(self) -> CallWalk:
        """A new walk through the grammar, for a backend that fast-forwards."""
        return CallWalk(self.calls)

    def _trees(self) -> dict[str, shapes.ShapeTree]:
        return {name: self.calls.tree(name) for name in self.calls.tools}


def _before(name: str) -> ex.Text:
    return ex.Text(BEFORE_NAME + written(name) + AFTER_NAME)


def _joined(trees: Mapping[str, shapes.ShapeTree]) -> dict[str, shapes.Shape]:
    return {name: shape for tree in trees.values() for name, shape in tree.named.items()}


def _closed_object(**properties: shapes.Shape) -> shapes.Objects:
    required = (shapes.Property(name=name, shape=shape, required=True) for name, shape in properties.items())
    return shapes.Objects(properties=tuple(required), others=shapes.NOTHING)


MOST_VALUES = 1_000
DEEPEST = 10
"""OpenAI's documented limits of enum values and of nested objects."""


def openai_format(grammar: CallGrammar) -> JsonObject:
    """The `response_format` of a request for `{"call": …}`, or for `{"calls": […]}` where several may come."""
    tree = grammar.tree()
    outer = _closed_object(**{"calls" if grammar.calls.parallel else "call": tree.root})
    schema = strict_schema(shapes.ShapeTree(root=outer, named=tree.named))
    return {"type": "json_schema", "json_schema": {"name": "tool_call", "strict": True, "schema": schema}}


def strict_schema(tree: shapes.ShapeTree) -> JsonObject:
    """The tree as a strict schema; raises `Unsupported` for what strict schemas cannot express.

    There every property is required and none may be added, so an optional property becomes nullable; `without_nulls`
    removes these nulls.
    """
    return _StrictWriter(tree.named).document(tree)


class _StrictWriter(SchemaWriter):
    """Writes shapes with the keywords of strict schemas only."""

    def __init__(self, named: Mapping[str, shapes.Shape]) -> None:
        super().__init__()
        self._named = named
        self._pointer = ""
        self._depth = 0

    def written(self, shape: shapes.Shape) -> JsonObject:
        match shape:
            case shapes.Anything():
                raise self._refusal("schema", "strict schemas cannot express an unconstrained value")
            case shapes.Constants():
                return self._values(shape)
            case shapes.Strings(pattern=None) if shape.shortest or shape.longest is not None:
                any_text = ex.repeated(ex.Chars(ex.EVERY_CHARACTER), shape.shortest, shape.longest)
                return {"type": "string", "pattern": pattern_text(any_text)}
            case shapes.Arrays(first=first) if first:
                raise self._refusal("prefixItems", "strict schemas allow one item schema per array")
            case shapes.Objects():
                return self._strict_object(shape)
            case _:
                return super().written(shape)

    def _refusal(self, keyword: str, why: str) -> Unsupported:
        return Unsupported(keyword, self._pointer, why)

    def _values(self, shape: shapes.Constants) -> JsonObject:
        if len(shape.texts) > MOST_VALUES:
            raise self._refusal("enum", f"strict schemas allow at most {MOST_VALUES} values")
        if any(text.startswith(("[", "{")) for text in shape.texts):
            raise self._refusal("enum", "strict schemas have no constant arrays and objects")
        known = super().written(shape)
        return {"enum": [known["const"]]} if "const" in known else known

    def _strict_object(self, shape: shapes.Objects) -> JsonObject:
        if shape.others != shapes.NOTHING:
            raise self._refusal("additionalProperties", "strict schemas allow closed objects only")
        if shape.fewest or shape.most is not None:
            raise self._refusal("minProperties", "strict schemas cannot count properties")
        if self._depth >= DEEPEST:
            raise self._refusal("properties", f"strict schemas allow {DEEPEST} levels of objects")
        self._depth += 1
        listed = {entry.name: self._property(entry) for entry in shape.properties if entry.shape != shapes.NOTHING}
        self._depth -= 1
        return {"type": "object", "properties": listed, "required": list(listed), "additionalProperties": False}

    def _property(self, entry: shapes.Property) -> JsonObject:
        before = self._pointer
        self._pointer = at(before, "properties", entry.name)
        as_it_is = entry.required or shapes.admits(entry.shape, None, self._named)
        found = self.written(entry.shape if as_it_is else shapes.any_of([entry.shape, shapes.NULL]))
        self._pointer = before
        return found


def without_nulls(tree: shapes.ShapeTree, value: Any) -> Any:
    """The value without the nulls of omitted properties."""
    return _without_nulls(tree.root, value, tree.named)


def _without_nulls(shape: shapes.Shape, value: Any, named: Mapping[str, shapes.Shape]) -> Any:
    match shape:
        case shapes.Named(name=name):
            return _without_nulls(named[name], value, named)
        case shapes.Union(options=options):
            changed = ((option, _without_nulls(option, value, named)) for option in options)
            return next((found for option, found in changed if shapes.admits(option, found, named)), value)
        case shapes.Objects() if isinstance(value, dict):
            listed = {entry.name: entry for entry in shape.properties}
            kept: JsonObject = {}
            for name, inner in cast(JsonObject, value).items():
                entry = listed.get(name)
                if inner is not None or not entry or entry.required or shapes.admits(entry.shape, None, named):
                    kept[name] = _without_nulls(entry.shape, inner, named) if entry else inner
            return kept
        case shapes.Arrays() if isinstance(value, list):
            return [_without_nulls(shape.rest, item, named) for item in cast(list[Any], value)]
        case _:
            return value

"""Compiling: another server's schema, made into tests once and asked of every call.

The server decides in the end, so what cannot be told here passes: a keyword that is not known, a reference to
elsewhere (nothing is ever fetched), a pattern that could hang, a schema that is none or has no bottom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from trysquare.catalog.schema_parts import as_list, as_object
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.assertions import assertion
from trysquare.gateway.checking.checking import CompiledSchema, Node, Part, Rule, Unchecked, Work
from trysquare.gateway.checking.linear_patterns import text_test
from trysquare.gateway.checking.local_refs import pointed

_MOST_NODES = 20_000


def compile_schema(schema: Any) -> CompiledSchema:
    """Make a schema into tests."""
    try:
        return CompiledSchema(_Compiler(as_object(schema)).node(schema))
    except (Unchecked, RecursionError):
        return CompiledSchema(Node({}))


class _Compiler:
    """Makes the nodes of one schema, each reference once."""

    def __init__(self, whole: JsonObject) -> None:
        self._whole = whole
        self._referred: dict[str, Node] = {}
        self._count = 0
        # Where something passes unchecked, "not" and "exactly one" would refuse what the server takes.
        self._is_exact = _is_exact(whole)
        self._has_inner_ids = any("$id" in part for part in _objects_in(list(whole.values())))
        self._ref_alone = "draft-0" in str(whole.get("$schema", ""))

    def node(self, schema: Any) -> Node:
        """A schema as a node; what is no schema takes everything."""
        node = Node(as_object(schema))
        self._fill(node, schema)
        return node

    def _fill(self, node: Node, schema: Any) -> None:
        self._count += 1
        if self._count > _MOST_NODES:
            raise Unchecked
        node.rules = (Rule(keyword="false", fits=_nothing),) if schema is False else tuple(self._rules(node.schema))

    def _rules(self, schema: JsonObject) -> Iterator[Rule]:
        alone = self._ref_alone and isinstance(schema.get("$ref"), str)
        for keyword, given in ({"$ref": schema["$ref"]} if alone else schema).items():
            test = assertion(keyword, given, schema)
            if test is not None:
                yield Rule(keyword=keyword, fits=_of_value(test))
            elif keyword in _APPLICATORS and (rule := _APPLICATORS[keyword](self, given, schema)) is not None:
                yield rule

    def nodes(self, schemas: Any) -> tuple[Node, ...]:
        """A list of schemas as nodes."""
        return tuple(self.node(schema) for schema in as_list(schemas))

    def named_nodes(self, schemas: Any) -> dict[str, Node]:
        """An object of schemas as nodes."""
        return {name: self.node(schema) for name, schema in as_object(schemas).items()}

    def properties(self, given: Any, schema: JsonObject) -> Rule:
        nodes = self.named_nodes(given)

        def parts(value: Any, work: Work) -> Iterator[Part]:
            return ((name, nodes[name], part) for name, part in as_object(value).items() if name in nodes)

        def fits(value: Any, work: Work) -> bool:
            if type(value) is not dict:
                return True
            for name, part in cast(JsonObject, value).items():
                node = nodes.get(name)
                if node is not None and not node.fits(part, work):
                    return False
            return True

        return Rule(keyword="properties", fits=fits, parts=parts)

    def pattern_properties(self, given: Any, schema: JsonObject) -> Rule:
        tests = [(text_test(pattern), self.node(inner)) for pattern, inner in as_object(given).items()]
        known = [(test, node) for test, node in tests if test is not None]

        def parts(value: Any, work: Work) -> Iterator[Part]:
            named = as_object(value).items()
            return ((name, node, part) for name, part in named for test, node in known if test(name))

        return _all_parts("patternProperties", parts)

    def additional_properties(self, given: Any, schema: JsonObject) -> Rule | None:
        known = as_object(schema.get("properties")).keys()
        tests = [text_test(pattern) for pattern in as_object(schema.get("patternProperties"))]
        sure = [test for test in tests if test is not None]
        if len(sure) < len(tests):
            return None

        def others(value: Any) -> list[str]:
            return [name for name in as_object(value) if name not in known and not any(test(name) for test in sure)]

        def knows_all(value: Any, work: Work) -> bool:
            return (type(value) is dict and value.keys() <= known) or not others(value)

        if given is False:
            return Rule(keyword="additionalProperties", fits=knows_all, names=others)
        node = self.node(given)
        return _all_parts(
            "additionalProperties", lambda value, work: ((name, node, value[name]) for name in others(value))
        )

    def property_names(self, given: Any, schema: JsonObject) -> Rule:
        node = self.node(given)

        def fits(value: Any, work: Work) -> bool:
            return all(node.fits(name, work) for name in as_object(value))

        return Rule(keyword="propertyNames", fits=fits)

    def required(self, given: Any, schema: JsonObject) -> Rule | None:
        names = [name for name in as_list(given) if isinstance(name, str)]
        rule = _needed("required", lambda value: names)
        every = frozenset(names)

        def has_all(value: Any, work: Work) -> bool:
            return type(value) is not dict or every <= value.keys()

        return replace(rule, fits=has_all) if names else None

    def dependent_required(self, given: Any, schema: JsonObject) -> Rule:
        needs = {name: as_list(names) for name, names in as_object(given).items()}

        def needed(value: JsonObject) -> list[str]:
            return [name for given, names in needs.items() if given in value for name in names if isinstance(name, str)]

        return _needed("dependentRequired", needed)

    def dependent_schemas(self, given: Any, schema: JsonObject) -> Rule:
        nodes = self.named_nodes(given)

        def parts(value: Any, work: Work) -> Iterator[Part]:
            return ((None, node, value) for name, node in nodes.items() if name in as_object(value))

        return _all_parts("dependentSchemas", parts)

    def dependencies(self, given: Any, schema: JsonObject) -> Rule:
        schemas: JsonObject = {
            name: {"required": part} if isinstance(part, list) else part for name, part in as_object(given).items()
        }
        return self.dependent_schemas(schemas, schema)

    def items(self, given: Any, schema: JsonObject) -> Rule:
        if isinstance(given, list):
            return self.prefix_items(cast(list[Any], given), schema)
        return self._from("items", given, len(as_list(schema.get("prefixItems"))))

    def additional_items(self, given: Any, schema: JsonObject) -> Rule | None:
        first = schema.get("items")
        return self._from("additionalItems", given, len(as_list(first))) if isinstance(first, list) else None

    def _from(self, keyword: str, given: Any, start: int) -> Rule:
        node = self.node(given)

        def parts(value: Any, work: Work) -> Iterator[Part]:
            return ((index, node, part) for index, part in enumerate(as_list(value)) if index >= start)

        return _all_parts(keyword, parts)

    def prefix_items(self, given: Any, schema: JsonObject) -> Rule:
        nodes = self.nodes(given)

        def parts(value: Any, work: Work) -> Iterator[Part]:
            return ((index, node, part) for index, (node, part) in enumerate(zip(nodes, as_list(value), strict=False)))

        return _all_parts("prefixItems", parts)

    def contains(self, given: Any, schema: JsonObject) -> Rule:
        node = self.node(given)
        least, most = schema.get("minContains", 1), schema.get("maxContains")

        def fits(value: Any, work: Work) -> bool:
            if type(value) is not list:
                return True
            count = sum(node.fits(part, work) for part in cast(list[Any], value))
            return (type(least) is not int or count >= least) and (
                not self._is_exact or type(most) is not int or count <= most
            )

        return Rule(keyword="contains", fits=fits)

    def all_of(self, given: Any, schema: JsonObject) -> Rule:
        nodes = self.nodes(given)

        def parts(value: Any, work: Work) -> Iterator[Part]:
            for node in nodes:
                work.step()
                yield None, node, value

        return _all_parts("allOf", parts)

    def any_of(self, given: Any, schema: JsonObject) -> Rule | None:
        return self._choice("anyOf", given, lambda fitting: fitting > 0)

    def one_of(self, given: Any, schema: JsonObject) -> Rule | None:
        return self._choice("oneOf", given, lambda fitting: fitting == 1 if self._is_exact else fitting > 0)

    def _choice(self, keyword: str, given: Any, is_right: Callable[[int], bool]) -> Rule | None:
        nodes = self.nodes(given)

        def fits(value: Any, work: Work) -> bool:
            fitting = 0
            for node in nodes:
                work.step()
                fitting += node.fits(value, work)
                if fitting and keyword == "anyOf":
                    return True
            return is_right(fitting)

        return Rule(keyword=keyword, fits=fits, options=nodes) if nodes else None

    def negation(self, given: Any, schema: JsonObject) -> Rule | None:
        node = self.node(given)

        def fits(value: Any, work: Work) -> bool:
            work.step()
            return not node.fits(value, work)

        return Rule(keyword="not", fits=fits) if self._is_exact else None

    def condition(self, given: Any, schema: JsonObject) -> Rule | None:
        test, then, otherwise = (self.node(part) for part in (given, schema.get("then"), schema.get("else")))

        def parts(value: Any, work: Work) -> Iterator[Part]:
            work.step()
            yield None, then if test.fits(value, work) else otherwise, value

        return _all_parts("if", parts) if self._is_exact else None

    def reference(self, given: Any, schema: JsonObject) -> Rule | None:
        if not isinstance(given, str) or self._has_inner_ids or (target := pointed(given, self._whole)) is None:
            return None
        if given not in self._referred:
            self._referred[given] = Node(as_object(target))
            self._fill(self._referred[given], target)
        node = self._referred[given]

        def parts(value: Any, work: Work) -> Iterator[Part]:
            work.step()
            yield None, node, value

        return _all_parts("$ref", parts)


_APPLICATORS: dict[str, Callable[[_Compiler, Any, JsonObject], Rule | None]] = {
    "properties": _Compiler.properties,
    "patternProperties": _Compiler.pattern_properties,
    "additionalProperties": _Compiler.additional_properties,
    "propertyNames": _Compiler.property_names,
    "required": _Compiler.required,
    "dependentRequired": _Compiler.dependent_required,
    "dependentSchemas": _Compiler.dependent_schemas,
    "dependencies": _Compiler.dependencies,
    "items": _Compiler.items,
    "additionalItems": _Compiler.additional_items,
    "prefixItems": _Compiler.prefix_items,
    "contains": _Compiler.contains,
    "allOf": _Compiler.all_of,
    "anyOf": _Compiler.any_of,
    "oneOf": _Compiler.one_of,
    "not": _Compiler.negation,
    "if": _Compiler.condition,
    "$ref": _Compiler.reference,
}
_NOT_TOLD = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"})


def _all_parts(keyword: str, parts: Callable[[Any, Work], Iterable[Part]]) -> Rule:
    def fits(value: Any, work: Work) -> bool:
        for _, node, part in parts(value, work):  # noqa: SIM110 - as in Node.fits
            if not node.fits(part, work):
                return False
        return True

    return Rule(keyword=keyword, fits=fits, parts=parts)


def _needed(keyword: str, needed: Callable[[JsonObject], list[str]]) -> Rule:
    def missing(value: Any) -> list[str]:
        known = as_object(value)
        return [name for name in needed(known) if name not in known] if type(value) is dict else []

    return Rule(keyword=keyword, fits=lambda value, work: not missing(value), names=missing)


def _of_value(test: Callable[[Any], bool]) -> Callable[[Any, Work], bool]:
    return lambda value, work: test(value)


def _nothing(value: Any, work: Work) -> bool:
    return False


def _is_exact(whole: JsonObject) -> bool:
    """Whether nothing in a schema passes unchecked."""
    return not any(_passes_unchecked(key, given, whole) for part in _objects_in([whole]) for key, given in part.items())


def _objects_in(waiting: list[Any]) -> Iterator[JsonObject]:
    """Every object in some JSON values, however deep."""
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            inner = cast(JsonObject, part)
            yield inner
            waiting.extend(inner.values())
        elif isinstance(part, list):
            waiting.extend(cast(list[Any], part))


def _passes_unchecked(key: str, given: Any, whole: JsonObject) -> bool:
    if key == "$ref":
        return isinstance(given, str) and pointed(given, whole) is None
    if key == "pattern":
        return isinstance(given, str) and text_test(given) is None
    if key == "patternProperties":
        return any(text_test(pattern) is None for pattern in as_object(given))
    return key in _NOT_TOLD or (key == "$id" and given is not whole.get("$id"))

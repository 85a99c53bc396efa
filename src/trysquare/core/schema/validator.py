"""Compile and check JSON Schemas of other servers: lenient, bounded, linear patterns.

First the keywords that look at one value by itself, each compiled to a test. A keyword whose own value makes no sense
gives none, nor does a pattern that could hang or that Rust reads otherwise than JavaScript: what cannot be checked here
is left to the server.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, Protocol, TypeAlias, cast

import pydantic_core
from pydantic_core import SchemaError, core_schema

from trysquare.core.json import JsonObject, JsonPath, as_list, as_object, objects_in, resolve_pointer, resolve_ref
from trysquare.core.text import is_encodable

_LONGEST_PATTERN, _LONGEST_TEXT, _MOST_REPEATS = 500, 10_000, 1_000
_REPEATS = re.compile(r"\{(\d+)(?:,(\d*))?\}")
# Rust alone reads these as sets within sets.
_READ_OTHERWISE = re.compile(r"&&|--|~~|\[[^\]\\]*\[")


@lru_cache(maxsize=2_000)
def text_test(pattern: str) -> Callable[[str], bool] | None:
    """The test for a pattern; None if it cannot be checked safely."""
    if len(pattern) > _LONGEST_PATTERN or _READ_OTHERWISE.search(pattern) or _repeats(pattern) > _MOST_REPEATS:
        return None
    try:
        validator = pydantic_core.SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None
    # Rust does not accept a lone surrogate.
    return lambda text: len(text) > _LONGEST_TEXT or validator.isinstance_python(text) or not is_encodable(text)


def _repeats(pattern: str) -> int:
    """How much a pattern grows when its counted repeats are written out."""
    counts = (max(int(least[:9]), int((most or "0")[:9])) for least, most in _REPEATS.findall(pattern))
    return math.prod(max(count, 1) for count in counts)


Test: TypeAlias = Callable[[Any], bool]
_Maker: TypeAlias = Callable[[Any, JsonObject], Test | None]

TYPES: dict[str, Test] = {
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "number": lambda value: type(value) is int or type(value) is float,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}
_NEARLY = 1e-9


def assertion(keyword: str, given: Any, schema: JsonObject) -> Test | None:
    """The test of one keyword; None if it asserts nothing, or cannot be read."""
    make = _MAKERS.get(keyword)
    return None if make is None else make(given, schema)


def key_of(value: Any) -> Any:
    """A key that is the same for equal JSON values: `1` and `1.0` are one number, `true` is none."""
    if isinstance(value, dict):
        return "object", frozenset((name, key_of(part)) for name, part in cast(JsonObject, value).items())
    if isinstance(value, list):
        return "array", tuple(key_of(part) for part in cast(list[Any], value))
    return isinstance(value, bool), value


def _type(given: Any, schema: JsonObject) -> Test | None:
    kinds: list[Any] = as_list(given) or [given]
    if not all(isinstance(kind, str) and kind in TYPES for kind in kinds):
        return None
    tests = [TYPES[kind] for kind in kinds]
    return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)


def _enum(given: Any, schema: JsonObject) -> Test | None:
    choices = as_list(given)
    if not choices:
        return None
    if all(type(choice) is str for choice in choices):
        texts = frozenset(choices)
        return lambda value: type(value) is str and value in texts
    keys = {key_of(choice) for choice in choices}
    return lambda value: key_of(value) in keys


def _pattern(given: Any, schema: JsonObject) -> Test | None:
    test = text_test(given) if isinstance(given, str) else None
    return None if test is None else lambda value: type(value) is not str or test(value)


def _compare_size(kind: type, compare: Callable[[Any, Any], bool]) -> _Maker:
    def make(given: Any, schema: JsonObject) -> Test | None:
        return (lambda value: type(value) is not kind or compare(len(value), given)) if _is_number(given) else None

    return make


def _compare(compare: Callable[[Any, Any], bool], exclusive: str = "") -> _Maker:
    """Compare numbers; `exclusive` is the draft-4 keyword that excludes the limit itself."""
    stricter = {operator.ge: operator.gt, operator.le: operator.lt}

    def make(given: Any, schema: JsonObject) -> Test | None:
        test = stricter[compare] if schema.get(exclusive) is True else compare
        return (lambda value: not _is_number(value) or test(value, given)) if _is_number(given) else None

    return make


def _multiple(given: Any, schema: JsonObject) -> Test | None:
    return (lambda value: not _is_number(value) or _divides(given, value)) if _is_number(given) and given else None


def _divides(part: float, value: float) -> bool:
    if type(part) is int and type(value) is int:
        return value % part == 0
    try:
        times = value / part
    except OverflowError:
        return True
    # 0.3 is meant to be three times 0.1, whatever floating point makes of it.
    return abs(times) == float("inf") or abs(times - round(times)) < _NEARLY


def _unique(given: Any, schema: JsonObject) -> Test | None:
    if given is not True:
        return None
    return lambda value: len({key_of(part) for part in as_list(value)}) == len(as_list(value))


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value == value)


_MAKERS: dict[str, _Maker] = {
    "type": _type,
    "enum": _enum,
    "const": lambda given, schema: _enum([given], schema),
    "pattern": _pattern,
    "minLength": _compare_size(str, operator.ge),
    "maxLength": _compare_size(str, operator.le),
    "minItems": _compare_size(list, operator.ge),
    "maxItems": _compare_size(list, operator.le),
    "minProperties": _compare_size(dict, operator.ge),
    "maxProperties": _compare_size(dict, operator.le),
    "minimum": _compare(operator.ge, "exclusiveMinimum"),
    "maximum": _compare(operator.le, "exclusiveMaximum"),
    "exclusiveMinimum": _compare(operator.gt),
    "exclusiveMaximum": _compare(operator.lt),
    "multipleOf": _multiple,
    "uniqueItems": _unique,
}

NAME_KEYWORDS = frozenset({"required", "additionalProperties", "propertyNames"})
"""Keywords whose problems are about a name; their schema is that of the object around it."""
Call: TypeAlias = Callable[[JsonObject], JsonObject]
"""Makes the call that a client can send out of corrected arguments."""


class Check(Protocol):
    """Validates arguments, or raises pydantic's `ValidationError`; `forbid` refuses extra names at every depth."""

    def __call__(self, arguments: JsonObject, /, *, extra: Literal["forbid"] | None) -> Any: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """The violation of one keyword by one value."""

    path: JsonPath
    keyword: str
    """A keyword of JSON Schema; empty for a rule that only `message` words."""
    schema: JsonObject
    """The schema that refuses: of the value, or, for `NAME_KEYWORDS`, of the object around it."""
    message: str = ""


def expected_schema(problem: Problem, whole: JsonObject) -> JsonObject:
    """The schema of what a problem is about: of the missing value, of the key, or of the value."""
    if problem.keyword == "propertyNames":
        return as_object(problem.schema.get("propertyNames")) or {"type": "key"}
    if problem.keyword != "required":
        return problem.schema
    part = problem.path[-1]
    if isinstance(part, int):
        fixed = as_list(problem.schema.get("prefixItems"))
        found = fixed[part] if part < len(fixed) else problem.schema.get("items")
    else:
        found = as_object(problem.schema.get("properties")).get(part)
    return resolve_ref(as_object(found), whole)


# The server decides in the end, so what cannot be checked here passes: an unknown keyword, a reference to elsewhere
# (nothing is ever fetched), a pattern that could hang, a schema that is malformed or has no bottom.


_MOST_STEPS, _MOST_PROBLEMS = 20_000, 50


_PLAIN: Mapping[str, frozenset[type[Any]]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
}
"""The types of the values of a schema that says nothing else: long lists are looked through at once."""


class ValidationBudgetExceeded(Exception):
    """A schema, or a value under it, would take more work than a check is worth."""


class ValidationBudget:
    """How much a check may still do: references and choices can multiply without end."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST_STEPS

    def step(self) -> None:
        """One step more; raises `ValidationBudgetExceeded` where there were too many."""
        self.left -= 1
        if self.left < 0:
            raise ValidationBudgetExceeded


class Node:
    """A schema as tests. Filled in after it is made, since a schema can hold itself."""

    __slots__ = ("rules", "schema")

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        self.rules: tuple[Rule, ...] = ()

    def fits(self, value: Any, budget: ValidationBudget) -> bool:
        for rule in self.rules:  # noqa: SIM110 - a loop takes half the time of all() with a generator
            if not rule.fits(value, budget):
                return False
        return True


Part: TypeAlias = tuple[str | int | None, Node, Any]
"""A step inside, or None for the same path; what must fit there; and the value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One keyword of a schema: a test, and the parts that its problems are about."""

    keyword: str
    fits: Callable[[Any, ValidationBudget], bool]
    parts: Callable[[Any, ValidationBudget], Iterable[Part]] | None = None
    options: tuple[Node, ...] = ()
    names: Callable[[Any], Iterable[str]] | None = None


class SchemaValidator:
    """A compiled schema."""

    def __init__(self, root: Node) -> None:
        self._root = root

    def fits(self, value: Any) -> bool:
        """Whether a value fits, as far as it can be checked."""
        try:
            return self._root.fits(value, ValidationBudget())
        except (ValidationBudgetExceeded, RecursionError):
            return True

    def problems(self, value: Any) -> list[Problem]:
        try:
            found = list(islice(_problems(self._root, value, (), ValidationBudget()), _MOST_PROBLEMS))
        except (ValidationBudgetExceeded, RecursionError):
            return []
        return list({(problem.path, problem.keyword): problem for problem in found}.values())


def _problems(node: Node, value: Any, path: JsonPath, budget: ValidationBudget) -> Iterator[Problem]:
    for rule in node.rules:
        if rule.fits(value, budget):
            continue
        if rule.parts is not None:
            for step, inner, part in rule.parts(value, budget):
                yield from _problems(inner, part, path if step is None else (*path, step), budget)
        elif rule.names is not None:
            for name in rule.names(value):
                yield Problem(path=(*path, name), keyword=rule.keyword, schema=node.schema)
        else:
            nearest = _nearest_option(rule, value, path, budget)
            yield from nearest or [Problem(path=path, keyword=rule.keyword, schema=node.schema)]


def _nearest_option(rule: Rule, value: Any, path: JsonPath, budget: ValidationBudget) -> list[Problem]:
    """The problems of a value with the option that was probably meant; none if no option is of its kind."""
    found = [list(islice(_problems(option, value, path, budget), _MOST_PROBLEMS)) for option in rule.options]
    near = [problems for problems in found if problems and not any(one.path == path for one in problems)]
    # A different constant means that another option was meant.
    return (
        min(near, key=lambda found: (sum(one.keyword in ("const", "enum") for one in found), len(found)))
        if near
        else []
    )


_MOST_NODES = 20_000
_REFUSED = Rule(keyword="false", fits=lambda value, budget: False)


def compile_schema(schema: Any) -> SchemaValidator:
    try:
        return SchemaValidator(_Compiler(as_object(schema)).node(schema))
    except (ValidationBudgetExceeded, RecursionError):
        return SchemaValidator(Node({}))


class _Compiler:
    """Makes the nodes of one schema, each reference once."""

    def __init__(self, whole: JsonObject) -> None:
        self._whole = whole
        self._referred: dict[str, Node] = {}
        self._count = 0
        # Where something passes unchecked, "not" and "exactly one" would refuse what the server takes.
        keywords = ((key, given) for part in objects_in([whole]) for key, given in part.items())
        self._is_exact = not any(_passes_unchecked(key, given, whole) for key, given in keywords)
        self._has_inner_ids = any("$id" in part for part in objects_in(list(whole.values())))
        self._ref_alone = "draft-0" in str(whole.get("$schema", ""))

    def node(self, schema: Any) -> Node:
        """A schema as a node; anything else accepts every value."""
        node = Node(as_object(schema))
        self._fill(node, schema)
        return node

    def _fill(self, node: Node, schema: Any) -> None:
        self._count += 1
        if self._count > _MOST_NODES:
            raise ValidationBudgetExceeded
        node.rules = (_REFUSED,) if schema is False else tuple(self._rules(node.schema))

    def _rules(self, schema: JsonObject) -> Iterator[Rule]:
        alone = self._ref_alone and isinstance(schema.get("$ref"), str)
        for keyword, given in ({"$ref": schema["$ref"]} if alone else schema).items():
            test = assertion(keyword, given, schema)
            if test is not None:
                yield Rule(keyword=keyword, fits=_of_value(test))
            elif keyword in _APPLICATORS and (rule := _APPLICATORS[keyword](self, given, schema)) is not None:
                yield rule

    def nodes(self, schemas: Any) -> tuple[Node, ...]:
        return tuple(self.node(schema) for schema in as_list(schemas))

    def named_nodes(self, schemas: Any) -> dict[str, Node]:
        return {name: self.node(schema) for name, schema in as_object(schemas).items()}

    def properties(self, given: Any, schema: JsonObject) -> Rule:
        nodes = self.named_nodes(given)

        def parts(value: Any, budget: ValidationBudget) -> Iterator[Part]:
            return ((name, nodes[name], part) for name, part in as_object(value).items() if name in nodes)

        def fits(value: Any, budget: ValidationBudget) -> bool:
            if type(value) is not dict:
                return True
            for name, part in cast(JsonObject, value).items():
                node = nodes.get(name)
                if node is not None and not node.fits(part, budget):
                    return False
            return True

        return Rule(keyword="properties", fits=fits, parts=parts)

    def pattern_properties(self, given: Any, schema: JsonObject) -> Rule:
        tests = [(text_test(pattern), self.node(inner)) for pattern, inner in as_object(given).items()]
        known = [(test, node) for test, node in tests if test is not None]

        def parts(value: Any, budget: ValidationBudget) -> Iterator[Part]:
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

        def knows_all(value: Any, budget: ValidationBudget) -> bool:
            return (type(value) is dict and value.keys() <= known) or not others(value)

        if given is False:
            return Rule(keyword="additionalProperties", fits=knows_all, names=others)
        node = self.node(given)
        return _all_parts(
            "additionalProperties", lambda value, budget: ((name, node, value[name]) for name in others(value))
        )

    def property_names(self, given: Any, schema: JsonObject) -> Rule:
        node = self.node(given)

        def refused(value: Any) -> list[str]:
            return [name for name in as_object(value) if not node.fits(name, ValidationBudget())]

        return Rule(keyword="propertyNames", fits=lambda value, budget: not refused(value), names=refused)

    def required(self, given: Any, schema: JsonObject) -> Rule | None:
        names = [name for name in as_list(given) if isinstance(name, str)]
        rule = _required(lambda value: names)
        every = frozenset(names)

        def has_all(value: Any, budget: ValidationBudget) -> bool:
            return type(value) is not dict or every <= value.keys()

        return replace(rule, fits=has_all) if names else None

    def dependent_required(self, given: Any, schema: JsonObject) -> Rule:
        needs = {
            name: [one for one in as_list(names) if isinstance(one, str)] for name, names in as_object(given).items()
        }
        return _required(lambda value: [one for name, names in needs.items() if name in value for one in names])

    def dependent_schemas(self, given: Any, schema: JsonObject) -> Rule:
        nodes = self.named_nodes(given).items()
        return _all_parts(
            "dependentSchemas",
            lambda value, budget: ((None, node, value) for name, node in nodes if name in as_object(value)),
        )

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
        own = as_object(given)
        plain = _PLAIN.get(str(own["type"])) if own.keys() == {"type"} else None

        def parts(value: Any, budget: ValidationBudget) -> Iterator[Part]:
            return ((index, node, part) for index, part in enumerate(as_list(value)[start:], start))

        def fits(value: Any, budget: ValidationBudget) -> bool:
            items = as_list(value)[start:]
            if plain is not None and plain.issuperset(map(type, items)):
                return True
            for part in items:  # noqa: SIM110 - as in Node.fits
                if not node.fits(part, budget):
                    return False
            return True

        return Rule(keyword=keyword, fits=fits, parts=parts)

    def prefix_items(self, given: Any, schema: JsonObject) -> Rule:
        nodes = self.nodes(given)

        def parts(value: Any, budget: ValidationBudget) -> Iterator[Part]:
            return ((index, node, part) for index, (node, part) in enumerate(zip(nodes, as_list(value), strict=False)))

        return _all_parts("prefixItems", parts)

    def contains(self, given: Any, schema: JsonObject) -> Rule:
        node = self.node(given)
        least, most = schema.get("minContains", 1), schema.get("maxContains")

        def fits(value: Any, budget: ValidationBudget) -> bool:
            if type(value) is not list:
                return True
            count = sum(node.fits(part, budget) for part in cast(list[Any], value))
            return (type(least) is not int or count >= least) and (
                not self._is_exact or type(most) is not int or count <= most
            )

        return Rule(keyword="contains", fits=fits)

    def all_of(self, given: Any, schema: JsonObject) -> Rule:
        return _each_of("allOf", self.nodes(given))

    def any_of(self, given: Any, schema: JsonObject) -> Rule | None:
        return self._choice("anyOf", given, lambda fitting: fitting > 0)

    def one_of(self, given: Any, schema: JsonObject) -> Rule | None:
        return self._choice("oneOf", given, lambda fitting: fitting == 1 if self._is_exact else fitting > 0)

    def _choice(self, keyword: str, given: Any, is_right: Callable[[int], bool]) -> Rule | None:
        nodes = self.nodes(given)

        def fits(value: Any, budget: ValidationBudget) -> bool:
            fitting = 0
            for node in nodes:
                budget.step()
                fitting += node.fits(value, budget)
                if fitting and keyword == "anyOf":
                    return True
            return is_right(fitting)

        return Rule(keyword=keyword, fits=fits, options=nodes) if nodes else None

    def negation(self, given: Any, schema: JsonObject) -> Rule | None:
        node = self.node(given)

        def fits(value: Any, budget: ValidationBudget) -> bool:
            budget.step()
            return not node.fits(value, budget)

        return Rule(keyword="not", fits=fits) if self._is_exact else None

    def condition(self, given: Any, schema: JsonObject) -> Rule | None:
        test, then, otherwise = (self.node(part) for part in (given, schema.get("then"), schema.get("else")))

        def parts(value: Any, budget: ValidationBudget) -> Iterator[Part]:
            budget.step()
            yield None, then if test.fits(value, budget) else otherwise, value

        return _all_parts("if", parts) if self._is_exact else None

    def reference(self, given: Any, schema: JsonObject) -> Rule | None:
        if not isinstance(given, str) or self._has_inner_ids or (target := resolve_pointer(given, self._whole)) is None:
            return None
        if given not in self._referred:
            self._referred[given] = Node(as_object(target))
            self._fill(self._referred[given], target)
        return _each_of("$ref", (self._referred[given],))


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
_UNCHECKED = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"})


def _all_parts(keyword: str, parts: Callable[[Any, ValidationBudget], Iterable[Part]]) -> Rule:
    def fits(value: Any, budget: ValidationBudget) -> bool:
        for _, node, part in parts(value, budget):  # noqa: SIM110 - as in Node.fits
            if not node.fits(part, budget):
                return False
        return True

    return Rule(keyword=keyword, fits=fits, parts=parts)


def _each_of(keyword: str, nodes: tuple[Node, ...]) -> Rule:
    def parts(value: Any, budget: ValidationBudget) -> Iterator[Part]:
        for node in nodes:
            budget.step()
            yield None, node, value

    return _all_parts(keyword, parts)


def _required(needed: Callable[[JsonObject], list[str]]) -> Rule:
    def missing(value: Any) -> list[str]:
        known = as_object(value)
        return [name for name in needed(known) if name not in known] if type(value) is dict else []

    return Rule(keyword="required", fits=lambda value, budget: not missing(value), names=missing)


def _of_value(test: Callable[[Any], bool]) -> Callable[[Any, ValidationBudget], bool]:
    return lambda value, budget: test(value)


def _passes_unchecked(key: str, given: Any, whole: JsonObject) -> bool:
    if key == "$ref":
        return isinstance(given, str) and resolve_pointer(given, whole) is None
    if key == "pattern":
        return isinstance(given, str) and text_test(given) is None
    if key == "patternProperties":
        return any(text_test(pattern) is None for pattern in as_object(given))
    return key in _UNCHECKED or (key == "$id" and given is not whole.get("$id"))


@dataclass(frozen=True, kw_only=True, slots=True)
class InputValidator:
    """The compiled input schema of a tool."""

    whole: JsonObject
    """The schema as an object, whatever the server sent."""
    compiled: SchemaValidator
    names: frozenset[str]
    is_open: bool
    """Whether the schema explicitly allows unknown names."""

    def accepts(self, given: Any) -> bool:
        """Whether arguments fit as they are, and no name is unknown: there is nothing to repair or to note."""
        return (
            type(given) is dict
            and (self.is_open or cast(JsonObject, given).keys() <= self.names)
            and self.compiled.fits(given)
        )


def input_validator(schema: JsonObject) -> InputValidator:
    whole = as_object(schema)
    root = resolve_ref(whole, whole)
    names = frozenset(as_object(root.get("properties")))
    is_open = "additionalProperties" in root or "patternProperties" in root or not names
    return InputValidator(whole=whole, compiled=compile_schema(schema), names=names, is_open=is_open)

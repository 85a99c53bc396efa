"""Expressions evaluated in a frame of the program without running its code.

Names, stored attributes, items, operators on built-in values, and a few functions of Python's own, at bounded cost;
anything else is refused. Runs in the interpreter of the program: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import ast
import builtins
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, cast

from trysquare.debug.recorder import values as objects
from trysquare.debug.recorder.values import MASK, TEXTS, WouldRun, base_of, is_one, is_plain, kind_of, truth_of

LONGEST = 2000
_DEEPEST = 60
_parsed: dict[str, ast.expr] = {}
REFUSED: dict[Any, str] = {
    ast.NamedExpr: "`:=`", ast.Lambda: "`lambda`", ast.Await: "`await`", ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`", ast.Starred: "`*`",
}  # fmt: skip
"""Syntax that runs or writes something, whatever the values are."""


def parsed(expression: str) -> ast.expr:
    """Parse an expression of bounded size; SyntaxError if it is not one."""
    known = _parsed.get(expression)
    if known is None:
        if len(expression) > LONGEST:
            raise SyntaxError(f"longer than {LONGEST} characters")
        try:
            known = ast.parse(expression.strip(), mode="eval").body
        except (ValueError, MemoryError, RecursionError) as error:
            raise SyntaxError(f"it cannot be parsed: {error}") from None
        _require_flat(known)
        if len(_parsed) > 500:
            _parsed.clear()
        _parsed[expression] = known
    return known


def _require_flat(tree: ast.AST) -> None:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise SyntaxError("nested too deeply")
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]


def refusal_of(expression: str) -> str:
    """Why an expression does not only read, whatever the values are; empty if it may."""
    for node in ast.walk(parsed(expression)):
        if type(node) in REFUSED or (type(node) is ast.Call and _is_unknown(node.func)):
            return REFUSED.get(
                type(node), "it calls a function, and only a few built-in ones are known to change nothing"
            )
        loops = node.generators if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)) else []
        if any(type(part) not in (ast.Name, ast.Tuple, ast.Store) for each in loops for part in ast.walk(each.target)):
            return "a comprehension would write there"
    return ""


def _is_unknown(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return not any(function.attr in names for names in METHODS.values())
    return not isinstance(function, ast.Name) or function.id not in FUNCTIONS


_BITS = 20_000
_PARTS = 50_000


def bounded(work: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The result of an operator; WouldRun if it would take long or much memory."""
    name = work.__name__
    if is_one(type(left), TEXTS) and name == "mod":
        raise WouldRun("`%` of a string is not supported; use an f-string")
    sizes = [each.bit_length() for each in (left, right) if is_one(type(each), (int, bool))]
    if sizes and max(sizes) > _BITS:
        raise WouldRun("a number is too large")
    if name == "pow" and len(sizes) == 2 and sizes[0] * abs(right) > _BITS:
        raise WouldRun("the result is too large")
    if name == "lshift" and right > _BITS:
        raise WouldRun("the result is too large")
    lengths = [_length(each) for each in (left, right)]
    if name == "mul" and any(lengths):
        times = [each for each in (left, right) if is_one(type(each), (int, bool))]
        if times and max(lengths) * max(times[0], 0) > _PARTS:
            raise WouldRun("the result is too large")
    if sum(lengths) > 20 * _PARTS:
        raise WouldRun("a value is too large")
    return work(left, right)


def _length(value: Any) -> int:
    base = base_of(value, "__len__")
    return 0 if base is None or base is range else base.__len__(value)


def _listed(value: Any = ()) -> list[Any]:
    if objects.length_of(value) > 20 * _PARTS:
        raise WouldRun("it iterates over too many items")
    return list(objects.items_of(value))


def _plain(values: list[Any]) -> list[Any]:
    if not all(is_plain(value) for value in values):
        raise WouldRun("only built-in values are supported; another class's code would run")
    return values


def require_small(value: Any) -> None:
    """Refuse a number or a container that is too large."""
    if is_one(type(value), (int,)) and value.bit_length() > _BITS:
        raise WouldRun("a number is too large")
    if _length(value) > _PARTS:
        raise WouldRun("a value is too large")


def _on_plain(work: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        _plain(list(values))
        for each in values:
            require_small(each)
        return work(*values)

    return call


def _pow(base: Any, exponent: Any) -> Any:
    _plain([base, exponent])
    return bounded(_signs.pow, base, exponent)


def _extreme(work: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any, default: Any = objects.MISSING) -> Any:
        parts = _plain(_listed(values[0]) if len(values) == 1 else list(values))
        return default if not parts and default is not objects.MISSING else work(parts)

    return call


def _sum(values: Any, start: Any = 0) -> Any:
    parts = [start, *_listed(values)]
    if not all(is_one(type(each), objects.NUMBERS) for each in parts):
        raise WouldRun("`sum` is supported for numbers only")
    return sum(parts[1:], start)


def _sorted(values: Any, *, reverse: bool = False) -> Any:
    return sorted(_plain(_listed(values)), reverse=bool(truth_of(reverse)))


def _on_items(work: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def call(values: Any = ()) -> Any:
        return work(_listed(values))

    return call


def _is_instance(value: Any, kind: Any) -> bool:
    return _is_subclass(type(value), kind)


def _is_subclass(one: Any, kind: Any) -> bool:
    if type(kind) is tuple:
        return any(_is_subclass(one, each) for each in cast(Any, kind))
    if not (objects.is_class(one) and objects.is_class(kind)):
        raise TypeError("a class is required")
    if is_one(kind, objects.mro(one)):
        return True
    if type(kind) is type:
        return False
    raise WouldRun(f"`{objects.name_of_class(kind)}` decides by its own code what is an instance")


def _has(value: Any, name: Any) -> bool:
    if type(name) is not str:
        raise TypeError("an attribute name must be a string")
    try:
        objects.attribute(value, name)
    except AttributeError:
        return False
    return True


def _is_callable(value: Any) -> bool:
    return objects.in_class(type(value), "__call__") is not objects.MISSING


def _zip(*values: Any) -> list[Any]:
    return list(zip(*(_listed(each) for each in values)))  # noqa: B905 - Python 3.8


def _enumerate(values: Any, start: int = 0) -> list[Any]:
    return list(enumerate(_listed(values), start)) if type(start) is int else []


def _range(*numbers: Any) -> Any:
    return range(*_plain(list(numbers)))


def _dict(values: Any = ()) -> Any:
    if base_of(values, "__getitem__", "__iter__") is not dict:
        raise WouldRun("`dict` is supported for dictionaries only")
    return dict(objects.DICT.items(values))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": _on_plain(abs), "all": _on_items(lambda parts: all(map(truth_of, parts))),
    "any": _on_items(lambda parts: any(map(truth_of, parts))), "ascii": _on_plain(ascii), "bin": _on_plain(bin),
    "bool": truth_of, "bytes": _on_plain(lambda *each: _copied(bytes, *each)), "callable": _is_callable,
    "chr": _on_plain(chr), "complex": _on_plain(complex), "dict": _dict, "divmod": _on_plain(divmod),
    "enumerate": _enumerate, "float": _on_plain(float),
    "frozenset": _on_items(lambda parts: frozenset(_set_of(parts))), "hasattr": _has,
    "hex": _on_plain(hex), "id": id, "int": _on_plain(int), "isinstance": _is_instance, "issubclass": _is_subclass,
    "len": objects.length_of, "list": _listed, "max": _extreme(max), "min": _extreme(min),
    "oct": _on_plain(oct), "ord": _on_plain(ord), "pow": _pow, "range": _range, "repr": _on_plain(repr),
    "reversed": _on_items(lambda parts: parts[::-1]), "round": _on_plain(round),
    "set": _on_items(lambda parts: _set_of(parts)),
    "sorted": _sorted, "str": _on_plain(str), "sum": _sum, "tuple": _on_items(tuple),
    "type": kind_of, "zip": _zip,
}  # fmt: skip
NAMED: dict[str, tuple[str, ...]] = {
    "enumerate": ("start",), "max": ("default",), "min": ("default",), "sorted": ("reverse",), "sum": ("start",),
}  # fmt: skip
"""Keyword arguments that are supported; anything else, such as `key`, could be code."""
METHODS: dict[Any, frozenset[str]] = {
    dict: frozenset({"get", "items", "keys", "values"}),
    str: frozenset(
        {"casefold", "count", "endswith", "find", "isalpha", "isdigit", "isspace", "lower", "lstrip", "rstrip",
         "split", "splitlines", "startswith", "strip", "upper"}
    ),
    bytes: frozenset({"endswith", "find", "startswith"}),
}  # fmt: skip
"""Methods of built-in values, of exactly these types, that change nothing."""


def _copied(kind: Callable[..., Any], *values: Any) -> Any:
    if any(is_one(type(each), (int, bool)) for each in values):
        raise WouldRun("`bytes` of a number is not supported")
    return kind(*values)


_STEPS = 50_000
"""Nodes to evaluate, each counted in every round of a comprehension."""
_signs = cast(Any, operator)
_BINARY: dict[Any, Callable[[Any, Any], Any]] = {
    ast.Add: _signs.add, ast.Sub: _signs.sub, ast.Mult: _signs.mul, ast.Div: _signs.truediv,
    ast.FloorDiv: _signs.floordiv, ast.Mod: _signs.mod, ast.Pow: _signs.pow, ast.LShift: _signs.lshift,
    ast.RShift: _signs.rshift, ast.BitOr: _signs.or_, ast.BitAnd: _signs.and_, ast.BitXor: _signs.xor,
}  # fmt: skip
_ORDER: dict[Any, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[Any, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert}
_SAYS_NOTHING = frozenset({"bool", "callable", "hasattr", "id", "isinstance", "len", "type"})
"""Functions whose result reveals nothing of a secret argument."""
_CONVERSIONS: dict[int, Callable[[Any], str]] = {114: repr, 115: str, 97: ascii}
_FORMAT = re.compile(r"[^0-9]?[<>=^]?[-+ ]?#?0?[0-9]{0,3}[,_]?(\.[0-9]{1,2})?[a-zA-Z%]?")


def evaluate(expression: str, frame: FrameType, convert: Callable[[Any], Any] = lambda value: value) -> tuple[Any, str]:
    """The value and an empty string; or None and the error."""
    try:
        return convert(Evaluator(frame.f_locals, frame.f_globals).value(parsed(expression))), ""
    except Exception as error:  # noqa: BLE001 - a missing value is an answer; no code of the program's ran
        return None, error_text(error)


def condition(expression: str, frame: FrameType) -> tuple[bool, str]:
    """Whether a condition is true and an empty string; or False and the error."""
    is_true, error = evaluate(expression, frame, truth_of)
    return bool(is_true), error


def error_text(error: BaseException) -> str:
    """An error as one line."""
    return f"{type(error).__name__}: {error}"[:300]


class Evaluator:
    """Evaluates expressions in one frame. `is_secret` decides by its name whether a value is a secret."""

    def __init__(
        self,
        local: Any,
        world: Any,
        *,
        is_secret: Callable[[str], bool] = lambda name: False,
        show: Callable[[Any], str] | None = None,
    ) -> None:
        self._scopes: list[Any] = [local, world]
        self._is_secret = is_secret
        self._show = show
        self._steps = 0
        self.saw_secret = False
        """Whether a secret was read."""

    def value(self, node: Any) -> Any:
        """The value of a part of the expression."""
        self._steps += 1
        if self._steps > _STEPS:
            raise WouldRun("too many steps")
        read = _READ.get(type(node))
        if read is None:
            raise WouldRun(f"{REFUSED.get(type(node), 'this syntax')} does not only read")
        return read(self, node)

    def read_constant(self, node: Any) -> Any:
        return node.value

    def read_name(self, node: Any) -> Any:
        found = self._found(node.id)
        self._note(node.id, found)
        return found

    def _found(self, name: str) -> Any:
        for scope in self._scopes:
            found = objects.lookup(scope, name)
            if found is not objects.MISSING:
                return found
        found = _BUILTINS.get(name, objects.MISSING)
        if found is objects.MISSING:
            raise NameError(f"name '{name}' is not defined")
        return found

    def _note(self, name: Any, found: Any) -> None:
        if type(name) is str and not self.saw_secret and self._is_secret(name):
            self.saw_secret = objects.can_be_secret(found)

    def _note_pair(self, holder: Any) -> None:
        """Note a name and its secret, such as a header."""
        base = base_of(holder, "__getitem__")
        if is_one(base, (list, tuple)) and base.__len__(holder) == 2:
            self._note(base.__getitem__(holder, 0), base.__getitem__(holder, 1))

    def read_attribute(self, node: Any) -> Any:
        found = objects.attribute(self.value(node.value), node.attr)
        self._note(node.attr, found)
        return found

    def read_subscript(self, node: Any) -> Any:
        part = node.slice.value if type(node.slice).__name__ == "Index" else node.slice  # Python 3.8
        key = self.value(part)
        holder = self.value(node.value)
        found = objects.item(holder, key)
        self._note(key, found)
        if type(key) is slice or is_one(type(key), (int, bool)):
            self._note_pair(holder)
        return found

    def read_slice(self, node: Any) -> Any:
        return slice(*(None if each is None else self.value(each) for each in (node.lower, node.upper, node.step)))

    def read_binary(self, node: Any) -> Any:
        work = _BINARY.get(type(node.op))
        left, right = self.value(node.left), self.value(node.right)
        if work is None or not (is_plain(left) and is_plain(right)):
            raise WouldRun("operators are supported for built-in values only; another class's would run its code")
        return bounded(work, left, right)

    def read_unary(self, node: Any) -> Any:
        value = self.value(node.operand)
        if type(node.op) is ast.Not:
            return not truth_of(value)
        if not is_one(type(value), objects.NUMBERS):
            raise WouldRun("signs are supported for numbers only; another class's would run its code")
        return _UNARY[type(node.op)](value)

    def read_logic(self, node: Any) -> Any:
        value: Any = None
        for each in node.values:
            value = self.value(each)
            if truth_of(value) is (type(node.op) is ast.Or):
                return value
        return value

    def read_choice(self, node: Any) -> Any:
        return self.value(node.body if truth_of(self.value(node.test)) else node.orelse)

    def read_comparison(self, node: Any) -> Any:
        left = self.value(node.left)
        for sign, each in zip(node.ops, node.comparators):  # noqa: B905 - Python 3.8
            right = self.value(each)
            if not _compared(type(sign), left, right):
                return False
            left = right
        return True

    def read_collection(self, node: Any) -> Any:
        parts: list[Any] = []
        for each in node.elts:
            if type(each) is ast.Starred:
                parts.extend(self._parts(each.value))
            else:
                parts.append(self.value(each))
        if type(node) is ast.List:
            return parts
        return tuple(parts) if type(node) is ast.Tuple else _set_of(parts)

    def read_mapping(self, node: Any) -> Any:
        if any(key is None for key in node.keys):
            raise WouldRun("`**` is not supported")
        pairs = zip(node.keys, node.values)  # noqa: B905 - Python 3.8
        return _dict_of([(self.value(key), self.value(part)) for key, part in pairs])

    def read_comprehension(self, node: Any) -> Any:
        made = list(self._made(node, 0))
        kind = kind_of(node)
        if kind is ast.DictComp:
            return _dict_of(made)
        return _set_of(made) if kind is ast.SetComp else made

    def _made(self, node: Any, level: int) -> Iterable[Any]:
        if level == len(node.generators):
            both = type(node) is ast.DictComp
            yield (self.value(node.key), self.value(node.value)) if both else self.value(node.elt)
            return
        loop = node.generators[level]
        if loop.is_async:
            raise WouldRun("`async for` runs code")
        names: dict[str, Any] = {}
        for part in self._parts(loop.iter):
            self._bind(loop.target, part, names)
            self._scopes.insert(0, names)
            try:
                if all(truth_of(self.value(test)) for test in loop.ifs):
                    yield from self._made(node, level + 1)
            finally:
                self._scopes.pop(0)

    def _bind(self, target: Any, part: Any, names: dict[str, Any]) -> None:
        """Bind the names of a comprehension. Anything else as its target would write."""
        if type(target) is ast.Name:
            names[target.id] = part
            return
        if type(target) is not ast.Tuple:
            raise WouldRun("a comprehension would write there")
        parts = list(objects.items_of(part))
        if len(parts) != len(target.elts):
            raise ValueError(f"expected {len(target.elts)} values, got {len(parts)}")
        self._note_pair(part)
        for each, inner in zip(target.elts, parts):  # noqa: B905 - Python 3.8
            self._bind(each, inner, names)

    def _parts(self, node: Any) -> list[Any]:
        parts: list[Any] = []
        for part in objects.items_of(self.value(node)):
            self._steps += 1
            if self._steps > _STEPS:
                raise WouldRun("it iterates over too many items")
            parts.append(part)
        return parts

    def read_call(self, node: Any) -> Any:
        if any(type(each) is ast.Starred for each in node.args) or any(each.arg is None for each in node.keywords):
            raise WouldRun("`*` and `**` in a call are not supported")
        if type(node.func) is ast.Attribute:
            return self._method(node)
        name = node.func.id if type(node.func) is ast.Name else ""
        work = FUNCTIONS.get(name)
        if work is None:
            raise WouldRun("it calls a function, and only a few built-in ones are known to change nothing")
        if self._found(name) is not _BUILTINS.get(name):
            raise WouldRun(f"`{name}` is redefined by the program")
        before = self.saw_secret
        arguments = [self.value(each) for each in node.args]
        named = {each.arg: self.value(each.value) for each in node.keywords}
        if any(each not in NAMED.get(name, ()) for each in named):
            raise WouldRun(f"`{name}` does not support the arguments {', '.join(named)}")
        if name in _SAYS_NOTHING:
            self.saw_secret = before
        if name in ("str", "repr", "format", "ascii") and self._show is not None and not _is_scalar(arguments):
            return self._show(arguments[0])
        return work(*arguments, **named)

    def _method(self, node: Any) -> Any:
        value = self.value(node.func.value)
        name = node.func.attr
        if not is_one(type(value), METHODS) or name not in METHODS[kind_of(value)]:
            raise WouldRun(f"`.{name}()` would run code that may change something")
        arguments = [self.value(each) for each in node.args]
        if node.keywords or not all(is_plain(each) for each in arguments):
            raise WouldRun(f"`.{name}()` is supported for built-in values only")
        if name == "get":
            try:
                found = objects.item(value, *arguments[:1])
            except KeyError:
                return arguments[1] if len(arguments) > 1 else None
            self._note(arguments[0], found)
            return found
        if name in ("items", "values"):
            pairs = [(key, self._unless_secret(key, part)) for key, part in list(objects.DICT.items(value))]
            return pairs if name == "items" else [part for _, part in pairs]
        return getattr(kind_of(value), name)(value, *arguments)

    def _unless_secret(self, key: Any, part: Any) -> Any:
        is_secret = type(key) is str and self._is_secret(key) and objects.can_be_secret(part)
        return MASK if is_secret else part

    def read_text(self, node: Any) -> Any:
        return "".join(str(self.value(each)) for each in node.values)

    def read_formatted(self, node: Any) -> Any:
        value = self.value(node.value)
        spec = "" if node.format_spec is None else self.value(node.format_spec)
        if not _is_scalar([value]):
            if self._show is None or spec:
                raise WouldRun("formats are supported for built-in values only; another class's `__format__` would run")
            return self._show(value)
        if not _FORMAT.fullmatch(spec):
            raise WouldRun(f"`{spec}` is not a supported format")
        require_small(value)
        shown = _CONVERSIONS.get(node.conversion)
        return format(value if shown is None else shown(value), spec)


def _is_scalar(values: list[Any]) -> bool:
    return all(is_one(type(value), objects.SCALARS) for value in values[:1])


def _compared(sign: Any, left: Any, right: Any) -> bool:
    if sign is ast.Is or sign is ast.IsNot:
        return (left is right) is (sign is ast.Is)
    if sign is ast.Eq or sign is ast.NotEq:
        return objects.are_equal(left, right) is (sign is ast.Eq)
    if sign is ast.In or sign is ast.NotIn:
        return objects.has_item(right, left) is (sign is ast.In)
    if not (is_plain(left) and is_plain(right)):
        raise WouldRun("`<` and `>` are supported for built-in values only; another class's would run its code")
    return _ORDER[sign](left, right)


def _set_of(parts: list[Any]) -> Any:
    _require_keys(parts)
    return set(parts)


def _dict_of(pairs: list[Any]) -> Any:
    _require_keys([key for key, _ in pairs])
    return dict(pairs)


def _require_keys(keys: list[Any]) -> None:
    if not all(objects.is_plain_key(key) for key in keys):
        raise WouldRun("keys must be built-in values; another class's `__hash__` would run")


_BUILTINS: Mapping[str, Any] = dict(vars(builtins))
"""As they were when this was loaded: a program may replace them."""
_READ: dict[Any, Callable[[Evaluator, Any], Any]] = {
    ast.Constant: Evaluator.read_constant, ast.Name: Evaluator.read_name, ast.Attribute: Evaluator.read_attribute,
    ast.Subscript: Evaluator.read_subscript, ast.Slice: Evaluator.read_slice, ast.BinOp: Evaluator.read_binary,
    ast.UnaryOp: Evaluator.read_unary, ast.BoolOp: Evaluator.read_logic, ast.IfExp: Evaluator.read_choice,
    ast.Compare: Evaluator.read_comparison, ast.List: Evaluator.read_collection, ast.Tuple: Evaluator.read_collection,
    ast.Set: Evaluator.read_collection, ast.Dict: Evaluator.read_mapping, ast.ListComp: Evaluator.read_comprehension,
    ast.SetComp: Evaluator.read_comprehension, ast.DictComp: Evaluator.read_comprehension,
    ast.GeneratorExp: Evaluator.read_comprehension, ast.Call: Evaluator.read_call, ast.JoinedStr: Evaluator.read_text,
    ast.FormattedValue: Evaluator.read_formatted,
}  # fmt: skip

"""Evaluating: an expression of the caller's, read off a frame of the program by walking over it: no code is run.

Names, stored attributes, items, operators on built-in values, and a few functions of Python's own. Whatever else an
expression asks for is refused. It runs in the interpreter of the program: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import ast
import builtins
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, cast

from trysquare.debug.recorder import stored
from trysquare.debug.recorder.expressions import REFUSED, parsed
from trysquare.debug.recorder.functions import FUNCTIONS, METHODS, NAMED, bounded, require_small
from trysquare.debug.recorder.stored import WouldRun

_STEPS = 50_000
"""Parts of the expression that are walked over, each as often as a comprehension comes to it."""
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
"""Functions whose outcome tells nothing of a secret that they are given."""
_CONVERSIONS: dict[int, Callable[[Any], str]] = {114: repr, 115: str, 97: ascii}
_FORMAT = re.compile(r"[^0-9]?[<>=^]?[-+ ]?#?0?[0-9]{0,3}[,_]?(\.[0-9]{1,2})?[a-zA-Z%]?")


def evaluate(expression: str, frame: FrameType) -> tuple[Any, str]:
    """The value, and an empty text; or None, and what went wrong."""
    try:
        return Reading(frame.f_locals, frame.f_globals).value(parsed(expression)), ""
    except Exception as error:  # noqa: BLE001 - that it has no value is an answer; no code but ours and Python's ran
        return None, told(error)


def condition(expression: str, frame: FrameType) -> tuple[bool, str]:
    """Whether a condition is true, and an empty text; or False, and why nobody can tell."""
    try:
        return stored.truth_of(Reading(frame.f_locals, frame.f_globals).value(parsed(expression))), ""
    except Exception as error:  # noqa: BLE001 - as above
        return False, told(error)


def holds(expression: str, frame: FrameType) -> bool:
    """Whether a condition is true; one on names that the frame has not is not."""
    return condition(expression, frame)[0]


def told(error: BaseException) -> str:
    """An error of an expression, as one line."""
    return f"{type(error).__name__}: {error}"[:300]


class Reading:
    """Reads expressions off one frame. `is_secret` tells names whose values are nobody's business."""

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
        """Whether a secret was read on the way to the value."""

    def value(self, node: Any) -> Any:
        """The value of a part of the expression."""
        self._steps += 1
        if self._steps > _STEPS:
            raise WouldRun("it takes too many steps")
        read = _READ.get(type(node))
        if read is None:
            raise WouldRun(f"{REFUSED.get(type(node), 'this')} is not something that only reads")
        return read(self, node)

    def read_constant(self, node: Any) -> Any:
        """A literal."""
        return node.value

    def read_name(self, node: Any) -> Any:
        """What the frame has under a name."""
        found = self._found(node.id)
        self._note(node.id, found)
        return found

    def _found(self, name: str) -> Any:
        for scope in self._scopes:
            found = stored.named(scope, name)
            if found is not stored.MISSING:
                return found
        found = _BUILTINS.get(name, stored.MISSING)
        if found is stored.MISSING:
            raise NameError(f"name '{name}' is not defined")
        return found

    def _note(self, name: Any, found: Any) -> None:
        if type(name) is str and not self.saw_secret and self._is_secret(name):
            self.saw_secret = stored.can_be_secret(found)

    def _note_pair(self, holder: Any) -> None:
        """A name and its secret, such as a header, is told by its first part."""
        base = stored.base_of(holder, "__getitem__")
        if stored.is_one(base, (list, tuple)) and base.__len__(holder) == 2:
            self._note(base.__getitem__(holder, 0), base.__getitem__(holder, 1))

    def read_attribute(self, node: Any) -> Any:
        """`value.name`."""
        found = stored.attribute(self.value(node.value), node.attr)
        self._note(node.attr, found)
        return found

    def read_subscript(self, node: Any) -> Any:
        """`value[key]`."""
        part = node.slice.value if type(node.slice).__name__ == "Index" else node.slice  # Python 3.8
        key = self.value(part)
        holder = self.value(node.value)
        found = stored.item(holder, key)
        self._note(key, found)
        if type(key) is slice or stored.is_one(type(key), (int, bool)):
            self._note_pair(holder)
        return found

    def read_slice(self, node: Any) -> Any:
        """`a:b:c`."""
        return slice(*(None if each is None else self.value(each) for each in (node.lower, node.upper, node.step)))

    def read_binary(self, node: Any) -> Any:
        """`a + b` and the like."""
        work = _BINARY.get(type(node.op))
        left, right = self.value(node.left), self.value(node.right)
        if work is None or not (stored.is_plain(left) and stored.is_plain(right)):
            raise WouldRun("operators work on built-in values only; another class's would run its code")
        return bounded(work, left, right)

    def read_unary(self, node: Any) -> Any:
        """`-a`, `not a`."""
        value = self.value(node.operand)
        if type(node.op) is ast.Not:
            return not stored.truth_of(value)
        if not stored.is_one(type(value), stored.NUMBERS):
            raise WouldRun("a sign works on numbers only; another class's would run its code")
        return _UNARY[type(node.op)](value)

    def read_logic(self, node: Any) -> Any:
        """`a and b`, `a or b`."""
        value: Any = None
        for each in node.values:
            value = self.value(each)
            if stored.truth_of(value) is (type(node.op) is ast.Or):
                return value
        return value

    def read_choice(self, node: Any) -> Any:
        """`a if b else c`."""
        return self.value(node.body if stored.truth_of(self.value(node.test)) else node.orelse)

    def read_comparison(self, node: Any) -> Any:
        """`a < b`, `a in b`, `a is b`."""
        left = self.value(node.left)
        for sign, each in zip(node.ops, node.comparators):  # noqa: B905 - Python 3.8
            right = self.value(each)
            if not _compared(type(sign), left, right):
                return False
            left = right
        return True

    def read_collection(self, node: Any) -> Any:
        """`[a, b]`, `(a, b)`, `{a, b}`."""
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
        """`{a: b}`."""
        if any(key is None for key in node.keys):
            raise WouldRun("`**` is not read here")
        pairs = zip(node.keys, node.values)  # noqa: B905 - Python 3.8
        return _dict_of([(self.value(key), self.value(part)) for key, part in pairs])

    def read_comprehension(self, node: Any) -> Any:
        """`[a for b in c]` and the like; all of it at once."""
        made = list(self._made(node, 0))
        kind = stored.kind_of(node)
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
                if all(stored.truth_of(self.value(test)) for test in loop.ifs):
                    yield from self._made(node, level + 1)
            finally:
                self._scopes.pop(0)

    def _bind(self, target: Any, part: Any, names: dict[str, Any]) -> None:
        """Give a comprehension's names their values. Nothing else can be its target: that would write."""
        if type(target) is ast.Name:
            names[target.id] = part
            return
        if type(target) is not ast.Tuple:
            raise WouldRun("a comprehension would write there")
        parts = list(stored.items_of(part))
        if len(parts) != len(target.elts):
            raise ValueError(f"{len(target.elts)} values were expected, and there are {len(parts)}")
        self._note_pair(part)
        for each, inner in zip(target.elts, parts):  # noqa: B905 - Python 3.8
            self._bind(each, inner, names)

    def _parts(self, node: Any) -> list[Any]:
        parts: list[Any] = []
        for part in stored.items_of(self.value(node)):
            self._steps += 1
            if self._steps > _STEPS:
                raise WouldRun("it goes through too many parts")
            parts.append(part)
        return parts

    def read_call(self, node: Any) -> Any:
        """A call of one of Python's own functions that are known."""
        if any(type(each) is ast.Starred for each in node.args) or any(each.arg is None for each in node.keywords):
            raise WouldRun("`*` and `**` in a call are not read here")
        if type(node.func) is ast.Attribute:
            return self._method(node)
        name = node.func.id if type(node.func) is ast.Name else ""
        work = FUNCTIONS.get(name)
        if work is None:
            raise WouldRun("it calls a function, and only a few of Python's own are known to change nothing")
        if self._found(name) is not _BUILTINS.get(name):
            raise WouldRun(f"`{name}` is the program's own function here")
        before = self.saw_secret
        arguments = [self.value(each) for each in node.args]
        named = {each.arg: self.value(each.value) for each in node.keywords}
        if any(each not in NAMED.get(name, ()) for each in named):
            raise WouldRun(f"`{name}` is not given {', '.join(named)} here")
        if name in _SAYS_NOTHING:
            self.saw_secret = before
        if name in ("str", "repr", "format", "ascii") and self._show is not None and not _is_scalar(arguments):
            return self._show(arguments[0])
        return work(*arguments, **named)

    def _method(self, node: Any) -> Any:
        value = self.value(node.func.value)
        name = node.func.attr
        if not stored.is_one(type(value), METHODS) or name not in METHODS[stored.kind_of(value)]:
            raise WouldRun(f"`.{name}()` would run code that may change something")
        arguments = [self.value(each) for each in node.args]
        if node.keywords or not all(stored.is_plain(each) for each in arguments):
            raise WouldRun(f"`.{name}()` takes built-in values only here")
        if name == "get":
            try:
                found = stored.item(value, *arguments[:1])
            except KeyError:
                return arguments[1] if len(arguments) > 1 else None
            self._note(arguments[0], found)
            return found
        if name in ("items", "values"):
            pairs = [(key, self._unless_secret(key, part)) for key, part in list(stored.DICT.items(value))]
            return pairs if name == "items" else [part for _, part in pairs]
        return getattr(stored.kind_of(value), name)(value, *arguments)

    def _unless_secret(self, key: Any, part: Any) -> Any:
        is_secret = type(key) is str and self._is_secret(key) and stored.can_be_secret(part)
        return "***" if is_secret else part

    def read_text(self, node: Any) -> Any:
        """An f-string."""
        return "".join(str(self.value(each)) for each in node.values)

    def read_formatted(self, node: Any) -> Any:
        """A part of an f-string in braces."""
        value = self.value(node.value)
        spec = "" if node.format_spec is None else self.value(node.format_spec)
        if not _is_scalar([value]):
            if self._show is None or spec:
                raise WouldRun("only built-in values are formatted; another class's `__format__` would run")
            return self._show(value)
        if not _FORMAT.fullmatch(spec):
            raise WouldRun(f"`{spec}` is not a plain format")
        require_small(value)
        shown = _CONVERSIONS.get(node.conversion)
        return format(value if shown is None else shown(value), spec)


def _is_scalar(values: list[Any]) -> bool:
    return all(stored.is_one(type(value), stored.SCALARS) for value in values[:1])


def _compared(sign: Any, left: Any, right: Any) -> bool:
    if sign is ast.Is or sign is ast.IsNot:
        return (left is right) is (sign is ast.Is)
    if sign is ast.Eq or sign is ast.NotEq:
        return stored.are_equal(left, right) is (sign is ast.Eq)
    if sign is ast.In or sign is ast.NotIn:
        return stored.holds_item(right, left) is (sign is ast.In)
    if not (stored.is_plain(left) and stored.is_plain(right)):
        raise WouldRun("`<` and `>` work on built-in values only; another class's would run its code")
    return _ORDER[sign](left, right)


def _set_of(parts: list[Any]) -> Any:
    _require_keys(parts)
    return set(parts)


def _dict_of(pairs: list[Any]) -> Any:
    _require_keys([key for key, _ in pairs])
    return dict(pairs)


def _require_keys(keys: list[Any]) -> None:
    if not all(stored.is_plain_key(key) for key in keys):
        raise WouldRun("keys are built-in values only; another class's `__hash__` would run")


_BUILTINS: Mapping[str, Any] = dict(vars(builtins))
"""As they were when this was loaded: a program may put others in their places."""
_READ: dict[Any, Callable[[Reading, Any], Any]] = {
    ast.Constant: Reading.read_constant, ast.Name: Reading.read_name, ast.Attribute: Reading.read_attribute,
    ast.Subscript: Reading.read_subscript, ast.Slice: Reading.read_slice, ast.BinOp: Reading.read_binary,
    ast.UnaryOp: Reading.read_unary, ast.BoolOp: Reading.read_logic, ast.IfExp: Reading.read_choice,
    ast.Compare: Reading.read_comparison, ast.List: Reading.read_collection, ast.Tuple: Reading.read_collection,
    ast.Set: Reading.read_collection, ast.Dict: Reading.read_mapping, ast.ListComp: Reading.read_comprehension,
    ast.SetComp: Reading.read_comprehension, ast.DictComp: Reading.read_comprehension,
    ast.GeneratorExp: Reading.read_comprehension, ast.Call: Reading.read_call, ast.JoinedStr: Reading.read_text,
    ast.FormattedValue: Reading.read_formatted,
}  # fmt: skip

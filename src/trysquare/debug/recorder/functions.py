"""Functions of Python's own that an expression may use: each does its work on built-in values only, at bounded cost.

It runs in the interpreter of the program: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from trysquare.debug.recorder import stored
from trysquare.debug.recorder.stored import WouldRun

_BITS = 20_000
_PARTS = 50_000
_TEXTS = (str, bytes, bytearray)


def bounded(work: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The outcome of an operator, refused where it would take long or much memory."""
    name = work.__name__
    if stored.is_one(type(left), _TEXTS) and name == "mod":
        raise WouldRun("`%` of a text is not read here; write an f-string")
    sizes = [_bits(each) for each in (left, right) if stored.is_one(type(each), (int, bool))]
    if sizes and max(sizes) > _BITS:
        raise WouldRun("it works with numbers that are too large")
    if name == "pow" and len(sizes) == 2 and sizes[0] * abs(right) > _BITS:
        raise WouldRun("its outcome is too large a number")
    if name == "lshift" and right > _BITS:
        raise WouldRun("its outcome is too large a number")
    lengths = [_length(each) for each in (left, right)]
    if name == "mul" and any(lengths):
        times = [each for each in (left, right) if stored.is_one(type(each), (int, bool))]
        if times and max(lengths) * max(times[0], 0) > _PARTS:
            raise WouldRun("its outcome is too large")
    if sum(lengths) > 20 * _PARTS:
        raise WouldRun("it works with too large values")
    return work(left, right)


def _bits(value: int) -> int:
    return value.bit_length()


def _length(value: Any) -> int:
    base = stored.base_of(value, "__len__")
    return 0 if base is None or base is range else base.__len__(value)


def _listed(value: Any) -> list[Any]:
    """The parts of a built-in container, where they are not too many."""
    if stored.length_of(value) > 20 * _PARTS:
        raise WouldRun("it goes through too many parts")
    return list(stored.items_of(value))


def _plain(values: list[Any]) -> list[Any]:
    if not all(stored.is_plain(value) for value in values):
        raise WouldRun("it works on built-in values only; another class's code would run")
    return values


def require_small(value: Any) -> None:
    """Refuse a number or a text that is too large to be worked with."""
    if stored.is_one(type(value), (int,)) and _bits(value) > _BITS:
        raise WouldRun("it works with numbers that are too large")
    if _length(value) > _PARTS:
        raise WouldRun("it works with too large values")


def _on_plain(work: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's own whose arguments are built-in values."""

    def call(*values: Any) -> Any:
        _plain(list(values))
        for each in values:
            require_small(each)
        return work(*values)

    return call


def _pow(base: Any, exponent: Any) -> Any:
    _plain([base, exponent])
    return bounded(pow_, base, exponent)


def pow_(base: Any, exponent: Any) -> Any:
    return base**exponent


pow_.__name__ = "pow"


def _extreme(work: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any, default: Any = stored.MISSING) -> Any:
        parts = _plain(_listed(values[0]) if len(values) == 1 else list(values))
        return default if not parts and default is not stored.MISSING else work(parts)

    return call


def _sum(values: Any, start: Any = 0) -> Any:
    parts = [start, *_listed(values)]
    if not all(stored.is_one(type(each), stored.NUMBERS) for each in parts):
        raise WouldRun("`sum` adds numbers only here")
    return sum(parts[1:], start)


def _sorted(values: Any, *, reverse: bool = False) -> Any:
    return sorted(_plain(_listed(values)), reverse=bool(stored.truth_of(reverse)))


def _keys(kind: Callable[..., Any]) -> Callable[..., Any]:
    def call(values: Any = ()) -> Any:
        parts = _listed(values)
        if not all(stored.is_plain_key(part) for part in parts):
            raise WouldRun("another class's `__hash__` would run")
        return kind(parts)

    return call


def _is_instance(value: Any, kind: Any) -> bool:
    return _is_subclass(type(value), kind)


def _is_subclass(one: Any, kind: Any) -> bool:
    if type(kind) is tuple:
        return any(_is_subclass(one, each) for each in cast(Any, kind))
    if not (stored.is_class(one) and stored.is_class(kind)):
        raise TypeError("a class is needed")
    if stored.is_one(kind, stored.mro(one)):
        return True
    if type(kind) is type:
        return False
    raise WouldRun(f"`{stored.name_of_class(kind)}` decides by its own code what belongs to it")


def _has(value: Any, name: Any) -> bool:
    if type(name) is not str:
        raise TypeError("an attribute's name is a text")
    try:
        stored.attribute(value, name)
    except AttributeError:
        return False
    return True


def _is_callable(value: Any) -> bool:
    return stored.in_class(type(value), "__call__") is not stored.MISSING


def _all(values: Any) -> bool:
    return all(stored.truth_of(part) for part in _listed(values))


def _any(values: Any) -> bool:
    return any(stored.truth_of(part) for part in _listed(values))


def _zip(*values: Any) -> list[Any]:
    return list(zip(*(_listed(each) for each in values)))  # noqa: B905 - Python 3.8


def _enumerate(values: Any, start: int = 0) -> list[Any]:
    return list(enumerate(_listed(values), start)) if type(start) is int else []


def _range(*numbers: Any) -> Any:
    return range(*_plain(list(numbers)))


def _list(values: Any = ()) -> list[Any]:
    return _listed(values)


def _tuple(values: Any = ()) -> tuple[Any, ...]:
    return tuple(_listed(values))


def _reversed(values: Any) -> list[Any]:
    return _listed(values)[::-1]


def _dict(values: Any = ()) -> Any:
    if stored.base_of(values, "__getitem__", "__iter__") is not dict:
        raise WouldRun("`dict` copies a dictionary only here")
    return dict(stored.DICT.items(values))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": _on_plain(abs), "all": _all, "any": _any, "ascii": _on_plain(ascii), "bin": _on_plain(bin),
    "bool": stored.truth_of, "bytes": _on_plain(lambda *each: _copied(bytes, *each)), "callable": _is_callable,
    "chr": _on_plain(chr), "complex": _on_plain(complex), "dict": _dict, "divmod": _on_plain(divmod),
    "enumerate": _enumerate, "float": _on_plain(float), "frozenset": _keys(frozenset), "hasattr": _has,
    "hex": _on_plain(hex), "id": id, "int": _on_plain(int), "isinstance": _is_instance, "issubclass": _is_subclass,
    "len": stored.length_of, "list": _list, "max": _extreme(max), "min": _extreme(min),
    "oct": _on_plain(oct), "ord": _on_plain(ord), "pow": _pow, "range": _range, "repr": _on_plain(repr),
    "reversed": _reversed, "round": _on_plain(round), "set": _keys(set),
    "sorted": _sorted, "str": _on_plain(str), "sum": _sum, "tuple": _tuple,
    "type": stored.kind_of, "zip": _zip,
}  # fmt: skip
NAMED: dict[str, tuple[str, ...]] = {
    "enumerate": ("start",), "max": ("default",), "min": ("default",), "sorted": ("reverse",), "sum": ("start",),
}  # fmt: skip
"""What these may be given by name; anything else, such as `key`, could be code."""
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
    if any(stored.is_one(type(each), (int, bool)) for each in values):
        raise WouldRun("a number of empty bytes is not made here")
    return kind(*values)

"""What a value keeps, read without running any code of its class: attributes, items, truth, length.

Everything here looks types up by identity: `==`, `in`, `isinstance` and `hash` ask classes and their metaclasses, which
may be the program's. It runs in the interpreter of the program: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import collections
import inspect
import types
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

MISSING: Any = object()
DICT: Any = dict
NUMBERS = (int, float, complex, bool)
SCALARS = (int, float, complex, bool, str, bytes, type(None), type(...))
SEQUENCES = (list, tuple, str, bytes, bytearray, range, collections.deque)
SETS = (set, frozenset)
_VIEWS = cast(Any, (type(DICT().keys()), type(DICT().values()), type(DICT().items())))
_HOLDERS = (*SEQUENCES, *SETS, dict)
_SCALAR_IDS = frozenset(id(kind) for kind in SCALARS)
_PLAIN_IN_CLASSES = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType, staticmethod, classmethod,
)  # fmt: skip
_READABLE_BY_C = frozenset({"builtins", "datetime", "decimal", "collections", "_collections", "functools", "numpy"})
"""Modules whose attributes written in C only read what is there."""
_mro_of: Any = type.__dict__["__mro__"].__get__
_dict_of_class: Any = type.__dict__["__dict__"].__get__
_dict_of_module: Any = cast(Any, vars(types.ModuleType))["__dict__"].__get__


class WouldRun(Exception):
    """What was asked for takes code of the program's to run, or may change something."""


def kind_of(value: Any) -> Any:
    """A value's class."""
    return cast(Any, type(value))


def is_one(kind: Any, kinds: Any) -> bool:
    """Whether a type is one of these types themselves."""
    return any(kind is each for each in kinds)


def mro(kind: Any) -> Any:
    """A class and those that it is made from."""
    return _mro_of(kind)


def is_kind_of(value: Any, kind: Any) -> bool:
    """Whether a value's class is made from another, whatever the value says of itself."""
    return is_one(kind, mro(type(value)))


def is_class(value: Any) -> bool:
    """Whether a value is a class."""
    return is_kind_of(value, type)


def name_of_class(kind: Any) -> str:
    """A class's name, as it was written."""
    return type.__dict__["__qualname__"].__get__(kind)


def in_class(kind: Any, name: str) -> Any:
    """What a class or one that it is made from keeps under a name, as it is kept."""
    for base in mro(kind):
        found = _dict_of_class(base).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def own_dict(value: Any) -> Any:
    """The dictionary in which a value keeps its attributes, or None."""
    if is_kind_of(value, types.ModuleType):
        return _dict_of_module(value)
    for base in mro(type(value)):
        found = _dict_of_class(base).get("__dict__", MISSING)
        if found is not MISSING:
            kept = found.__get__(value) if type(found) is types.GetSetDescriptorType else None
            return kept if is_kind_of(kept, dict) else None
    return None


def attribute(value: Any, name: str) -> Any:
    """What a value keeps under a name. `WouldRun` where code makes it; AttributeError where there is nothing."""
    if is_class(value):
        return _of_class(value, name)
    if name == "__class__":
        return kind_of(value)
    kept = own_dict(value)
    own = MISSING if kept is None else DICT.get(kept, name, MISSING)
    if name == "__dict__" and kept is not None:
        return kept
    found = in_class(type(value), name)
    if is_kind_of(value, types.ModuleType) and own is not MISSING:
        return own
    if found is not MISSING and not _is_plain_in_class(found):
        return _described(value, name, found, kept, own)
    if own is not MISSING:
        return own
    if found is not MISSING:
        return found
    if in_class(type(value), "__getattr__") is not MISSING:
        raise WouldRun(f"`{name}` is not stored: {name_of_class(type(value))}.__getattr__ would make it")
    raise AttributeError(f"'{name_of_class(type(value))}' object has no attribute '{name}'")


def _described(value: Any, name: str, found: Any, kept: Any, own: Any) -> Any:
    """An attribute that a descriptor stands for: a slot is read, a property is not run."""
    kind = kind_of(found)
    if kind is types.MemberDescriptorType or kind is _TUPLE_FIELD:
        return found.__get__(value)
    if kind is types.GetSetDescriptorType and _module_of(found.__objclass__) in _READABLE_BY_C:
        return found.__get__(value)
    if kept is not None and name in ("value", "name") and _module_of(kind) in ("enum", "types"):
        # A member of an enumeration: both are properties over what it keeps.
        stored = DICT.get(kept, f"_{name}_", MISSING)
        if stored is not MISSING:
            return stored
    is_data = in_class(kind, "__set__") is not MISSING or in_class(kind, "__delete__") is not MISSING
    if own is not MISSING and not is_data:
        return own
    raise WouldRun(f"`{name}` of {name_of_class(type(value))} is a property, and reading it would run code")


def _of_class(value: Any, name: str) -> Any:
    members = _dict_of_class(value).get("_member_map_")
    if type(members) is dict and name in members:
        return cast(Any, members)[name]
    found = in_class(value, name)
    if name in ("__name__", "__qualname__", "__mro__", "__bases__"):
        return type.__dict__[name].__get__(value)
    if found is MISSING:
        if type(value) is not type and in_class(type(value), name) is not MISSING:
            raise WouldRun(f"`{name}` is made by the metaclass of {name_of_class(value)}")
        raise AttributeError(f"type object '{name_of_class(value)}' has no attribute '{name}'")
    if _is_plain_in_class(found):
        return found
    raise WouldRun(f"`{name}` of {name_of_class(value)} is a property, and reading it would run code")


def _is_plain_in_class(found: Any) -> bool:
    """Whether something in a class is a value or a function, and no descriptor that makes one."""
    kind = kind_of(found)
    return is_one(kind, _PLAIN_IN_CLASSES) or is_class(found) or in_class(kind, "__get__") is MISSING


def _module_of(kind: Any) -> str:
    found = _dict_of_class(kind).get("__module__") if is_class(kind) else None
    if type(found) is not str:
        found = type.__dict__["__module__"].__get__(kind)
    return found.partition(".")[0] if type(found) is str else ""


def attributes(value: Any) -> dict[str, Any]:
    """All that a value keeps by name: its dictionary and its slots."""
    found: dict[str, Any] = {}
    kept = own_dict(value)
    if kept is not None:
        found.update((name, part) for name, part in list(DICT.items(kept)) if type(name) is str)
    for base in mro(type(value)):
        for name, member in list(_dict_of_class(base).items()):
            if type(member) is types.MemberDescriptorType and type(name) is str and base is not type:
                try:
                    found.setdefault(name, member.__get__(value))
                except AttributeError:
                    continue
    return found


def base_of(value: Any, *methods: str) -> Any:
    """The built-in container whose own methods a value has, or None where its class has others."""
    kind = kind_of(value)
    if is_one(kind, (*_HOLDERS, *_VIEWS)):
        return kind
    base = next((each for each in mro(kind) if is_one(each, _HOLDERS)), None)
    if base is None:
        return None
    same = all(in_class(kind, method) is in_class(base, method) for method in methods)
    return base if same else None


def items_of(value: Any) -> Iterator[Any]:
    """The parts of a built-in container, one after the other; `WouldRun` for anything else."""
    base = base_of(value, "__iter__")
    if base is None:
        raise WouldRun(f"going through {_described_kind(value)} would run code or use it up")
    return base.__iter__(value)


def length_of(value: Any) -> int:
    """How many parts a built-in container has."""
    base = base_of(value, "__len__")
    if base is None:
        raise WouldRun(f"the length of {_described_kind(value)} would be told by its own code")
    return base.__len__(value)


def truth_of(value: Any) -> bool:
    """Whether a value counts as true."""
    kind = kind_of(value)
    if is_one(kind, SCALARS):
        return bool(value)
    base = base_of(value, "__len__")
    if base is not None and in_class(kind, "__bool__") is MISSING:
        return base.__len__(value) > 0
    if in_class(kind, "__bool__") is MISSING and in_class(kind, "__len__") is MISSING:
        return True
    raise WouldRun(f"whether {_described_kind(value)} is true would be told by its own code")


def is_plain_key(key: Any) -> bool:
    """Whether looking a key up runs no code of its own."""
    kind = kind_of(key)
    return id(kind) in _SCALAR_IDS or (kind is tuple and all(is_plain_key(part) for part in key))


def _have_plain_keys(given: Any) -> bool:
    keys = list(given)
    kinds = set(map(id, map(type, keys)))
    return kinds <= _SCALAR_IDS or all(is_plain_key(key) for key in keys)


def item(value: Any, key: Any) -> Any:
    """A part of a built-in container by its index or key."""
    base = base_of(value, "__getitem__")
    if base is dict:
        return _entry(value, key)
    if base is None or not is_one(base, SEQUENCES):
        raise WouldRun(f"`[]` of {_described_kind(value)} would run its own code")
    parts = (key.start, key.stop, key.step) if type(key) is slice else (key,)
    if not all(is_one(type(part), (int, bool, type(None))) for part in parts):
        raise TypeError("an index is a whole number")
    return base.__getitem__(value, key)


def _entry(value: Any, key: Any) -> Any:
    """A value of a dictionary. Neither `__missing__` nor a key's own `__eq__` is run."""
    found = MISSING
    if is_plain_key(key) and _have_plain_keys(DICT.keys(value)):
        found = DICT.get(value, key, MISSING)
    else:
        for each, part in list(DICT.items(value)):
            if each is key or (is_plain_key(each) and is_plain_key(key) and each == key):
                found = part
                break
    if found is MISSING:
        raise KeyError(key if is_plain_key(key) else name_of_class(type(key)))
    return found


def holds_item(value: Any, wanted: Any) -> bool:
    """Whether a built-in container has a part."""
    kind = kind_of(value)
    if is_one(kind, (str, bytes, bytearray)):
        if not is_one(type(wanted), (str, bytes, bytearray, int)):
            raise TypeError("a text is looked for in a text")
        return wanted in value
    if kind is range:
        return is_one(type(wanted), NUMBERS) and wanted in value
    base = base_of(value, "__contains__", "__iter__")
    if base is None:
        raise WouldRun(f"`in` of {_described_kind(value)} would run its own code or use it up")
    if is_one(base, (dict, *SETS)) and is_plain_key(wanted) and _have_plain_keys(base.__iter__(value)):
        return base.__contains__(value, wanted)
    return any(part is wanted or are_equal(part, wanted) for part in base.__iter__(value))


def are_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, where telling that runs no code of theirs."""
    if is_plain(one) and is_plain(other):
        return bool(one == other)
    if all(in_class(type(each), "__eq__") is object.__eq__ or is_plain(each) for each in (one, other)):
        return one is other
    if any(is_class(each) and type(each) is type for each in (one, other)):
        return one is other
    which = one if not is_plain(one) else other
    raise WouldRun(f"comparing {_described_kind(which)} would run its own code")


def is_plain(value: Any, left: list[int] | None = None, depth: int = 20) -> bool:
    """Whether a value is made of nothing but built-in types, all the way down; what is too large or deep is not."""
    left = left if left is not None else [20_000]
    kind = kind_of(value)
    if is_one(kind, SCALARS) or kind is range or kind is bytearray:
        return True
    if not is_one(kind, _HOLDERS) or depth == 0:
        return False
    left[0] -= kind.__len__(value)
    if left[0] < 0:
        return False
    parts = [*DICT.keys(value), *DICT.values(value)] if kind is dict else list(value)
    return all(is_plain(part, left, depth - 1) for part in parts)


def _described_kind(value: Any) -> str:
    name = name_of_class(type(value))
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} `{name}`"


def can_be_secret(value: Any) -> bool:
    """Whether a value may hold a secret: texts, and built-in containers, which may hold texts."""
    return is_one(type(value), (str, bytes, bytearray)) or base_of(value) is not None


def named(scope: Any, name: str) -> Any:
    """What a scope of a frame has under a name."""
    if is_kind_of(scope, dict):
        return DICT.get(scope, name, MISSING)
    if type(scope) is _FRAME_LOCALS:
        return scope.get(name, MISSING)
    raise WouldRun("the names of this frame are looked up by code of the program's")


def names_in(scope: Any) -> list[tuple[str, Any]]:
    """All names of a scope and what they stand for."""
    if is_kind_of(scope, dict):
        pairs = list(DICT.items(scope))
    elif type(scope) is _FRAME_LOCALS:
        pairs = list(scope.items())
    else:
        return []
    return [(name, value) for name, value in pairs if type(name) is str]


def _locals_kind() -> Any:
    frame = inspect.currentframe()
    return dict if frame is None else type(frame.f_locals)


class _Pair(NamedTuple):
    one: int


_TUPLE_FIELD: Any = kind_of(vars(_Pair)["one"])
_FRAME_LOCALS: Any = _locals_kind()
"""What a function's frame has its names in: a dictionary, or since Python 3.13 a view of the frame."""


def kept_in_class(kind: Any) -> list[Any]:
    """What a class itself keeps; of methods the functions behind them."""
    found = list(_dict_of_class(kind).values())
    return [each.__func__ if is_one(type(each), (staticmethod, classmethod)) else each for each in found]

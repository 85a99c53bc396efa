"""Values read and rendered as bounded texts, without running any code of their classes.

Types are compared by identity: `==`, `in`, `isinstance` and `hash` call classes and their metaclasses, which may be the
program's. Runs in the interpreter of the program, and alone: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import collections
import itertools
import re
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

MISSING: Any = object()
DICT: Any = dict
NUMBERS = (int, float, complex, bool)
SCALARS = (int, float, complex, bool, str, bytes, type(None), type(...))
SEQUENCES = (list, tuple, str, bytes, bytearray, range, collections.deque)
SETS = (set, frozenset)
TEXTS = (str, bytes, bytearray)
LONGEST = 4000
MASK = "***"
_SHORT = 120
_MAX_PARTS = 300
_MAX_BITS = 4000
_VIEWS = cast(Any, (type(DICT().keys()), type(DICT().values()), type(DICT().items())))
_CONTAINERS = (*SEQUENCES, *SETS, dict)
_SCALAR_IDS = frozenset(id(kind) for kind in SCALARS)
_CONTAINER_IDS = frozenset(id(kind) for kind in (*_CONTAINERS, *_VIEWS))
_SUSPENDABLE = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_FUNCTIONS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType,
    types.WrapperDescriptorType,
)  # fmt: skip
_PLAIN_IN_CLASSES = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType, staticmethod, classmethod,
)  # fmt: skip
_READABLE_BY_C = frozenset({"builtins", "datetime", "decimal", "collections", "_collections", "functools", "numpy"})
"""Modules whose attributes written in C only read."""
_OWN_REPR = {
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "uuid": ("UUID",),
    "pathlib": ("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath"),
    "numpy": ("bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
              "float32", "float64", "complex64", "complex128", "str_", "datetime64", "timedelta64"),
}  # fmt: skip
"""Classes of libraries whose `repr` is the library's own code, on nothing but its own values."""
_SHAPED = {
    "numpy": ("ndarray",), "pandas": ("DataFrame", "Series", "Index"), "polars": ("DataFrame", "Series"),
    "torch": ("Tensor",), "xarray": ("DataArray",),
}  # fmt: skip
"""Classes of libraries that are rendered by their shape."""
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_SECRET = re.compile(r"passw(or)?d|secret|token|api_?key|credential|private_?key|authorization|cookie", re.IGNORECASE)
_BRACKETS: dict[Any, tuple[str, str]] = {
    list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"),
}  # fmt: skip
mro: Any = type.__dict__["__mro__"].__get__
name_of_class: Any = type.__dict__["__qualname__"].__get__
_dict_of_class: Any = type.__dict__["__dict__"].__get__
_dict_of_module: Any = cast(Any, vars(types.ModuleType))["__dict__"].__get__
_current_frame: Any = getattr(sys, "_getframe")  # noqa: B009 - it has no public name


class WouldRun(Exception):
    """An operation that would run code of the program's, or might change something."""


class _OneField(NamedTuple):
    one: int


def kind_of(value: Any) -> Any:
    return cast(Any, type(value))


_TUPLE_FIELD: Any = kind_of(vars(_OneField)["one"])
_FRAME_LOCALS: Any = (lambda: kind_of(_current_frame().f_locals))()
"""Type of a function frame's names: a dictionary, or since Python 3.13 a view of the frame."""


def is_one(kind: Any, kinds: Any) -> bool:
    """Whether a type is one of these types themselves."""
    for each in kinds:  # noqa: SIM110 - several times faster than `any`, and every value of every line comes here
        if kind is each:
            return True
    return False


def is_kind_of(value: Any, kind: Any) -> bool:
    """Whether a value's class derives from another, whatever its `__class__` says."""
    return is_one(kind, mro(type(value)))


def is_class(value: Any) -> bool:
    return is_kind_of(value, type)


def in_class(kind: Any, name: str) -> Any:
    """What a class or one of its bases stores under a name, without binding it."""
    for base in mro(kind):
        found = _dict_of_class(base).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def own_dict(value: Any) -> Any:
    if is_kind_of(value, types.ModuleType):
        return _dict_of_module(value)
    for base in mro(type(value)):
        found = _dict_of_class(base).get("__dict__", MISSING)
        if found is not MISSING:
            stored = found.__get__(value) if type(found) is types.GetSetDescriptorType else None
            return stored if is_kind_of(stored, dict) else None
    return None


def attribute(value: Any, name: str) -> Any:
    """A stored attribute. WouldRun if code computes it; AttributeError if there is none."""
    if is_class(value):
        return _of_class(value, name)
    if name == "__class__":
        return kind_of(value)
    stored = own_dict(value)
    own = MISSING if stored is None else DICT.get(stored, name, MISSING)
    if name == "__dict__" and stored is not None:
        return stored
    found = in_class(type(value), name)
    if is_kind_of(value, types.ModuleType) and own is not MISSING:
        return own
    if found is not MISSING and not _is_plain_in_class(found):
        return _from_descriptor(value, name, found, stored, own)
    if own is not MISSING:
        return own
    if found is not MISSING:
        return found
    if in_class(type(value), "__getattr__") is not MISSING:
        raise WouldRun(f"`{name}` is not stored: {name_of_class(type(value))}.__getattr__ would compute it")
    raise AttributeError(f"'{name_of_class(type(value))}' object has no attribute '{name}'")


def _from_descriptor(value: Any, name: str, found: Any, stored: Any, own: Any) -> Any:
    """An attribute behind a descriptor: a slot is read, a property is not run."""
    kind = kind_of(found)
    if kind is types.MemberDescriptorType or kind is _TUPLE_FIELD:
        return found.__get__(value)
    if kind is types.GetSetDescriptorType and _module_of(found.__objclass__) in _READABLE_BY_C:
        return found.__get__(value)
    if stored is not None and name in ("value", "name") and _module_of(kind) in ("enum", "types"):
        # Of a member of an enumeration both are properties over what it stores.
        member = DICT.get(stored, f"_{name}_", MISSING)
        if member is not MISSING:
            return member
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
            raise WouldRun(f"`{name}` is computed by the metaclass of {name_of_class(value)}")
        raise AttributeError(f"type object '{name_of_class(value)}' has no attribute '{name}'")
    if _is_plain_in_class(found):
        return found
    raise WouldRun(f"`{name}` of {name_of_class(value)} is a property, and reading it would run code")


def _is_plain_in_class(found: Any) -> bool:
    """Whether something in a class is a value or a function, and not a descriptor that computes one."""
    kind = kind_of(found)
    return is_one(kind, _PLAIN_IN_CLASSES) or is_class(found) or in_class(kind, "__get__") is MISSING


def _module_of(kind: Any) -> str:
    found = _dict_of_class(kind).get("__module__") if is_class(kind) else None
    if type(found) is not str:
        found = type.__dict__["__module__"].__get__(kind)
    return found.partition(".")[0] if type(found) is str else ""


def stored_attributes(value: Any) -> dict[str, Any]:
    stored = own_dict(value)
    return {} if stored is None else {name: part for name, part in list(DICT.items(stored)) if type(name) is str}


def attributes(value: Any) -> dict[str, Any]:
    """All stored attributes: the entries of `__dict__`, and slots."""
    found = stored_attributes(value)
    for base in mro(type(value)):
        for name, member in list(_dict_of_class(base).items()) if base is not object else ():
            if type(member) is types.MemberDescriptorType and type(name) is str and base is not type:
                try:
                    found.setdefault(name, member.__get__(value))
                except AttributeError:
                    continue
    return found


def members_of_class(kind: Any) -> list[Any]:
    """What a class itself stores; of methods the functions behind them."""
    found = list(_dict_of_class(kind).values())
    return [each.__func__ if is_one(type(each), (staticmethod, classmethod)) else each for each in found]


def base_of(value: Any, *methods: str) -> Any:
    """The built-in container whose own methods a value has, or None if its class overrides one."""
    kind = kind_of(value)
    if id(kind) in _CONTAINER_IDS:
        return kind
    if kind is collections.OrderedDict:
        return dict
    base = next((each for each in mro(kind) if is_one(each, _CONTAINERS)), None)
    if base is None:
        return None
    return base if all(in_class(kind, method) is in_class(base, method) for method in methods) else None


def items_of(value: Any) -> Iterator[Any]:
    """Iterate over a built-in container; WouldRun for anything else."""
    base = base_of(value, "__iter__")
    if base is None:
        raise WouldRun(f"iterating over {_kind_text(value)} would run code or exhaust it")
    return base.__iter__(value)


def length_of(value: Any) -> int:
    base = base_of(value, "__len__")
    if base is None:
        raise WouldRun(f"the length of {_kind_text(value)} is computed by its own code")
    return base.__len__(value)


def truth_of(value: Any) -> bool:
    kind = kind_of(value)
    if is_one(kind, SCALARS):
        return bool(value)
    base = base_of(value, "__len__")
    if base is not None and in_class(kind, "__bool__") is MISSING:
        return base.__len__(value) > 0
    if in_class(kind, "__bool__") is MISSING and in_class(kind, "__len__") is MISSING:
        return True
    raise WouldRun(f"whether {_kind_text(value)} is true is decided by its own code")


def is_plain_key(key: Any) -> bool:
    """Whether a lookup by this key runs no code of its own."""
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
        raise WouldRun(f"`[]` of {_kind_text(value)} would run its own code")
    parts = (key.start, key.stop, key.step) if type(key) is slice else (key,)
    if not all(is_one(type(part), (int, bool, type(None))) for part in parts):
        raise TypeError("an index must be an integer")
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


def has_item(value: Any, wanted: Any) -> bool:
    kind = kind_of(value)
    if is_one(kind, TEXTS):
        if not is_one(type(wanted), (*TEXTS, int)):
            raise TypeError("a string can only contain a string")
        return wanted in value
    if kind is range:
        return is_one(type(wanted), NUMBERS) and wanted in value
    base = base_of(value, "__contains__", "__iter__")
    if base is None:
        raise WouldRun(f"`in` of {_kind_text(value)} would run its own code or exhaust it")
    if is_one(base, (dict, *SETS)) and is_plain_key(wanted) and _have_plain_keys(base.__iter__(value)):
        return base.__contains__(value, wanted)
    return any(part is wanted or are_equal(part, wanted) for part in base.__iter__(value))


def are_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, if comparing them runs no code of theirs."""
    if is_plain(one) and is_plain(other):
        return bool(one == other)
    if all(in_class(type(each), "__eq__") is object.__eq__ or is_plain(each) for each in (one, other)):
        return one is other
    if any(is_class(each) and type(each) is type for each in (one, other)):
        return one is other
    raise WouldRun(f"comparing {_kind_text(other if is_plain(one) else one)} would run its own code")


def is_plain(value: Any, left: list[int] | None = None, depth: int = 20) -> bool:
    """Whether a value consists of built-in types all the way down; False if it is too large or deep."""
    left = left if left is not None else [20_000]
    kind = kind_of(value)
    if is_one(kind, SCALARS) or kind is range or kind is bytearray:
        return True
    if not is_one(kind, _CONTAINERS) or depth == 0:
        return False
    left[0] -= kind.__len__(value)
    if left[0] < 0:
        return False
    parts = [*DICT.keys(value), *DICT.values(value)] if kind is dict else list(value)
    return all(is_plain(part, left, depth - 1) for part in parts)


def _kind_text(value: Any) -> str:
    name = name_of_class(type(value))
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} `{name}`"


def can_be_secret(value: Any) -> bool:
    """Whether a value may contain a secret: strings, and built-in containers."""
    return is_one(type(value), TEXTS) or base_of(value) is not None


def lookup(scope: Any, name: str) -> Any:
    if is_kind_of(scope, dict):
        return DICT.get(scope, name, MISSING)
    if type(scope) is _FRAME_LOCALS:
        return scope.get(name, MISSING)
    raise WouldRun("the names of this frame are looked up by code of the program's")


def names_in(scope: Any) -> list[tuple[str, Any]]:
    if is_kind_of(scope, dict):
        pairs = list(DICT.items(scope))
    else:
        pairs = list(scope.items()) if type(scope) is _FRAME_LOCALS else []
    return [(name, value) for name, value in pairs if type(name) is str]


class Renderer:
    """Renders values as texts. `secret` matches names of secrets, `measure` names that only sound like one."""

    max_items = 50
    max_depth = 5
    is_short = False
    """Whether long strings are shown with their length, and a secret is masked whatever its type."""

    def __init__(self, secret: str = "", measure: str = "") -> None:
        self._secret = re.compile(secret) if secret else None
        self._measure = re.compile(measure) if measure else None

    def is_secret(self, name: str) -> bool:
        if self._secret is None or len(name) > 200:
            return False
        words = _WORDS.sub("_", name).lower()
        return bool(self._secret.search(words)) and not (self._measure and self._measure.search(words))

    def text(self, value: Any, *, name: str = "", longest: int = LONGEST) -> str:
        return _Writer(self, longest).write(value, secret=bool(name) and self.is_secret(name))

    def described(self, name: str, value: Any, *, secret: bool = False) -> dict[str, Any]:
        """A value as JSON: text, type, true size, and whether it has parts."""
        writer = _Writer(self, LONGEST)
        return {
            "name": name,
            "value": writer.write(value, secret=secret or self.is_secret(name)),
            "type": name_of_class(type(value)),
            "size": _size_of(value),
            "cut": writer.is_cut,
            "parts": not is_one(type(value), SCALARS) and next(_labelled_parts(value), None) is not None,
        }

    def parts(self, value: Any, *, secret: bool = False) -> list[dict[str, Any]]:
        """The parts of a value as JSON, one level deep."""
        hidden = secret and base_of(value) is not None
        pair = self.is_secret_pair(value)
        return [
            self.described(label, part, secret=hidden or (pair and index == 1))
            for index, (label, part) in enumerate(self.children(value))
        ]

    def children(self, value: Any) -> Iterator[tuple[str, Any]]:
        """The first parts of a value with their labels."""
        for label, part in itertools.islice(_labelled_parts(value), _MAX_PARTS):
            yield label if type(label) is str else self.text(label[0], longest=80), part

    def is_secret_pair(self, value: Any) -> bool:
        """Whether a value is a name and its secret, such as a header."""
        base = base_of(value, "__iter__")
        if not is_one(base, (list, tuple)) or base.__len__(value) != 2:
            return False
        first = base.__getitem__(value, 0)
        return type(first) is str and self.is_secret(first)


class _ShortRenderer(Renderer):
    """Renderer of recordings, where every line may render every value."""

    max_items = 6
    max_depth = 3
    is_short = True

    def is_secret(self, name: str) -> bool:
        return _SECRET.search(name) is not None


_SHORT_RENDERER = _ShortRenderer()


def show(value: Any, *, name: str = "", longest: int = _SHORT) -> str:
    """A value as a short text. Never raises."""
    writer = _Writer(_SHORT_RENDERER, longest)
    try:
        text = writer.write(value, secret=bool(name) and _SHORT_RENDERER.is_secret(name))
    except Exception:  # noqa: BLE001 - whatever a strange value does, the program under test must not notice
        return f"<{name_of_class(type(value))}>"
    return text[: longest - 1] + "…" if writer.is_cut else text


def _labelled_parts(value: Any) -> Iterator[tuple[Any, Any]]:
    base: Any = base_of(value, "__iter__")
    if base is dict:
        # The key in a tuple of its own: it has to be rendered to become a label.
        yield from (((key,), part) for key, part in list(DICT.items(value)))
    elif is_one(base, (list, tuple, set, frozenset, collections.deque)):
        yield from ((str(index), part) for index, part in enumerate(base.__iter__(value)))
    if type(value) is not base and not is_one(base, (*TEXTS, range)) and not _is_definition(value):
        yield from attributes(value).items()


def _size_of(value: Any) -> str:
    base = base_of(value, "__len__")
    if base is None:
        return ""
    unit = "characters" if base is str else "bytes" if is_one(base, (bytes, bytearray)) else "items"
    return f"{base.__len__(value)} {unit}"


class _Full(Exception):
    """The limit of a text is reached."""


class _Writer:
    """Writes one value until the limit is reached."""

    def __init__(self, renderer: Renderer, longest: int) -> None:
        self._renderer = renderer
        self._left = self._longest = longest
        self._pieces: list[str] = []
        self.is_cut = False

    def write(self, value: Any, *, secret: bool) -> str:
        try:
            self._value(value, self._renderer.max_depth, secret, ())
        except _Full:
            self.is_cut = True
        return "".join(self._pieces)[: self._longest]

    def _put(self, piece: str) -> None:
        self._pieces.append(piece)
        self._left -= len(piece)
        if self._left < 0:
            raise _Full

    def _value(self, value: Any, depth: int, secret: bool, above: tuple[int, ...]) -> None:
        leaf = self._leaf(value, secret)
        if leaf is not None:
            self._put(leaf)
        elif id(value) in above:
            self._put("<cycle>")
        else:
            base = base_of(value, "__iter__", "__len__")
            above = (*above, id(value))
            if base is dict:
                self._mapping(value, depth, secret, above)
            elif base is None or is_one(base, TEXTS) or base is range:
                self._other(value, depth, above)
            else:
                self._sequence(value, base, depth, secret, above)

    def _leaf(self, value: Any, secret: bool) -> str | None:
        """The text of a value without parts, or None."""
        kind = cast(Any, type(value))
        if secret and kind is not type(None) and (self._renderer.is_short or (is_one(kind, TEXTS) and value)):
            return MASK
        if kind is str or kind is bytes or kind is bytearray:
            if len(value) <= self._left:
                return repr(value)
            self.is_cut = not self._renderer.is_short
            return repr(value[: self._left]) if self.is_cut else f"{value[: self._left // 2]!r}… ({_size_of(value)})"
        if kind is int and value.bit_length() >= _MAX_BITS:
            return f"<int of {value.bit_length()} bits>"
        return repr(value) if id(kind) in _SCALAR_IDS or kind is range else None

    def _sequence(self, value: Any, base: Any, depth: int, secret: bool, above: tuple[int, ...]) -> None:
        count = base.__len__(value)
        opening, closing = _BRACKETS.get(base, ("[", "]"))
        fields: tuple[str, ...] = ()
        if type(value) is not base or base is collections.deque:
            fields = _field_names(value)
            opening, closing = ("", "") if fields else (opening, closing)
            opening, closing = f"{name_of_class(type(value))}({opening}", f"{closing})"
        elif base is set and not count:
            opening, closing = "set(", ")"
        elif base is tuple and count == 1:
            closing = ",)"
        pair = count == 2 and self._renderer.is_secret_pair(value)
        parts = [
            (f"{fields[index]}=" if index < len(fields) else "", part, secret or (pair and index == 1))
            for index, part in enumerate(itertools.islice(items_of(value), self._renderer.max_items + 1))
        ]
        self._put(opening)
        self._parts(parts, depth, above, count)
        self._put(closing)

    def _mapping(self, value: Any, depth: int, secret: bool, above: tuple[int, ...]) -> None:
        opening, closing = ("{", "}") if type(value) is dict else (f"{name_of_class(type(value))}({{", "})")
        self._put(opening)
        first: Iterator[Any] = itertools.islice(DICT.items(value), self._renderer.max_items + 1)
        self._parts([((key,), part, secret) for key, part in list(first)], depth, above, DICT.__len__(value))
        self._put(closing)

    def _parts(
        self, parts: list[Any], depth: int, above: tuple[int, ...], count: int | None = None, separator: str = ", "
    ) -> None:
        """Write the first parts: each with a label that ends in `=`, or with its key in a tuple."""
        more = "…" if count is None else f"… {count} items"
        if depth == 0 and parts:
            self._put(more)
            return
        for index, (label, part, secret) in enumerate(parts):
            self._put(separator if index else "")
            if index == self._renderer.max_items:
                self._put(more)
                return
            name = label[:-1]
            if type(label) is tuple:
                [key] = cast(Any, label)
                self._value(key, 1, False, above)
                self._put(": ")
                name = key if type(key) is str else ""
            else:
                self._put(label)
            self._value(part, depth - 1, secret or (name != "" and self._renderer.is_secret(name)), above)

    def _other(self, value: Any, depth: int, above: tuple[int, ...]) -> None:
        kind = kind_of(value)
        name = name_of_class(kind)
        if _is_definition(value):
            self._put(_definition_text(value))
        elif is_one(kind, _SUSPENDABLE):
            self._put(f"<{name} {value.__qualname__}>")
        elif _is_of(kind, _OWN_REPR) and _has_own_zone(value):
            self._put(repr(value))
        elif (shape := _shape_text(value)) is not None:
            self._put(f"{name} {shape}")
        elif is_kind_of(value, BaseException):
            self._put(f"{name}(")
            given = BaseException.__dict__["args"].__get__(value)
            self._parts([("", part, False) for part in given], max(depth, 1), above)
            self._put(")")
        elif (member := _enum_member(value)) is not None:
            self._put(f"<{name}.{member[0]}: ")
            self._value(member[1], 0, False, above)
            self._put(">")
        else:
            first = itertools.islice(attributes(value).items(), self._renderer.max_items + 1)
            stored = [(f"{each}=", part, False) for each, part in first]
            self._put(f"<{name} " if stored and depth else f"<{name}")
            self._parts(stored if depth else [], depth, above, separator=" ")
            self._put(">")


def _field_names(value: Any) -> tuple[str, ...]:
    fields = in_class(type(value), "_fields") if is_kind_of(value, tuple) else MISSING
    is_named = type(fields) is tuple and all(type(each) is str for each in cast(Any, fields))
    return cast(Any, fields) if is_named else ()


def _is_definition(value: Any) -> bool:
    """Whether a value is a class, a function or a module."""
    return is_class(value) or is_one(kind_of(value), _FUNCTIONS) or is_kind_of(value, types.ModuleType)


def _definition_text(value: Any) -> str:
    if is_class(value):
        return f"<class {name_of_class(value)}>"
    if is_kind_of(value, types.ModuleType):
        name = DICT.get(own_dict(value), "__name__", "?")
        return f"<module {name}>" if type(name) is str else "<module>"
    inner = value.__func__ if type(value) is types.MethodType else value
    name = getattr(inner, "__qualname__", "?") if is_one(type(inner), _FUNCTIONS) else "?"
    return f"<function {name}>" if type(name) is str else "<function>"


def _is_of(kind: Any, known: dict[str, tuple[str, ...]]) -> bool:
    """Whether a class is one of these of its library, and not a class of the program's with the same name."""
    module = _module_of(kind)
    if module not in known:
        return False
    loaded = sys.modules.get(module)
    stored = own_dict(loaded) if type(loaded) is types.ModuleType else None
    return stored is not None and any(DICT.get(stored, name) is kind for name in known[module])


def _has_own_zone(value: Any) -> bool:
    """Whether the time zone of a date, if it has one, is the standard library's as well."""
    zone = attribute(value, "tzinfo") if in_class(type(value), "tzinfo") is not MISSING else None
    return zone is None or _is_of(type(zone), {"datetime": ("timezone",), "zoneinfo": ("ZoneInfo",)})


def _shape_text(value: Any) -> str | None:
    """Shape, type and columns of an array or a frame."""
    if _is_of(type(value), _SHAPED):
        shape, kind, columns = (getattr(value, name, None) for name in ("shape", "dtype", "columns"))
        named = f" columns={[str(each) for each in list(columns)[:20]]}" if columns is not None else ""
        return f"shape={tuple(shape)}{'' if kind is None else f' dtype={kind}'}{named}" if shape is not None else None
    shape = _attribute_or_none(value, "shape")
    if type(shape) is not tuple or not all(type(each) is int for each in cast(Any, shape)):
        return None
    kind = _attribute_or_none(value, "dtype")
    return f"shape={shape}" + (f" dtype={kind}" if type(kind) is str else "")


def _attribute_or_none(value: Any, name: str) -> Any:
    if in_class(type(value), name) is MISSING and name not in stored_attributes(value):
        return None
    try:
        return attribute(value, name)
    except (AttributeError, WouldRun):
        return None


def _enum_member(value: Any) -> tuple[str, Any] | None:
    if in_class(type(value), "_member_map_") is MISSING:
        return None
    stored: Any = own_dict(value) or {}
    name = DICT.get(stored, "_name_")
    return (name, DICT.get(stored, "_value_")) if type(name) is str else None

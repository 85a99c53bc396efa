"""Values as texts and parts, made inside the program: bounded, secrets masked, no code of a value's class run.

It runs in the interpreter of the program: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from typing import Any, cast

from trysquare.debug.recorder import stored

LONGEST = 4000
MASK = "***"
_ITEMS = 50
_CHILDREN = 300
_DEPTH = 5
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_FUNCTIONS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType,
    types.WrapperDescriptorType,
)  # fmt: skip
_OWN_TEXT = {
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "uuid": ("UUID",),
    "pathlib": ("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath"),
    "numpy": ("bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
              "float32", "float64", "complex64", "complex128", "str_", "datetime64", "timedelta64"),
}  # fmt: skip
"""Classes of libraries whose text is made by the library itself, of nothing but its own values."""
_SHAPED = {
    "numpy": ("ndarray",), "pandas": ("DataFrame", "Series", "Index"), "polars": ("DataFrame", "Series"),
    "torch": ("Tensor",), "xarray": ("DataArray",),
}  # fmt: skip
"""Classes of libraries that are asked for their shape."""


class Texts:
    """Makes texts of values. `secret` matches names of secrets, `measure` names that only sound like one."""

    def __init__(self, secret: str = "", measure: str = "") -> None:
        self._secret = re.compile(secret) if secret else None
        self._measure = re.compile(measure) if measure else None

    def is_secret(self, name: str) -> bool:
        """Whether a name says that its value is nobody's business."""
        if self._secret is None or len(name) > 200:
            return False
        words = _WORDS.sub("_", name).lower()
        return bool(self._secret.search(words)) and not (self._measure and self._measure.search(words))

    def text(self, value: Any, *, name: str = "", longest: int = LONGEST) -> str:
        """A value as a text of bounded length."""
        return "".join(_Writer(self, longest).written(value, secret=bool(name) and self.is_secret(name)))

    def described(self, name: str, value: Any, *, secret: bool = False) -> dict[str, Any]:
        """A value as an answer tells it: text, type, true size, and whether it has parts."""
        writer = _Writer(self, LONGEST)
        text = "".join(writer.written(value, secret=secret or self.is_secret(name)))
        return {
            "name": name,
            "value": text,
            "type": stored.name_of_class(type(value)),
            "size": size_of(value),
            "cut": writer.is_cut,
            "parts": has_parts(value),
        }

    def parts(self, value: Any, *, secret: bool = False) -> list[dict[str, Any]]:
        """What a value is made of, one level deep."""
        hidden = secret and stored.base_of(value) is not None
        pair = _secret_pair(self, value)
        return [
            self.described(label, part, secret=hidden or (pair and index == 1))
            for index, (label, part) in enumerate(children(value, self))
        ]


def children(value: Any, texts: Texts | None = None) -> Iterator[tuple[str, Any]]:
    """The first parts of a value, each with what it is called."""
    for index, (label, part) in enumerate(_all_children(value)):
        if index == _CHILDREN:
            return
        yield label if type(label) is str else (texts or Texts()).text(label[0], longest=80), part


def _all_children(value: Any) -> Iterator[tuple[Any, Any]]:
    base: Any = stored.base_of(value, "__iter__")
    if base is dict:
        # The key in a list of its own: it is no name, and has to be made one.
        yield from (((key,), part) for key, part in list(stored.DICT.items(value)))
    elif stored.is_one(base, (list, tuple, set, frozenset)) or base is _DEQUE:
        yield from ((str(index), part) for index, part in enumerate(base.__iter__(value)))
    is_text = stored.is_one(base, (str, bytes, bytearray, range))
    if type(value) is not base and not is_text and not _is_scenery(value):
        yield from stored.attributes(value).items()


def has_parts(value: Any) -> bool:
    """Whether there is something to look into."""
    return not stored.is_one(type(value), stored.SCALARS) and next(_all_children(value), None) is not None


def size_of(value: Any) -> str:
    """How large a value really is, where that can be told."""
    base = stored.base_of(value, "__len__")
    if base is None:
        return ""
    unit = "characters" if base is str else "bytes" if stored.is_one(base, (bytes, bytearray)) else "items"
    return f"{base.__len__(value)} {unit}"


_DEQUE: Any = stored.SEQUENCES[-1]


def _is_scenery(value: Any) -> bool:
    kind = stored.kind_of(value)
    return stored.is_class(value) or stored.is_one(kind, _FUNCTIONS) or stored.is_kind_of(value, types.ModuleType)


def _secret_pair(texts: Texts, value: Any) -> bool:
    """Whether a value is a name and its secret, such as a header."""
    base = stored.base_of(value, "__iter__")
    if not stored.is_one(base, (list, tuple)) or base.__len__(value) != 2:
        return False
    first = base.__getitem__(value, 0)
    return type(first) is str and texts.is_secret(first)


class _Writer:
    """Writes one value, piece by piece, until there is no room left."""

    def __init__(self, texts: Texts, room: int) -> None:
        self._texts = texts
        self._room = room
        self.is_cut = False

    def written(self, value: Any, *, secret: bool) -> Iterator[str]:
        """The pieces of a value's text."""
        for piece in self._pieces(value, _DEPTH, secret, ()):
            if len(piece) > self._room:
                self.is_cut = True
                yield piece[: self._room]
                return
            self._room -= len(piece)
            yield piece

    def _pieces(self, value: Any, depth: int, secret: bool, above: tuple[int, ...]) -> Iterator[str]:
        kind = stored.kind_of(value)
        if stored.is_one(kind, (str, bytes, bytearray)):
            yield MASK if secret and value else self._quoted(value)
        elif kind is int:
            bits = value.bit_length()
            yield repr(value) if bits < 4000 else f"<int of {bits} bits>"
        elif stored.is_one(kind, stored.SCALARS):
            yield repr(value)
        elif id(value) in above:
            yield "<cycle>"
        else:
            base = stored.base_of(value, "__iter__", "__len__")
            within = (*above, id(value))
            if base is dict:
                yield from self._mapping(value, depth, secret, within)
            elif base is range:
                yield f"range({value.start}, {value.stop}, {value.step})"
            elif base is not None and not stored.is_one(base, (str, bytes, bytearray)):
                yield from self._sequence(value, base, depth, secret, within)
            elif base is not None:
                yield f"{stored.name_of_class(kind)}("
                yield MASK if secret else self._quoted(base.__getitem__(value, slice(None)))
                yield ")"
            else:
                yield from self._other(value, depth, within)

    def _quoted(self, value: Any) -> str:
        if len(value) <= self._room:
            return repr(value)
        self.is_cut = True
        return repr(value[: self._room])

    def _sequence(self, value: Any, base: Any, depth: int, secret: bool, above: tuple[int, ...]) -> Iterator[str]:
        count = base.__len__(value)
        fields = _field_names(value)
        opening, closing = _BRACKETS.get(base, ("[", "]"))
        if type(value) is not base or base is _DEQUE:
            opening, closing = (
                f"{stored.name_of_class(type(value))}({'' if fields else opening}",
                (")" if fields else f"{closing})"),
            )
        elif not count and base is set:
            opening, closing = "set(", ")"
        yield opening
        if depth == 0 and count:
            yield f"… {count} items"
        else:
            pair = _secret_pair(self._texts, value)
            for index, part in enumerate(stored.items_of(value)):
                yield ", " if index else ""
                if index == _ITEMS:
                    yield f"… {count} items"
                    break
                name = fields[index] if index < len(fields) else ""
                yield f"{name}=" if name else ""
                hidden = secret or (pair and index == 1) or (name != "" and self._texts.is_secret(name))
                yield from self._pieces(part, depth - 1, hidden, above)
        yield ("," if base is tuple and count == 1 and not fields else "") + closing

    def _mapping(self, value: Any, depth: int, secret: bool, above: tuple[int, ...]) -> Iterator[str]:
        count = stored.DICT.__len__(value)
        is_own = type(value) is not dict
        yield f"{stored.name_of_class(type(value))}({{" if is_own else "{"
        if depth == 0 and count:
            yield f"… {count} items"
        else:
            for index, (key, part) in enumerate(
                list(stored.DICT.items(value)) if count <= 10_000 else stored.DICT.items(value)
            ):
                yield ", " if index else ""
                if index == _ITEMS:
                    yield f"… {count} items"
                    break
                yield from self._pieces(key, 1, False, above)
                yield ": "
                hidden = secret or (type(key) is str and self._texts.is_secret(key))
                yield from self._pieces(part, depth - 1, hidden, above)
        yield "})" if is_own else "}"

    def _other(self, value: Any, depth: int, above: tuple[int, ...]) -> Iterator[str]:
        kind = stored.kind_of(value)
        name = stored.name_of_class(kind)
        if _is_scenery(value):
            yield _scenery(value)
        elif _is_of(kind, _OWN_TEXT) and _has_own_parts(value):
            yield repr(value)
        elif (shape := _shape(value)) is not None:
            yield f"{name} {shape}"
        elif stored.is_kind_of(value, BaseException):
            yield f"{name}("
            given = BaseException.__dict__["args"].__get__(value)
            yield from self._listed([("", part) for part in given], depth, above)
            yield ")"
        elif (member := _member(value)) is not None:
            yield f"<{name}.{member[0]}: "
            yield from self._pieces(member[1], 0, False, above)
            yield ">"
        else:
            kept = list(stored.attributes(value).items())
            yield f"<{name}"
            if kept and depth:
                yield " "
                yield from self._listed(kept, depth, above, between=" ")
            yield ">"

    def _listed(
        self, pairs: list[tuple[str, Any]], depth: int, above: tuple[int, ...], *, between: str = ", "
    ) -> Iterator[str]:
        for index, (name, part) in enumerate(pairs):
            yield between if index else ""
            if index == _ITEMS:
                yield "…"
                return
            yield f"{name}=" if name else ""
            yield from self._pieces(part, depth - 1, name != "" and self._texts.is_secret(name), above)


_BRACKETS: dict[Any, tuple[str, str]] = {
    list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"),
}  # fmt: skip


def _field_names(value: Any) -> tuple[str, ...]:
    """The names of a named tuple's fields."""
    fields = stored.in_class(type(value), "_fields") if stored.is_kind_of(value, tuple) else stored.MISSING
    is_named = type(fields) is tuple and all(type(each) is str for each in cast(Any, fields))
    return cast(Any, fields) if is_named else ()


def _scenery(value: Any) -> str:
    if stored.is_class(value):
        return f"<class {stored.name_of_class(value)}>"
    if stored.is_kind_of(value, types.ModuleType):
        name = stored.DICT.get(stored.own_dict(value), "__name__", "?")
        return f"<module {name}>" if type(name) is str else "<module>"
    inner = value.__func__ if type(value) is types.MethodType else value
    name = getattr(inner, "__qualname__", "?") if stored.is_one(type(inner), _FUNCTIONS) else "?"
    return f"<function {name}>" if type(name) is str else "<function>"


def _is_of(kind: Any, known: dict[str, tuple[str, ...]]) -> bool:
    """Whether a class is one of these, as its library has it, and no class of the program's of the same name."""
    for module, names in known.items():
        loaded = sys.modules.get(module)
        kept = stored.own_dict(loaded) if type(loaded) is types.ModuleType else None
        if kept is not None and any(stored.DICT.get(kept, name) is kind for name in names):
            return True
    return False


def _has_own_parts(value: Any) -> bool:
    """Whether what a value of the standard library keeps is the standard library's as well."""
    zone = None
    if stored.in_class(type(value), "tzinfo") is not stored.MISSING:
        zone = stored.attribute(value, "tzinfo")
    return zone is None or _is_of(type(zone), {"datetime": ("timezone",), "zoneinfo": ("ZoneInfo",)})


def _shape(value: Any) -> str | None:
    """Arrays and frames by what they are made of, not by what they hold."""
    if _is_of(type(value), _SHAPED):
        shape, kind, columns = (getattr(value, name, None) for name in ("shape", "dtype", "columns"))
        named = f" columns={[str(each) for each in list(columns)[:20]]}" if columns is not None else ""
        return f"shape={tuple(shape)}{'' if kind is None else f' dtype={kind}'}{named}" if shape is not None else None
    try:
        shape = stored.attribute(value, "shape")
    except (AttributeError, stored.WouldRun):
        return None
    if type(shape) is not tuple or not all(type(each) is int for each in cast(Any, shape)):
        return None
    try:
        kind = stored.attribute(value, "dtype")
    except (AttributeError, stored.WouldRun):
        kind = None
    return f"shape={shape}" + (f" dtype={kind}" if type(kind) is str else "")


def _member(value: Any) -> tuple[str, Any] | None:
    """The name and the value of a member of an enumeration."""
    if stored.in_class(type(value), "_member_map_") is stored.MISSING:
        return None
    kept: Any = stored.own_dict(value) or {}
    name = stored.DICT.get(kept, "_name_")
    return (name, stored.DICT.get(kept, "_value_")) if type(name) is str else None

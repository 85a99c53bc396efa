"""Values as short texts, made inside the program that is recorded: no code of a value's own class is run.

This package runs in the interpreter of the program under test, whatever that has installed: standard library only.
"""

from __future__ import annotations

import re
import types
from typing import Any, cast

LONGEST = 120
_PARTS = 6
_DEPTH = 3
_SECRET = re.compile(r"passw(or)?d|secret|token|api_?key|credential|private_?key|authorization|cookie", re.IGNORECASE)
_PLAIN = (int, float, complex, bool, type(None), type(...))
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def is_secret(name: str) -> bool:
    """Whether a name says that its value is nobody's business."""
    return _SECRET.search(name) is not None


def show(value: Any, *, name: str = "", longest: int = LONGEST) -> str:
    """A value as a text of bounded length. Never raises, never runs the value's own code, survives cycles."""
    if name and is_secret(name) and value is not None:
        return "***"
    try:
        text = _show(value, _DEPTH, longest, ())
    except Exception:  # noqa: BLE001 - whatever a strange value does, the program under test must not notice
        text = f"<{_name_of(value)}>"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _show(value: Any, depth: int, longest: int, above: tuple[int, ...]) -> str:
    kind: Any = cast(Any, type(value))
    if kind in _PLAIN:
        return _number(value) if kind is int else repr(value)
    if kind is str or kind is bytes:
        return _text(value, longest)
    if id(value) in above:
        return "<cycle>"
    if kind in (list, tuple, set, frozenset):
        return _sequence(value, kind, depth, longest, (*above, id(value)))
    if kind.__name__ in ("dict", "OrderedDict", "defaultdict", "Counter") and isinstance(value, dict):
        return _mapping(cast(dict[Any, Any], value), depth, longest, (*above, id(cast(Any, value))))
    return _other(value, kind, depth, longest, (*above, id(value)))


def _number(value: int) -> str:
    return repr(value) if value.bit_length() < 400 else f"<int of {value.bit_length()} bits>"


def _text(value: str | bytes, longest: int) -> str:
    if len(value) <= longest:
        return repr(value)
    kept = value[: longest // 2]
    return f"{kept!r}… ({len(value)} {'characters' if isinstance(value, str) else 'bytes'})"


def _sequence(value: Any, kind: Any, depth: int, longest: int, above: tuple[int, ...]) -> str:
    opening, closing = {list: "[]", tuple: "()", set: "{}", frozenset: ("frozenset({", "})")}[kind]
    if depth == 0:
        return f"{opening}{len(value)} items{closing}" if value else f"{opening}{closing}"
    shown: list[str] = []
    for index, part in enumerate(value):
        if index == _PARTS:
            shown.append(f"… {len(value)} items")
            break
        shown.append(_show(part, depth - 1, longest, above))
    if not value and kind is set:
        return "set()"
    comma = "," if kind is tuple and len(value) == 1 else ""
    return f"{opening}{', '.join(shown)}{comma}{closing}"


def _mapping(value: dict[Any, Any], depth: int, longest: int, above: tuple[int, ...]) -> str:
    if depth == 0:
        return f"{{{len(value)} keys}}" if value else "{}"
    shown: list[str] = []
    # The class's own `items` is not called: it may be anything.
    for index, (key, part) in enumerate(dict[Any, Any].items(value)):
        if index == _PARTS:
            shown.append(f"… {len(value)} keys")
            break
        hidden = isinstance(key, str) and is_secret(key)
        shown.append(f"{_show(key, 1, 40, above)}: {'***' if hidden else _show(part, depth - 1, longest, above)}")
    return f"{{{', '.join(shown)}}}"


def _other(value: Any, kind: Any, depth: int, longest: int, above: tuple[int, ...]) -> str:
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return f"<function {getattr(value, '__qualname__', '?')}>"
    if isinstance(value, type):
        return f"<class {value.__qualname__}>"
    if isinstance(value, types.ModuleType):
        return f"<module {value.__name__}>"
    if (shape := _array(value, kind)) is not None:
        return shape
    if isinstance(value, BaseException):
        return f"{_name_of(value)}({', '.join(_show(part, 1, longest, above) for part in value.args[:3])})"
    if _is_builtin(kind):
        return _ADDRESS.sub("", kind.__repr__(value))
    attributes = _attributes(value)
    if not attributes or depth == 0:
        return f"<{_name_of(value)}>"
    parts = [
        f"{name}={'***' if is_secret(name) else _show(part, depth - 1, longest, above)}"
        for name, part in list(attributes.items())[:_PARTS]
    ]
    more = " …" if len(attributes) > _PARTS else ""
    return f"<{_name_of(value)} {' '.join(parts)}{more}>"


def _is_builtin(kind: Any) -> bool:
    """Whether the text of such a value is made by the standard library, in a few steps: dates, paths, decimals."""
    return kind.__module__ in ("builtins", "datetime", "decimal", "fractions", "pathlib", "uuid", "enum") and (
        kind.__repr__ is not object.__repr__
    )


def _attributes(value: Any) -> dict[str, Any]:
    """A value's own attributes, read without running properties."""
    found: dict[str, Any] = {}
    found.update(own_attributes(value))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            member = base.__dict__.get(slot)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    found[slot] = member.__get__(value)
                except AttributeError:
                    continue
    return found


def own_attributes(value: Any) -> dict[str, Any]:
    """What a value keeps in its `__dict__`, read as `object` itself would: no `__getattr__`, no override."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    if not isinstance(own, dict):
        return {}
    return {name: part for name, part in cast(dict[Any, Any], own).items() if isinstance(name, str)}


def _array(value: Any, kind: Any) -> str | None:
    """Arrays and frames by what they are made of, not by what they hold."""
    root = (kind.__module__ or "").partition(".")[0]
    if root not in ("numpy", "pandas", "torch", "jax", "polars", "tensorflow", "xarray"):
        return None
    shape = getattr(value, "shape", None)
    if shape is None:
        return None
    parts = [f"shape={tuple(shape)}"]
    if (dtype := getattr(value, "dtype", None)) is not None:
        parts.append(f"dtype={dtype}")
    if (columns := getattr(value, "columns", None)) is not None:
        parts.append(f"columns={[str(column) for column in list(columns)[:_PARTS]]}")
    return f"<{_name_of(value)} {' '.join(parts)}>"


def _name_of(value: Any) -> str:
    return type(value).__qualname__

"""Declaring dataclasses lightly: what a class seldom uses is compiled when it is first used.

A dataclass compiles six methods, of which most classes use `__init__` alone, and nearly two hundred are declared at a
start: a sixth of it. The others wait here for their first call, and then stand in the class as ever. Python 3.13
compiles all methods of a class at once and needs no help.

This module imports nothing outside the standard library: it has to run before anything else is loaded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

_MAKER = "_create_fn"
_LATE = frozenset({"__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"})


@contextmanager
def light_dataclasses() -> Generator[None]:
    """Have the dataclasses that are declared within the block compile late what they can."""
    usual: Callable[..., Any] | None = getattr(dataclasses, _MAKER, None)
    if usual is None:
        yield
        return

    def make(name: str, *args: Any, **places: Any) -> Callable[..., Any]:
        return _late(name, lambda: usual(name, *args, **places)) if name in _LATE else usual(name, *args, **places)

    setattr(dataclasses, _MAKER, make)
    try:
        yield
    finally:
        setattr(dataclasses, _MAKER, usual)


def _late(name: str, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    made: list[Callable[..., Any]] = []

    def late(self: Any, *rest: Any) -> Any:
        if not made:
            made.append(make())
            _put_in_place(self.__class__, name, late, made[0])
        return made[0](self, *rest)

    late.__name__ = late.__qualname__ = name
    return late


def _put_in_place(cls: type, name: str, late: Callable[..., Any], made: Callable[..., Any]) -> None:
    made.__qualname__ = late.__qualname__
    for owner in cls.__mro__:
        if owner.__dict__.get(name) is late:
            setattr(owner, name, made)

"""Runs inside the program: the text of each value, in bounded time and length, whatever its `__repr__` does.

pydevd finds this file by its name and asks it for texts. Nothing but the standard library is imported, since the
program's own Python runs it.
"""

from __future__ import annotations

import ctypes
import importlib
import queue
import reprlib
import threading
from typing import Any, cast

LONGEST = 4000
SECONDS = 1.0
_LEAST = 0.1
_ITEMS = 50
_PLAIN = (int, float, complex, bool, str, bytes, type(None))
_HOLDERS = (list, tuple, set, frozenset, dict)


class BoundedValues:
    """What pydevd asks for the text of a value."""

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        return type_object not in _PLAIN

    def get_str(self, val: Any, context: str = "") -> str | None:
        if is_plain(val):
            # pydevd's own way is good for what has no code of its own.
            return None
        return _ASKED.text_of(val)


def is_plain(value: Any, depth: int = 3) -> bool:
    """Whether a value is made of nothing but built-in types, as far as its text shows it."""
    kind = cast(Any, type(value))
    if kind in _PLAIN:
        return kind not in (str, bytes) or len(value) <= LONGEST
    if kind not in _HOLDERS or depth == 0 or len(value) > _ITEMS:
        return False
    parts = [*value.keys(), *value.values()] if kind is dict else value
    return all(is_plain(part, depth - 1) for part in parts)


class Asked:
    """Asks values for their texts in a thread that can be given up when one never answers."""

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._left = seconds
        self._slow: set[int] = set()
        self._worker: _Worker | None = None

    def text_of(self, value: Any) -> str:
        """A value's text; where it cannot be had, why not."""
        worker = self._worker
        if worker is None or not worker.is_alive():
            # Also after a fork, which leaves threads behind.
            worker = self._worker = _Worker()
            worker.start()
        text = worker.ask(value, _LEAST if id(value) in self._slow else self._left)
        if text is not None:
            self._left = self._seconds
            return text
        # Where one value hangs others may: each that follows gets less, until one answers; and this one from now on.
        self._left = max(self._left / 2, _LEAST)
        self._slow.add(id(value))
        self._worker = None
        worker.give_up()
        return f"<{type(value).__name__}: its repr takes too long>"


class _Worker(threading.Thread):
    """A thread that makes texts, one after the other."""

    # pydevd neither traces nor stops nor shows a thread with these.
    pydev_do_not_trace = True
    is_pydev_daemon_thread = True

    def __init__(self) -> None:
        super().__init__(daemon=True, name="texts of values")
        self._values: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._texts: queue.SimpleQueue[str] = queue.SimpleQueue()

    def ask(self, value: Any, seconds: float) -> str | None:
        """The text of a value, or None where there is none in time."""
        self._values.put(value)
        try:
            return self._texts.get(timeout=seconds)
        except queue.Empty:
            return None

    def give_up(self) -> None:
        """End the thread, where it runs code of Python at all; where it sleeps, it is left to sleep."""
        if self.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(SystemExit))

    def run(self) -> None:
        while True:
            self._texts.put(shown(self._values.get()))


def shown(value: Any) -> str:
    """A value's text: its shape where it is an array or a frame, and else what it says of itself, cut."""
    try:
        text = shape_of(value) or _REPR.repr(value)
    except Exception as error:  # noqa: BLE001 - code of the program's own, which may raise anything
        text = f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def shape_of(value: Any) -> str | None:
    """Arrays and frames by type, shape and kind of element; None for anything else."""
    shape = getattr(value, "shape", None)
    kind = getattr(value, "dtype", None)
    if not isinstance(shape, tuple):
        return None
    columns = getattr(value, "columns", None)
    named = f" columns={reprlib.repr(list(columns)[:_ITEMS])}" if columns is not None else ""
    element = f" dtype={kind}" if kind is not None else ""
    return f"{type(value).__name__} shape={cast(Any, shape)}{element}{named}"


class _Repr(reprlib.Repr):
    """Texts of values with at most some items of each and some levels."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 5
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = _ITEMS
        self.maxstring = self.maxlong = self.maxother = LONGEST

    def repr_instance(self, x: Any, level: int) -> str:
        # As it is, where reprlib would hide what the object's own code raised.
        text = repr(x)
        return text if len(text) <= self.maxother else f"{text[: self.maxother]}… ({len(text)} characters)"


_REPR = _Repr()
_ASKED = Asked()


def _offer() -> None:
    """Let pydevd know; where it is not there, somebody only looks at this file."""
    try:
        api = importlib.import_module("_pydevd_bundle.pydevd_extension_api")
    except ImportError:
        return
    api.StrPresentationProvider.register(BoundedValues)


_offer()

"""Exceptions that end a call without being its failure: cancellation, Ctrl-C, and questions to the user.

Whatever else a tool raises is a crash of that tool, also `KeyboardInterrupt`, `SystemExit`, `GeneratorExit` and other
exceptions that do not derive from `Exception`: raised by a tool's own code they must not end the server.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import traceback
from typing import Any, cast

from trysquare.core.errors import InputRequired


def current_task() -> asyncio.Task[Any] | None:
    """The task that runs this code, if one does."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def raise_if_meant_for_caller(error: BaseException, task: asyncio.Task[Any] | None) -> None:
    """Raise the error again if it ends the call rather than being a crash; `task` is the one that began the call."""
    if isinstance(error, BaseExceptionGroup):
        # A task group of the tool's own wraps what its tasks raised.
        group = cast(BaseExceptionGroup[BaseException], error)
        if (asked := _first_of(group, InputRequired)) is not None:
            raise asked
        if _first_of(group, asyncio.CancelledError) is not None and _is_being_cancelled():
            raise error
    elif (
        isinstance(error, InputRequired)
        or (isinstance(error, asyncio.CancelledError) and _is_being_cancelled())
        or (isinstance(error, GeneratorExit) and current_task() is not task)
        or (isinstance(error, KeyboardInterrupt) and _is_from_signal(error))
    ):
        raise error


def _first_of(group: BaseExceptionGroup[BaseException], kind: type[BaseException]) -> BaseException | None:
    for error in group.exceptions:
        inner = _first_of(cast(Any, error), kind) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(inner, kind):
            return inner
    return None


def _is_being_cancelled() -> bool:
    """Whether somebody cancelled this call, and not the tool a task of its own."""
    task = current_task()
    return task is None or task.cancelling() > 0


def _is_from_signal(error: KeyboardInterrupt) -> bool:
    """Whether Ctrl-C was pressed, rather than the exception raised by code of the tool."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handler: Any = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        # Python's own handler leaves no trace of itself: better to end than to be deaf to Ctrl-C.
        return True
    function = getattr(handler, "func", handler)
    code = getattr(function, "__code__", None)
    return code is not None and any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))

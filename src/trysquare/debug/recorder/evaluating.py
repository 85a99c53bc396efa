"""Evaluating: an expression of the caller's in a frame of the program; that it failed is an answer, and no accident."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any


def evaluate(code: CodeType, frame: FrameType) -> tuple[Any, str]:
    """The value, and an empty text; or None, and what went wrong."""
    try:
        return eval(code, frame.f_globals, dict(frame.f_locals)), ""
    except Exception as error:  # noqa: BLE001 - code of the program's own, which may raise anything
        return None, f"{type(error).__name__}: {error}"[:200]


def holds(code: CodeType, frame: FrameType) -> bool:
    """Whether a condition is true; one on names that the frame has not is not."""
    value, error = evaluate(code, frame)
    return not error and bool(value)

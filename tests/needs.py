"""What a test needs beyond this process, read from its code, so that `pytest --quick` can leave it out.

A test needs processes or installed components if it, a fixture of it, or a function, class or constant of `tests` that
these refer to mentions one of `STARTERS` or the running interpreter.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

SUITES = frozenset(
    {
        "attacks",
        "benchmarks",
        "clients",
        "conformance",
        "docs",
        "elysia",
        "evals",
        "examples",
        "faults",
        "fuzz",
        "torture",
        "e2e",
    }
)
"""Directories of suites that start many programs or try many cases."""
MARKERS = frozenset({"node", "slow"})
STARTERS = frozenset(
    {"subprocess", "create_subprocess_exec", "open_process", "run_process", "executable", "stdio_client"}
    | {"missing_component", "node_command", "node_program", "importorskip", "system_package"}
)
"""Names that start a program or end a test whose component is not installed."""
STARTS_PROCESSES = "STARTS_PROCESSES"
"""A module of helpers that sets this to true starts programs in a way that its names do not show."""


def is_quick(item: pytest.Item) -> bool:
    """Whether a test runs in this process alone."""
    if any(item.get_closest_marker(name) for name in MARKERS):
        return False
    roots = [getattr(item, "obj", None)]
    info = getattr(item, "_fixtureinfo", None)
    roots += [each.func for defs in info.name2fixturedefs.values() for each in defs] if info else []
    return not any(_starts(root, set()) for root in roots)


def _starts(value: Any, seen: set[int]) -> bool:
    """Whether a value refers to what starts a program, directly or through other code of the tests."""
    if id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, str):
        return value == sys.executable
    if isinstance(value, (list, tuple)):
        return any(_starts(each, seen) for each in value)
    if isinstance(value, type):
        own = value.__module__.startswith("tests.")
        return own and (_flagged(value.__module__) or any(_starts(each, seen) for each in list(vars(value).values())))
    if isinstance(value, (staticmethod, classmethod, property)):
        value = value.fget if isinstance(value, property) else value.__func__
    function = _function(value)
    if function is None or not function.__module__.startswith("tests."):
        return False
    names = set(_names(function.__code__))
    if names & STARTERS or _flagged(function.__module__):
        return True
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_set(cell)]
    return any(_starts(each, seen) for each in (*cells, *(function.__globals__.get(name) for name in names)))


def _function(value: Any) -> FunctionType | None:
    """The function that was written, below decorators, fixtures and Hypothesis."""
    value = getattr(value, "__func__", value)
    if isinstance(value, FunctionType) and (given := getattr(value, "hypothesis", None)):
        value = given.inner_test
    value = getattr(value, "_fixture_function", value)
    value = inspect.unwrap(value) if callable(value) else value
    return value if isinstance(value, FunctionType) else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _flagged(name: str) -> bool:
    module = sys.modules.get(name)
    return isinstance(module, ModuleType) and getattr(module, STARTS_PROCESSES, False) is True

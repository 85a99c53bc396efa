"""Importing the SDK lightly: what a server needs of it, and the rest when somebody asks.

The SDK's packages import its client and its friendly server as soon as any part of them is imported, uvicorn its
command line and its reloader, and pydantic compiles hundreds of models of which a server uses a few. All of it waits
here until it is needed, which saves a fifth of a cold start. Nothing is left out: `from mcp import Client` in a user's
module works as ever, and costs what it costs.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from pydantic import BaseModel

_LATE_PACKAGES = ("mcp", "mcp.server", "uvicorn")


@contextmanager
def light_imports() -> Generator[None]:
    """Import the SDK lightly within the block."""
    for name in _LATE_PACKAGES:
        _make_late(name)
    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


class _LatePackage(ModuleType):
    """A package whose own code runs when one of its names is first asked for; its modules can be imported before."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if spec is None or spec.loader is None or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        # A plain module from now on, so that the code that runs next asks nothing of this class.
        self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue] - a module may change its class
        spec.loader.exec_module(self)
        return getattr(self, name)


def _make_late(name: str) -> None:
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None:
        return
    package = _LatePackage(name)
    package.__spec__ = spec
    package.__package__ = name
    package.__loader__ = spec.loader
    package.__file__ = spec.origin
    package.__path__ = spec.submodule_search_locations or []
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)

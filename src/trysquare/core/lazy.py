"""Lazy exports of a package: `from trysquare.gateway import open_gateway` imports only the module that defines it."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def lazy_exports(
    package: str, modules: Mapping[str, str], renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package.

    `modules` has the exported names of each module, separated by spaces. `renamed` maps a former name to its
    present one; using the former name warns.
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def getattr_(name: str) -> Any:
        if renamed and name in renamed:
            message = f"{package}.{name} was renamed to {renamed[name]}; the old name will be removed"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr_(renamed[name])
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def dir_() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return getattr_, dir_

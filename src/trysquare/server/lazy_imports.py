"""Deferred imports of the SDK: what a server needs, and the rest at first use.

The SDK's packages import its client and its friendly server as soon as any part of them is imported, uvicorn its
command line and its reloader, its server all that HTTP takes, and its methods the models of both eras; and pydantic
compiles hundreds of models of which a server uses a few. All of it waits here until it is needed, which saves half of
what the SDK takes of a cold start. Nothing is left out: `from mcp import Client` in a user's module works as ever, and
costs what it costs.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema

from trysquare.server._sdk import WIRE_MODELS, is_supported

_DEFER_BUILD = "_defer_build"
_LATE_PACKAGES = ("mcp", "mcp.server", "uvicorn")
_LATE_NAMES: Mapping[str, Sequence[str]] = {
    "mcp_types.methods": WIRE_MODELS,
    "mcp.server.lowlevel.server": (
        "starlette.applications",
        "starlette.middleware",
        "starlette.middleware.authentication",
        "starlette.routing",
        "mcp.server.auth.middleware.auth_context",
        "mcp.server.auth.middleware.bearer_auth",
        "mcp.server.auth.provider",
        "mcp.server.auth.routes",
        "mcp.server.auth.settings",
        "mcp.server.streamable_http",
        "mcp.server.streamable_http_manager",
        "mcp.server.transport_security",
    ),
}
"""Modules that only keep what they import of others, by name, until somebody uses it."""


@contextmanager
def deferred_sdk_imports() -> Generator[None]:
    """Defer imports of the SDK within the block, unless its version or that of pydantic is untested."""
    if not is_supported() or _DEFER_BUILD not in TypeAdapter.__dict__:
        yield
        return
    for name in _LATE_PACKAGES:
        _make_late(name)
    with _deferred_builds():
        # It wants four of its models compiled at once, and uses none.
        with _replaced(BaseModel, "model_rebuild", classmethod(_rebuilt_later(BaseModel.__dict__["model_rebuild"]))):
            importlib.import_module("mcp_types")
        for name, sources in _LATE_NAMES.items():
            _import_with_late_names(name, sources)
        yield


def load_server() -> None:
    """Import the stdio server with deferred imports."""
    with deferred_sdk_imports():
        importlib.import_module("trysquare.server.stdio")


@contextmanager
def _deferred_builds() -> Generator[None]:
    """Have pydantic compile what is declared within the block when it is first used."""
    BaseModel.model_config["defer_build"] = True
    try:
        # A union has no model configuration.
        with _replaced(TypeAdapter, _DEFER_BUILD, True):
            yield
    finally:
        del BaseModel.model_config["defer_build"]


@contextmanager
def _replaced(owner: type, name: str, value: Any) -> Generator[None]:
    own = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, own)


def _rebuilt_later(usual: Any) -> Callable[..., bool | None]:
    """Leaves the SDK's models as they are for now. Those of others may be needed by another thread meanwhile."""

    def model_rebuild(cls: type, **options: Any) -> bool | None:
        return None if cls.__module__.startswith("mcp_types") else usual.__get__(None, cls)(**options)

    return model_rebuild


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


class _LateName(type):
    """Stands for a name of a module that is not loaded yet: a class, a function or a number."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(_loaded(cls), name)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        # What was meant to be a default value is one of these as well.
        return _loaded(cls)(*map(_loaded, args), **{name: _loaded(value) for name, value in options.items()})

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _loaded(cls))


class _LateModule(ModuleType):
    """A module that hands out its names before it is loaded."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        late = _LateName(name, (), {"source": self.__name__, "__get_pydantic_core_schema__": classmethod(_late_schema)})
        setattr(self, name, late)
        return late


def _late_schema(cls: type, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    return handler(_loaded(cls))


def _loaded(value: Any) -> Any:
    """The value itself; for a late name what it stands for."""
    if type(value) is not _LateName:
        return value
    module = sys.modules.get(value.source)
    if module is None:
        with _deferred_builds():
            module = importlib.import_module(value.source)
    return getattr(module, value.__name__)


def _import_with_late_names(name: str, sources: Sequence[str]) -> None:
    """Import a module without those that it takes names from."""
    if name in sys.modules:
        return
    late = {source: _LateModule(source) for source in sources if source not in sys.modules}
    sys.modules.update(late)
    try:
        importlib.import_module(name)
    finally:
        for source in late:
            del sys.modules[source]

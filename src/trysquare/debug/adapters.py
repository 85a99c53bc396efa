"""Adapters: which debuggers are installed, which version, and the command that installs the others."""

from __future__ import annotations

import asyncio
import importlib.metadata
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from trysquare.core.types import JsonObject
from trysquare.debug.engines import delve, java, lldb, rdbg

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Adapter:
    """A debugger: the languages it is for, the programs it may be, and how it is installed."""

    name: str
    languages: tuple[str, ...]
    programs: tuple[str, ...]
    """Any one of these; empty for a package of Python."""
    install: tuple[str, ...]
    """The command that installs it."""
    version: tuple[str, ...] = ("--version",)


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """What is known of an adapter on this machine."""

    adapter: Adapter
    path: str | None
    version: str | None

    def to_json(self) -> JsonObject:
        told: JsonObject = {"adapter": self.adapter.name, "languages": list(self.adapter.languages)}
        if self.path is None:
            return {**told, "installed": False, "install": " ".join(self.adapter.install)}
        return {**told, "installed": True, "version": self.version, "path": self.path}


def _debian(packages: str) -> tuple[str, ...]:
    return ("apt-get", "install", "-y", "--no-install-recommends", *packages.split())


ADAPTERS = (
    Adapter(
        name="pydevd", languages=("python",), programs=(), install=(sys.executable, "-m", "pip", "install", "debugpy")
    ),
    Adapter(
        name="node", languages=("javascript", "typescript"), programs=("node", "nodejs"), install=_debian("nodejs")
    ),
    Adapter(name="lldb-dap", languages=("c", "cpp", "rust"), programs=lldb.ADAPTERS, install=_debian("lldb-19")),
    Adapter(
        name="delve", languages=("go",), programs=("dlv",), install=_debian("delve golang-go"), version=("version",)
    ),
    Adapter(name="rdbg", languages=("ruby",), programs=rdbg.NAMES, install=_debian("ruby")),
    Adapter(name="jdi", languages=("java",), programs=("javac",), install=_debian("default-jdk-headless")),
)
INSTALL_HINTS = {"go": delve.INSTALL, "java": java.INSTALL, "c": lldb.INSTALL, "ruby": rdbg.INSTALL}


def adapter_for(language: str) -> Adapter | None:
    """The debugger of a language."""
    return next((adapter for adapter in ADAPTERS if language in adapter.languages), None)


async def installed(adapters: Sequence[Adapter] = ADAPTERS) -> list[Installed]:
    """Look for each debugger and ask it for its version, all at the same time."""
    return list(await asyncio.gather(*(look_for(adapter) for adapter in adapters)))


async def look_for(adapter: Adapter) -> Installed:
    """Look for one debugger."""
    if not adapter.programs:
        return _package(adapter)
    path = next((found for name in adapter.programs if (found := shutil.which(name)) is not None), None)
    return Installed(adapter=adapter, path=path, version=None if path is None else await _version(path, adapter))


def _package(adapter: Adapter) -> Installed:
    try:
        version = importlib.metadata.version("debugpy")
    except importlib.metadata.PackageNotFoundError:
        return Installed(adapter=adapter, path=None, version=None)
    return Installed(adapter=adapter, path=sys.executable, version=version)


async def _version(path: str, adapter: Adapter) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            path, *adapter.version, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            stdin=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        async with asyncio.timeout(10):
            told, _ = await process.communicate()
    except (OSError, TimeoutError):
        return None
    found = _VERSION.search(told.decode(errors="replace"))
    return None if found is None else found[0]


async def run_install(adapter: Adapter, *, timeout: float = 600.0) -> tuple[int, str]:
    """Run the command that installs a debugger, and tell its exit code and the end of what it said."""
    process = await asyncio.create_subprocess_exec(
        *adapter.install, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        stdin=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    async with asyncio.timeout(timeout):
        told, _ = await process.communicate()
    return process.returncode or 0, told.decode(errors="replace")[-1500:]

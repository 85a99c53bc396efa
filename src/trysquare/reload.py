"""Reloading of Python sources: their toolset follows the files that it is made of, while a server serves it.

The modules are imported again in the same process, so that no client loses its connection. A version that cannot be
imported changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from trysquare.core.errors import TrysquareError
from trysquare.core.requests import request_middleware_of
from trysquare.core.threads import run_in_thread
from trysquare.core.toolset import CombinedToolset, DynamicToolset, Toolset, open_lifespans, routes_of, server_info_of
from trysquare.sources import is_own_file, load_tools, parse_source

logger = logging.getLogger("trysquare.reload")

POLL_SECONDS = 0.3
"""Polled, since a few files cost less to look at than a watch of all directories around them."""
_SETTLE_SECONDS = 0.05
Versions: TypeAlias = dict[str, tuple[int, ...]]
Changes: TypeAlias = Versions


@asynccontextmanager
async def open_reloading(
    sources: Sequence[str], *, project: Path, where: str = "", openapi_url: str | None = None
) -> AsyncGenerator[DynamicToolset]:
    """The tools of sources, imported again whenever one of their files changes. Raises if the first import fails."""
    reloader = _Reloader(sources, project, where, openapi_url)
    loaded = reloader.load()
    async with AsyncExitStack() as stack:
        # A version that was compiled within the same second would be taken for the present one.
        stack.callback(setattr, sys, "dont_write_bytecode", sys.dont_write_bytecode)
        sys.dont_write_bytecode = True
        toolset = DynamicToolset(server_info=server_info_of(loaded), routes=routes_of(loaded))
        current = _Current(toolset)
        stack.push_async_callback(current.close)
        await current.use(loaded)
        watching = asyncio.create_task(_follow(reloader, current))
        stack.callback(watching.cancel)
        yield toolset


async def _follow(reloader: _Reloader, current: _Current) -> None:
    while True:
        await asyncio.sleep(POLL_SECONDS)
        changed = await run_in_thread(reloader.changes)
        # An editor may still write: what is imported has not changed for a moment.
        if not changed or changed != await _settled(reloader):
            continue
        names = ", ".join(sorted({os.path.basename(path) for path in changed}))
        try:
            await current.use(await run_in_thread(reloader.load))
        except TrysquareError as error:
            reloader.restore()
            logger.error("%s changed; the last version is still served: %s", names, " ".join(str(error).split()))
        else:
            logger.info("%s changed; reloaded, %d tools", names, len(current.toolset.tools()))


async def _settled(reloader: _Reloader) -> Changes:
    await asyncio.sleep(_SETTLE_SECONDS)
    return await run_in_thread(reloader.changes)


class _Current:
    """The served version: its tools in the toolset, and its lifespans open."""

    def __init__(self, toolset: DynamicToolset) -> None:
        self.toolset = toolset
        self._open = AsyncExitStack()

    async def use(self, version: Toolset) -> None:
        """Serve a version in place of the one before. If it cannot be opened, nothing changes."""
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(open_lifespans(version))
            self.toolset.request_middleware = request_middleware_of(version)
            self.toolset.replace(
                tools=version.tools(),
                prompts=version.prompts(),
                resources=version.resources(),
                templates=version.templates(),
            )
            before, self._open = self._open, opened.pop_all()
        await before.aclose()

    async def close(self) -> None:
        await self._open.aclose()


class _Reloader:
    """Imports the sources, and knows the modules and files that they are made of."""

    def __init__(self, sources: Sequence[str], project: Path, where: str, openapi_url: str | None = None) -> None:
        self._sources, self._project, self._where = sources, project, where
        self._openapi_url = openapi_url
        self._others = frozenset(sys.modules)
        self._good: Mapping[str, ModuleType] = {}
        self._files: Versions = {}
        self._has_failed = False

    def load(self) -> Toolset:
        """Import everything anew. If that fails, `restore` brings back the modules of the last good version."""
        self._good = self._own_modules()
        for name in self._good:
            del sys.modules[name]
        self._has_failed = True
        try:
            toolset = CombinedToolset(
                load_tools(named, project=self._project, where=self._where, openapi_url=self._openapi_url)
                for named in self._sources
            )
            self._has_failed = False
            return toolset
        finally:
            self._files = self._versions()

    def restore(self) -> None:
        """Take the last good version's modules as those that are imported."""
        self._has_failed = True
        for name in self._own_modules():
            del sys.modules[name]
        sys.modules.update(self._good)

    def changes(self) -> Changes:
        """The files that have changed since the last import; after a failed one also directories with new files."""
        found = _states(self._files)
        return {path: found[path] for path, state in self._files.items() if found[path] != state}

    def _own_modules(self) -> dict[str, ModuleType]:
        known = {name: module for name, module in list(sys.modules.items()) if name not in self._others}
        return {name: module for name, module in known.items() if is_own_file(_file_of(module))}

    def _versions(self) -> Versions:
        modules = {**self._good, **self._own_modules()}
        files = {_file_of(module) for module in modules.values()} | set(self._source_files())
        folders = {os.path.dirname(path) for path in files} if self._has_failed else set[str]()
        return _states(files | folders)

    def _source_files(self) -> list[str]:
        found = (parse_source(named, project=self._project).file for named in self._sources)
        return [str(file) for file in found if file is not None]


def _file_of(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else "<none>"


def _states(paths: Versions | set[str]) -> Versions:
    return {path: _state(path) for path in paths}


def _state(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_ino, found.st_mtime_ns, 0 if os.path.isdir(path) else found.st_size)

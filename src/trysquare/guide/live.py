"""Live: folders are watched, and what listens to the toolset is told of every change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from trysquare.files.watch import changes_below
from trysquare.guide.library import Library
from trysquare.guide.project import Project
from trysquare.guide.projects import ProjectListener, Projects

OnChange = Callable[[Project, frozenset[str]], None]
"""What to do about a change: the project, and the paths that changed, relative to one of its folders."""


@asynccontextmanager
async def watched(projects: Projects, on_change: OnChange) -> AsyncGenerator[None]:
    """Watch the folders of every open project, as long as the block lasts."""
    watchers = _Watchers(asyncio.get_running_loop(), on_change)
    projects.listen(watchers)
    try:
        yield
    finally:
        await watchers.end()


class _Watchers(ProjectListener):
    """The tasks that watch, by project. Projects come and go in calls, and calls run in threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: OnChange) -> None:
        self._loop = loop
        self._on_change = on_change
        self._tasks: dict[int, list[asyncio.Task[None]]] = {}
        self._ended = False

    def opened(self, project: Project) -> None:
        self._soon(self._start, project)

    def left(self, project: Project) -> None:
        self._soon(self._stop, project)

    async def end(self) -> None:
        """Stop watching, and wait until nothing watches any more."""
        self._ended = True
        tasks = [task for each in self._tasks.values() for task in each]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _soon(self, do: Callable[[Project], None], project: Project) -> None:
        if not self._ended:
            self._loop.call_soon_threadsafe(do, project)

    def _start(self, project: Project) -> None:
        if not self._ended:
            self._tasks[id(project)] = [
                self._loop.create_task(_follow(project, library, self._on_change)) for library in project.libraries
            ]

    def _stop(self, project: Project) -> None:
        for task in self._tasks.pop(id(project), ()):
            task.cancel()


async def _follow(project: Project, library: Library, on_change: OnChange) -> None:
    async for paths in changes_below(library.folder.root):
        for path in paths:
            library.changed(path)
        on_change(project, paths)

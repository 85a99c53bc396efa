"""Live: folders are watched, and what listens to the toolset is told of every change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from trysquare.files.watch import changes_below
from trysquare.guide.library import Library
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects

OnChange = Callable[[Project, frozenset[str]], None]


@asynccontextmanager
async def watched(projects: Projects, on_change: OnChange) -> AsyncGenerator[None]:
    """Watch the folders of every project that is opened, as long as the block lasts."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def start(project: Project) -> None:
        for library in project.libraries:
            tasks.add(loop.create_task(_follow(project, library, on_change)))

    def start_from_any_thread(project: Project) -> None:
        # Projects are opened by calls, and calls of synchronous tools run in threads.
        loop.call_soon_threadsafe(start, project)

    projects.on_open(start_from_any_thread)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(project: Project, library: Library, on_change: OnChange) -> None:
    async for paths in changes_below(library.folder.root):
        for path in paths:
            library.changed(path)
        on_change(project, paths)

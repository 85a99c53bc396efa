"""The guide as a toolset: tools, prompt, resources and the content watcher."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from trysquare.core.errors import TrysquareError
from trysquare.core.resources import Resource
from trysquare.core.toolset import DynamicToolset, resource_of_template
from trysquare.files.watch import changes_below
from trysquare.guide.config import GuideConfig
from trysquare.guide.documents import DocumentId, document_uri
from trysquare.guide.library import Library
from trysquare.guide.projects import Project, ProjectListener, Projects
from trysquare.guide.prompts.prompt import guide_prompt
from trysquare.guide.resources import document_resources, document_template, expression_template, skill_resources
from trysquare.guide.tools.content import content_tools
from trysquare.guide.tools.edit import edit_tools, export_tools, project_tools
from trysquare.guide.tools.flags import flag_tools
from trysquare.store.database import Transactions

OnChange = Callable[[Project, frozenset[str]], None]
"""What to do about a change: the project, and the paths that changed, relative to one of its folders."""


class _Watchers(ProjectListener):
    """Watches the folders of open projects, one task each. Projects come and go in calls, and calls run in threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: OnChange) -> None:
        self._loop = loop
        self._on_change = on_change
        self._tasks: dict[int, list[asyncio.Task[None]]] = {}
        self._ended = False

    def opened(self, project: Project) -> None:
        self._schedule(self._start, project)

    def left(self, project: Project) -> None:
        self._schedule(self._stop, project)

    async def end(self) -> None:
        """Stop watching, and wait until nothing watches any more."""
        self._ended = True
        tasks = [task for each in self._tasks.values() for task in each]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _schedule(self, do: Callable[[Project], None], project: Project) -> None:
        if not self._ended:
            self._loop.call_soon_threadsafe(do, project)

    def _start(self, project: Project) -> None:
        if not self._ended:
            self._tasks[id(project)] = [
                self._loop.create_task(self._follow(project, library)) for library in project.libraries
            ]

    def _stop(self, project: Project) -> None:
        for task in self._tasks.pop(id(project), ()):
            task.cancel()

    async def _follow(self, project: Project, library: Library) -> None:
        async for paths in changes_below(library.folder.root):
            for path in paths:
                library.changed(path)
            self._on_change(project, paths)


_TOOLS = (content_tools, flag_tools, edit_tools, export_tools, project_tools)


class GuideToolset(DynamicToolset, ProjectListener):
    """The guide's tools. Documents become resources when they are listed, not at the start."""

    lists_resources_late: ClassVar[bool] = True

    def __init__(self, projects: Projects) -> None:
        super().__init__(
            [tool for make in _TOOLS for tool in make(projects)],
            prompts=[guide_prompt(projects)],
            templates=[document_template(projects), expression_template(projects)],
        )
        self._projects = projects
        self._build_lock = threading.Lock()
        self._built_from: tuple[Any, ...] | None = None
        self._documents: list[Resource] = []
        self._skill_files: dict[str, Resource] = {}

    def resources(self) -> Sequence[Resource]:
        """Every document, and the file that opens each skill; the skills' other files are named in their manifests."""
        with self._build_lock:
            self._rebuild()
            return (*self._documents, *(each for each in self._skill_files.values() if each.skill is not None))

    def find_resource(self, uri: str) -> Resource | None:
        found = resource_of_template(uri, self.templates())
        if found is not None:
            return found
        with self._build_lock:
            self._rebuild()
            return self._skill_files.get(uri)

    def changed(self, project: Project, documents: Sequence[DocumentId]) -> None:
        """A call changed a project: the documents that it touched, and those that depend on flags, may read anew."""
        self._notify_documents(project, lambda: [*documents, *_flagged(project)])

    def files_changed(self, project: Project, paths: frozenset[str]) -> None:
        """Files of a project were added, removed or changed."""
        self._notify_documents(project, lambda: list(_documents_at(project, paths)))

    def _notify_documents(self, project: Project, touched: Callable[[], Sequence[DocumentId]]) -> None:
        try:
            documents = touched()
        except TrysquareError:
            # A `guide.json` that cannot be read right now is reported by the next call.
            documents = ()
        addresses = [document_uri(project.name, each) for each in documents]
        if project.name == self._projects.default_name:
            addresses += self._skill_addresses(documents)
            self.notify("resources")
        for address in addresses:
            self.notify(address)

    def _skill_addresses(self, documents: Sequence[DocumentId]) -> list[str]:
        """The files of skills that may read anew: those of the documents, and the lists of them all."""
        endings = tuple(f"/{quote(each.name)}.md" for each in documents)
        known = list(self._skill_files.values())
        return [each.uri for each in known if each.skill is not None or each.uri.endswith(endings)]

    def _rebuild(self) -> None:
        project = self._projects.get()
        version = project.shown_version()
        if version != self._built_from:
            self._documents = document_resources(self._projects, project)
            self._skill_files = {each.uri: each for each in skill_resources(self._projects, project)}
            # Read again: reading the documents changes the version.
            self._built_from = project.shown_version()


def _flagged(project: Project) -> Iterator[DocumentId]:
    """The documents that a flag can hide, show or word differently."""
    for category in project.categories():
        for document in project.documents(category.name):
            if document.requires or document.metadata.get("template"):
                yield document.id


def _documents_at(project: Project, paths: frozenset[str]) -> Iterator[DocumentId]:
    """The documents at some paths, including removed ones."""
    for category in project.categories():
        for path in paths:
            if path.startswith(category.folder + "/") and path.endswith(".md"):
                name = path.removeprefix(category.folder + "/").removesuffix(".md")
                yield DocumentId(category=category.name, name=name)


@asynccontextmanager
async def open_guide(
    config: GuideConfig, *, project_state: Callable[[Path], Transactions], user_state: Transactions
) -> AsyncGenerator[GuideToolset]:
    """Open the guide of a project; wrong settings raise here."""
    async with AsyncExitStack() as stack:
        projects = Projects(config, project_state=project_state, user_state=user_state)
        stack.callback(projects.close)
        projects.open_default().require_readable()
        toolset = GuideToolset(projects)
        projects.listen(toolset)
        if config.watch:
            watchers = _Watchers(asyncio.get_running_loop(), toolset.files_changed)
            stack.push_async_callback(watchers.end)
            projects.listen(watchers)
        yield toolset

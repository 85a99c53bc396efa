"""The guide's door: opens the projects' content and yields tools, prompts and resources."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from trysquare.core.errors import TrysquareError
from trysquare.core.resource import Resource
from trysquare.core.tool import Tool
from trysquare.core.toolset import ChangingToolset, resource_of_template
from trysquare.guide.addresses import document_uri
from trysquare.guide.config import GuideConfig
from trysquare.guide.document import DocumentId
from trysquare.guide.live import watched
from trysquare.guide.project import Project
from trysquare.guide.projects import ProjectListener, Projects
from trysquare.guide.prompts import guide_prompt
from trysquare.guide.resources import document_resources, document_template, expression_template
from trysquare.guide.skills import skill_resources
from trysquare.guide.tools.changing import changing_tools
from trysquare.guide.tools.content import content_tool
from trysquare.guide.tools.exporting import exporting_tools
from trysquare.guide.tools.finding import finding_tools
from trysquare.guide.tools.flags import flag_tools
from trysquare.guide.tools.opening import project_tools
from trysquare.store.lazy import Transactions


def _tools(projects: Projects) -> list[Tool]:
    return [
        content_tool(projects),
        *finding_tools(projects),
        *flag_tools(projects),
        *changing_tools(projects),
        *exporting_tools(projects),
        *project_tools(projects),
    ]


class GuideToolset(ChangingToolset, ProjectListener):
    """The guide's tools. Documents become resources when somebody lists them, and not at the start."""

    lists_resources_late: ClassVar[bool] = True

    def __init__(self, projects: Projects) -> None:
        super().__init__(
            _tools(projects),
            prompts=[guide_prompt(projects)],
            templates=[document_template(projects), expression_template(projects)],
        )
        self._projects = projects
        self._made_lock = threading.Lock()
        self._made_of: tuple[Any, ...] | None = None
        self._documents: list[Resource] = []
        self._skill_files: dict[str, Resource] = {}

    def resources(self) -> Sequence[Resource]:
        """Every document, and the file that opens each skill; the skills' other files are named in their manifests."""
        with self._made_lock:
            self._make()
            return (*self._documents, *(each for each in self._skill_files.values() if each.skill is not None))

    def find_resource(self, uri: str) -> Resource | None:
        found = resource_of_template(uri, self.templates())
        if found is not None:
            return found
        with self._made_lock:
            self._make()
            return self._skill_files.get(uri)

    def changed(self, project: Project) -> None:
        """A call changed a project: any of its documents may read differently now."""
        self._tell(project, _all_documents)

    def files_changed(self, project: Project, paths: frozenset[str]) -> None:
        """Files of a project came, went or changed."""
        self._tell(project, lambda project: _documents_at(project, paths))

    def _tell(self, project: Project, touched: Callable[[Project], Iterator[DocumentId]]) -> None:
        try:
            addresses = [document_uri(project.name, each) for each in touched(project)]
        except TrysquareError:
            # A `guide.json` that cannot be read right now: the next call says so, to whoever makes it.
            addresses = []
        if project.name == self._projects.default_name:
            before = set(self._skill_files)
            self.notify("resources")
            addresses += sorted(before)
        for address in addresses:
            self.notify(address)

    def _make(self) -> None:
        project = self._projects.get()
        version = project.shown_version()
        if version != self._made_of:
            self._documents = document_resources(self._projects, project)
            self._skill_files = {each.uri: each for each in skill_resources(self._projects, project)}
            # Asked again: reading the documents is what tells how many there are.
            self._made_of = project.shown_version()


def _all_documents(project: Project) -> Iterator[DocumentId]:
    for category in project.categories():
        for document in project.documents(category.name):
            yield document.id


def _documents_at(project: Project, paths: frozenset[str]) -> Iterator[DocumentId]:
    """The documents that lie at some paths, or did: a file that went away is a change too."""
    for category in project.categories():
        for path in paths:
            if path.startswith(category.folder + "/") and path.endswith(".md"):
                name = path.removeprefix(category.folder + "/").removesuffix(".md")
                yield DocumentId(category=category.name, name=name)


@asynccontextmanager
async def guide_toolset(
    config: GuideConfig, *, project_state: Callable[[Path], Transactions], user_state: Transactions
) -> AsyncGenerator[GuideToolset]:
    """The guide's tools over a project's content. Wrong settings are found when the door opens."""
    async with AsyncExitStack() as stack:
        projects = Projects(config, project_state=project_state, user_state=user_state)
        stack.callback(projects.close)
        projects.open_default().require_readable()
        toolset = GuideToolset(projects)
        projects.listen(toolset)
        if config.watch:
            await stack.enter_async_context(watched(projects, toolset.files_changed))
        yield toolset

"""The guide's door: opens the projects' content and yields tools, prompts and resources."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from trysquare.core.resource import Resource
from trysquare.core.tool import Tool
from trysquare.core.toolset import ChangingToolset, Toolset, resource_of_template
from trysquare.guide.addresses import document_uri
from trysquare.guide.config import GuideConfig
from trysquare.guide.live import watched
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects
from trysquare.guide.prompts import guide_prompt
from trysquare.guide.resources import document_resources, document_template, expression_template
from trysquare.guide.skills import skill_resources
from trysquare.guide.tools.changing import changing_tools
from trysquare.guide.tools.content import content_tool
from trysquare.guide.tools.finding import finding_tools
from trysquare.guide.tools.flags import flag_tools
from trysquare.guide.tools.opening import project_tools
from trysquare.store.database import Database


def _tools(projects: Projects) -> list[Tool]:
    return [
        content_tool(projects),
        *finding_tools(projects),
        *flag_tools(projects),
        *changing_tools(projects),
        *project_tools(projects),
    ]


class GuideToolset(ChangingToolset):
    """The guide's tools. Documents become resources when somebody lists them, and not at the start."""

    def __init__(self, projects: Projects) -> None:
        super().__init__(
            _tools(projects),
            prompts=[guide_prompt(projects)],
            templates=[document_template(projects), expression_template(projects)],
        )
        self._projects = projects
        self._listed: dict[str, Resource] | None = None

    def resources(self) -> Sequence[Resource]:
        return tuple(self._by_uri().values())

    def find_resource(self, uri: str) -> Resource | None:
        return resource_of_template(uri, self.templates()) or self._by_uri().get(uri)

    def content_changed(self, project: Project, paths: frozenset[str]) -> None:
        """Tell who listens that documents came, went or changed."""
        if project.name == self._projects.default_name:
            self._listed = None
            self.notify("resources")
        for category in project.categories():
            for document in project.documents(category.name):
                if document.path in paths:
                    self.notify(document_uri(project.name, document.id))

    def _by_uri(self) -> dict[str, Resource]:
        if self._listed is None:
            project = self._projects.get()
            made = [*document_resources(self._projects, project), *skill_resources(self._projects, project)]
            self._listed = {resource.uri: resource for resource in made}
        return self._listed


@asynccontextmanager
async def guide_toolset(
    config: GuideConfig, *, project_state: Callable[[Path], Database], user_state: Callable[[], Database]
) -> AsyncGenerator[Toolset]:
    """The guide's tools over a project's content. Wrong settings are found when the door opens."""
    async with AsyncExitStack() as stack:
        projects = Projects(config, project_state=project_state, user_state=user_state)
        stack.callback(projects.close)
        projects.get()
        toolset = GuideToolset(projects)
        if config.watch:
            await stack.enter_async_context(watched(projects, toolset.content_changed))
        yield toolset

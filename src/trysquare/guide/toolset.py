"""The guide's door: opens the projects' content and yields the tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from trysquare.core.toolset import ChangingToolset, Toolset
from trysquare.guide.config import GuideConfig
from trysquare.guide.projects import Projects
from trysquare.guide.tools.content import content_tool
from trysquare.guide.tools.flags import flag_tools
from trysquare.store.database import Database


@asynccontextmanager
async def guide_toolset(
    config: GuideConfig, *, project_state: Callable[[Path], Database], user_state: Database
) -> AsyncGenerator[Toolset]:
    """The guide's tools over a project's content. Wrong content is found when the door opens."""
    projects = Projects(config, project_state=project_state, user_state=user_state)
    try:
        projects.get()
        yield ChangingToolset([content_tool(projects), *flag_tools(projects)])
    finally:
        projects.close()

"""The six flag tools: a project's flags over the user's."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool, tool
from trysquare.guide.flags import KNOWN, checked, resolve
from trysquare.guide.projects import Project, Projects
from trysquare.guide.tools.content import CHANGING, LEVELS, READING, ProjectArguments, answer

Name = Annotated[str, Field(description="Such as content-style")]
Value = Annotated[bool | int | float | str | list[str] | None, Field(description="null removes the flag")]


class FlagName(ProjectArguments):
    name: Name


class SetFlag(FlagName):
    value: Value


class FeatureName(ToolArguments):
    name: Name


class SetFeature(FeatureName):
    value: Value


class NoArguments(ToolArguments):
    """Takes nothing."""


# Documented as in guide/tools/README.md.
def flag_tools(projects: Projects) -> list[Tool]:
    def set_project_flag(args: SetFlag, context: CallContext) -> Result[Any]:
        """Set or remove a flag of one project."""
        project = projects.get(args.project)
        value = checked(args.name, args.value, scope="project")
        if args.name == "preset" and isinstance(value, str):
            _require_preset(project, value)
        before = project.flags.set(args.name, value, by=context.principal.subject)
        projects.changed(project)
        return answer(project, {"name": args.name, "before": before, "value": value}, fields=_effect(args.name))

    def get_project_flag(args: FlagName) -> Result[Any]:
        """Get the effective value of a flag in a project."""
        project = projects.get(args.project)
        return answer(project, asdict(project.flag(args.name)))

    def list_project_flags(args: ProjectArguments) -> Result[Any]:
        """List the effective flags of a project."""
        project = projects.get(args.project)
        names = sorted({*project.flag_values(), *(each.name for each in KNOWN if each.default is not None)})
        found = [project.flag(name) for name in names]
        return answer(project, {each.name: {"value": each.value, "source": each.source} for each in found})

    def set_feature_flag(args: SetFeature, context: CallContext) -> Result[Any]:
        """Set or remove a flag for all projects."""
        value = checked(args.name, args.value, scope="feature")
        before = projects.features.set(args.name, value, by=context.principal.subject)
        projects.features_changed()
        return Result[Any].ok({"name": args.name, "before": before, "value": value}, fields=_effect(args.name))

    def get_feature_flag(args: FeatureName) -> Result[Any]:
        """Get the value of a flag for all projects."""
        return Result[Any].ok(asdict(resolve(args.name, project={}, feature=projects.features.all())))

    def list_feature_flags(args: NoArguments) -> Result[Any]:
        """List the flags set for all projects."""
        return Result[Any].ok(dict(projects.features.all()))

    return [
        tool(set_project_flag, **CHANGING, category="flags", profiles=LEVELS,
             use_when="the user wants something switched in this project"),
        tool(get_project_flag, **READING, category="flags", profiles=LEVELS,
             use_when="you need one flag as it holds here"),
        tool(list_project_flags, **READING, category="flags", profiles=LEVELS,
             use_when="you need all flags that hold in a project"),
        tool(set_feature_flag, **CHANGING, category="flags", profiles=LEVELS,
             use_when="the user wants a default for every project of theirs"),
        tool(get_feature_flag, **READING, category="flags", profiles=LEVELS,
             use_when="you need the value that no project has set"),
        tool(list_feature_flags, **READING, category="flags", profiles=LEVELS,
             use_when="you need all flags that no project has set"),
    ]  # fmt: skip


def _require_preset(project: Project, name: str) -> None:
    known = project.presets()
    if name not in known:
        close = closest_names(name, known, count=3) or sorted(known)[:5]
        hint = f" Known: {', '.join(f'`{each}`' for each in close)}." if close else " The project has none."
        raise NotFound(f"Unknown preset `{name[:80]}`.{hint}", code=ErrorCode.RESOURCE_NOT_FOUND)


def _effect(name: str) -> dict[str, Any]:
    effects = [each.effect for each in KNOWN if each.name == name]
    return {"effect": effects[0]} if effects else {}

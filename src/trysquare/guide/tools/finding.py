"""search_content and list_content: what there is. See docs/templates/tools/README.md."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.guide.addresses import expression_for
from trysquare.guide.commands import commands
from trysquare.guide.document import Document
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects
from trysquare.guide.tools.answers import ProjectArguments, answer

Kind = Literal["categories", "collections", "documents", "presets", "commands", "projects", "problems"]


class SearchContent(ProjectArguments):
    """Arguments of search_content."""

    query: Annotated[str, Field(description="Such as: error handling")]
    limit: Annotated[int, Field(description="Most documents to name", ge=1, le=50)] = 10


class ListContent(ProjectArguments):
    """Arguments of list_content."""

    kind: Annotated[Kind, Field(description="What to list")] = "categories"
    category: Annotated[str | None, Field(description="Only its documents")] = None


def finding_tools(projects: Projects) -> list[Tool]:
    """The tools that tell what content there is."""

    def search_content(args: SearchContent) -> Result[Any]:
        """Find documents by the words in them."""
        project = projects.get(args.project)
        hits = project.search.find(args.query, limit=args.limit)
        if not hits:
            return answer(project, [], message="No document holds any of these words.")
        found = [{**_about(hit.document), "excerpt": hit.excerpt} for hit in hits]
        first = {"expression": ",".join(expression_for(hit.document.id) for hit in hits[:3]), "project": project.name}
        return answer(project, found, next={"tool": "get_content", "arguments": first})

    def list_content(args: ListContent) -> Result[Any]:
        """List what the content of a project is."""
        project = projects.get(args.project)
        return answer(project, _listed(projects, project, args))

    return [
        tool(search_content, room="guide", result_limit=None, category="content", read_only=True, idempotent=True,
             use_when="you know a subject and not which document treats it",
             avoid_when="you know the category: get_content fetches it directly",
             examples=(Example(arguments={"query": "retry policy"}, explanation="The best first."),)),
        tool(list_content, room="guide", category="content", read_only=True, idempotent=True,
             use_when="you need the names that get_content takes",
             examples=(Example(arguments={"kind": "documents", "category": "lang"}, explanation="All of lang."),)),
    ]  # fmt: skip


def _listed(projects: Projects, project: Project, args: ListContent) -> Any:
    match args.kind:
        case "categories":
            return [_category(project, each.name, each.description) for each in project.categories()]
        case "collections":
            return [{"name": each.name, "expressions": each.expressions, "description": each.description}
                    for each in project.collections()]  # fmt: skip
        case "documents":
            wanted = [each.name for each in project.categories() if args.category in (None, each.name)]
            return [_about(document) for name in wanted for document in project.documents(name)]
        case "presets":
            return {name: preset.model_dump(exclude_defaults=True) for name, preset in project.presets().items()}
        case "commands":
            return {f":{name}": document.description or "" for name, document in commands(project).items()}
        case "projects":
            return [{"name": each.name, "root": str(each.root)} for each in projects.known().values()]
        case "problems":
            return [{"path": each.path, "reason": each.reason} for each in project.problems()]


def _category(project: Project, name: str, description: str | None) -> JsonObject:
    listed: JsonObject = {"name": name, "documents": len(project.documents(name))}
    return {**listed, "description": description} if description else listed


def _about(document: Document) -> JsonObject:
    about: JsonObject = {"id": str(document.id)}
    for key, value in (("title", document.title), ("description", document.description)):
        if value:
            about[key] = value
    if document.tags:
        about["tags"] = sorted(document.tags)
    if document.written_by_agent:
        about["written_by_agent"] = document.written_by_agent
    return about

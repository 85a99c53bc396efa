"""Resources: every document at an address of its own, and any expression at one."""

from __future__ import annotations

from collections.abc import Sequence

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.resource import Read, Resource, ResourceTemplate
from trysquare.guide.addresses import DOCUMENT_TEMPLATE, EXPRESSION_TEMPLATE, document_uri
from trysquare.guide.document import Document
from trysquare.guide.fetch import Request, fetch, visible_pieces
from trysquare.guide.joining import joined
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects

MARKDOWN = "text/markdown"


def document_resources(projects: Projects, project: Project) -> list[Resource]:
    """Each document of a project as a resource."""
    template = document_template(projects)
    return [
        Resource(
            uri=document_uri(project.name, document.id),
            name=str(document.id),
            title=document.title,
            description=document.description or f"The document {document.title or document.id.name}",
            mime_type=MARKDOWN,
            read=_reading_of(template, project, document),
        )
        for category in project.categories()
        for document in project.documents(category.name)
    ]


def document_template(projects: Projects) -> ResourceTemplate:
    """The address of any document of any project."""

    async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        project = projects.get(values["project"])
        found = [each for each in project.documents(values["category"]) if each.id.name == values["name"]]
        pieces = visible_pieces(project, found)
        if not pieces:
            raise NotFound(
                f"There is no document `{values['category']}/{values['name']}`, or a flag hides it.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
            )
        return (ResourceContents(uri=uri, mime_type=MARKDOWN, text=pieces[0].text),)

    async def complete(name: str, typed: str, others: dict[str, str]) -> Sequence[str]:
        found = sorted(each for each in _choices(projects, name, others) if each.lower().startswith(typed.lower()))
        return found[:100]

    return ResourceTemplate(
        uri_template=DOCUMENT_TEMPLATE, name="document", read=read, mime_type=MARKDOWN, complete=complete,
        description="One document of a project's content",
    )  # fmt: skip


def _choices(projects: Projects, name: str, others: dict[str, str]) -> list[str]:
    """What can stand in a part of a document's address, as far as the other parts are known."""
    if name == "project":
        return list(projects.known())
    project = projects.get(others.get("project"))
    if name == "category":
        return [each.name for each in project.categories()]
    return [each.id.name for each in project.documents(others.get("category", ""))]


def expression_template(projects: Projects) -> ResourceTemplate:
    """The address of whatever an expression names."""

    async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        project = projects.get(values["project"])
        fetched = fetch(project, Request(expression=values["expression"]))
        text = joined(fetched.delivery.sent, style=str(project.flag("content-style").value)) or ""
        return (ResourceContents(uri=uri, mime_type=MARKDOWN, text=text),)

    return ResourceTemplate(
        uri_template=EXPRESSION_TEMPLATE, name="expression", read=read, mime_type=MARKDOWN,
        description="What an expression such as lang/python+rust names, as one text",
    )  # fmt: skip


def _reading_of(template: ResourceTemplate, project: Project, document: Document) -> Read:
    async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        known = {"project": project.name, "category": document.id.category, "name": document.id.name}
        return await template.read(uri, known, context)

    return read

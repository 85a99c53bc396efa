"""Documents as resources, categories as skills."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.json import JsonObject
from trysquare.core.resources import Read, Resource, ResourceTemplate, Skill, SkillFile
from trysquare.guide.documents import DOCUMENT_TEMPLATE, EXPRESSION_TEMPLATE, Category, Document, document_uri
from trysquare.guide.projects import Project, Projects
from trysquare.guide.retrieval import ContentPart, Request, fetch, joined, visible_pieces

MARKDOWN = "text/markdown"


def document_resources(projects: Projects, project: Project) -> list[Resource]:
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
                f"Document `{values['category']}/{values['name']}` not found, or hidden by a flag.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
            )
        return (ResourceContents(uri=uri, mime_type=MARKDOWN, text=pieces[0].text),)

    async def complete(name: str, typed: str, others: dict[str, str]) -> Sequence[str]:
        # As far as the other parts of the address are known.
        if name == "project":
            choices = list(projects.known())
        elif name == "category":
            choices = [each.name for each in projects.get(others.get("project")).categories()]
        else:
            documents = projects.get(others.get("project")).documents(others.get("category", ""))
            choices = [each.id.name for each in documents]
        return sorted(each for each in choices if each.lower().startswith(typed.lower()))[:100]

    return ResourceTemplate(
        uri_template=DOCUMENT_TEMPLATE, name="document", read=read, mime_type=MARKDOWN, complete=complete,
        description="One document of a project's content",
    )  # fmt: skip


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


MAIN = "SKILL.md"
MAX_FILES = 511
"""A host accepts 512 files of a skill; one of them is its SKILL.md."""


def skill_resources(projects: Projects, project: Project) -> list[Resource]:
    """Every file of every skill of a project, as resources. The first of each skill carries its manifest."""
    named = unique_names(category.name for category in project.categories())
    return [
        resource
        for category, name in zip(project.categories(), named, strict=True)
        for resource in _skill(projects, project, category, name)
    ]


def skill_name(text: str) -> str:
    """A name that skills may have: lower case, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "content"


def unique_names(texts: Iterable[str]) -> list[str]:
    """A skill's name for each text, in order; names that become the same get a number."""
    taken: dict[str, None] = {}
    for text in texts:
        name = base = skill_name(text)
        number = 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        taken[name] = None
    return list(taken)


def _skill(projects: Projects, project: Project, category: Category, name: str) -> list[Resource]:
    folder = f"skill://{skill_name(project.name)}/{name}"
    frontmatter, texts = _contents(project, category, name, folder)
    if not texts:
        return []
    data = {uri: text.encode("utf-8", "replace") for uri, text in texts.items()}
    files = tuple(
        SkillFile(uri=uri, digest=hashlib.sha256(each).hexdigest(), size=len(each)) for uri, each in data.items()
    )
    read = _reading(projects, project.name, category.name, name, folder)
    first, *others = files
    opening = Resource(
        uri=first.uri, name=name, read=read, description=frontmatter["description"],
        mime_type=MARKDOWN, size=first.size, skill=Skill(frontmatter=frontmatter, files=files),
    )  # fmt: skip
    rest = [
        Resource(uri=each.uri, name=each.uri.removeprefix("skill://"), read=read, mime_type=MARKDOWN, size=each.size)
        for each in others
    ]
    return [opening, *rest]


def _contents(project: Project, category: Category, name: str, folder: str) -> tuple[JsonObject, dict[str, str]]:
    """The skill's front matter and the text of each file by address; empty where nothing of it is shown."""
    pieces = visible_pieces(project, project.documents(category.name)[:MAX_FILES])
    if not pieces:
        return {}, {}
    about = (category.description or f"The {category.name} content of {project.name}").rstrip(".")
    counted = f"{len(pieces)} document{'s' if len(pieces) != 1 else ''}"
    frontmatter: JsonObject = {"name": name, "description": f"{about}. {counted}; read those that fit the task."[:1024]}
    files = dict(zip(_paths(pieces), pieces, strict=True))
    texts = {MAIN: _skill_text(frontmatter, category, files), **{path: each.text for path, each in files.items()}}
    return frontmatter, {f"{folder}/{path}": text for path, text in texts.items()}


def _paths(pieces: Sequence[ContentPart]) -> list[str]:
    """The path of each document in its skill. One that is called like the skill's own file gets another name."""
    names = {piece.document.id.name for piece in pieces}
    own = MAIN.removesuffix(".md")
    free = next(name for number in range(len(names) + 1) if (name := f"{own}_{number or ''}") not in names)
    return [f"{quote(free if name == own else name)}.md" for piece in pieces if (name := piece.document.id.name)]


def _skill_text(frontmatter: JsonObject, category: Category, files: Mapping[str, ContentPart]) -> str:
    head = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in frontmatter.items())
    lines = [
        f"- [{each.title or each.id.name}]({path})" + (f": {each.description}" if each.description else "")
        for path, piece in files.items()
        if (each := piece.document)
    ]
    return f"---\n{head}\n---\n\n# {category.name}\n\n{frontmatter['description']}\n\n" + "\n".join(lines) + "\n"


def _reading(projects: Projects, project_name: str, category_name: str, name: str, folder: str) -> Read:
    async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        project = projects.get(project_name)
        category = project.category(category_name)
        texts = _contents(project, category, name, folder)[1] if category is not None else {}
        if uri not in texts:
            raise NotFound(f"`{uri[:200]}` is no longer part of its skill.", code=ErrorCode.RESOURCE_NOT_FOUND)
        return (ResourceContents(uri=uri, mime_type=MARKDOWN, text=texts[uri]),)

    return read

"""Skills: each category as a skill whose files are its documents, with the digests of what is really read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.resource import Read, Resource
from trysquare.core.skill import Skill, SkillFile
from trysquare.core.types import JsonObject
from trysquare.guide.content import Category
from trysquare.guide.document import Document
from trysquare.guide.fetch import visible_pieces
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects

MARKDOWN = "text/markdown"
MAX_FILES = 511
"""A host accepts 512 files of a skill; one of them is its SKILL.md."""


def skill_resources(projects: Projects, project: Project) -> list[Resource]:
    """Every file of every skill of a project, as resources. The first of each skill carries its manifest."""
    return [resource for category in project.categories() for resource in _skill(projects, project, category)]


def skill_name(text: str) -> str:
    """A name that skills may have: lower case, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-") or "content"


def _skill(projects: Projects, project: Project, category: Category) -> list[Resource]:
    texts = _texts(project, category)
    if not texts:
        return []
    name = skill_name(category.name)
    folder = f"skill://{skill_name(project.name)}/{name}"
    frontmatter: JsonObject = {"name": name, "description": _description(project, category, len(texts))}
    main = _skill_text(frontmatter, category, texts)
    contents = {f"{folder}/SKILL.md": main, **{f"{folder}/{path}": text for path, (_, text) in texts.items()}}
    files = tuple(_file(uri, text) for uri, text in contents.items())
    read = _reading(projects, project.name, category.name)
    first, *others = files
    opening = Resource(
        uri=first.uri, name=f"{name}/SKILL.md", read=read, description=frontmatter["description"],
        mime_type=MARKDOWN, size=first.size, skill=Skill(frontmatter=frontmatter, files=files),
    )  # fmt: skip
    rest = [
        Resource(uri=each.uri, name=each.uri.removeprefix("skill://"), read=read, mime_type=MARKDOWN, size=each.size)
        for each in others
    ]
    return [opening, *rest]


def _texts(project: Project, category: Category) -> dict[str, tuple[Document, str]]:
    """The documents of a category as files of its skill, by path, as flags and templates make them."""
    pieces = visible_pieces(project, project.documents(category.name)[:MAX_FILES])
    return {f"{_path(piece.document)}.md": (piece.document, piece.text) for piece in pieces}


def _path(document: Document) -> str:
    return "/".join(re.sub(r"[^\w.-]", "-", part) for part in document.id.name.split("/"))


def _description(project: Project, category: Category, count: int) -> str:
    about = category.description or f"The {category.name} content of {project.name}"
    return f"{about.rstrip('.')}. {count} document{'s' if count != 1 else ''}; read those that fit the task."[:1024]


def _skill_text(frontmatter: JsonObject, category: Category, texts: dict[str, tuple[Document, str]]) -> str:
    head = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in frontmatter.items())
    lines = [
        f"- [{document.title or document.id.name}]({path}){_about(document)}" for path, (document, _) in texts.items()
    ]
    return f"---\n{head}\n---\n\n# {category.name}\n\n{frontmatter['description']}\n\n" + "\n".join(lines) + "\n"


def _about(document: Document) -> str:
    return f": {document.description}" if document.description else ""


def _file(uri: str, text: str) -> SkillFile:
    data = text.encode("utf-8", "replace")
    return SkillFile(uri=uri, digest=hashlib.sha256(data).hexdigest(), size=len(data))


def _reading(projects: Projects, project_name: str, category_name: str) -> Read:
    async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        project = projects.get(project_name)
        category = project.category(category_name)
        texts = _texts(project, category) if category is not None else {}
        _, _, path = uri.removeprefix("skill://").partition("/")
        _, _, file = path.partition("/")
        if category is not None and file == "SKILL.md":
            name = skill_name(category.name)
            frontmatter: JsonObject = {"name": name, "description": _description(project, category, len(texts))}
            text = _skill_text(frontmatter, category, texts)
        elif file in texts:
            text = texts[file][1]
        else:
            return ()
        return (ResourceContents(uri=uri, mime_type=MARKDOWN, text=text),)

    return read

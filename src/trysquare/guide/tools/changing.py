"""The tools that change content: categories, collections, presets and documents. See docs/templates/tools/README.md."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.metadata import Consent, Example
from trysquare.core.nearest import nearest
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.guide.config import NAME, CategoryEntry, CollectionEntry, GuideFile, PresetEntry
from trysquare.guide.document import DocumentId
from trysquare.guide.expression import parse_expression
from trysquare.guide.flags import checked
from trysquare.guide.guide_json import change_guide_file
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects
from trysquare.guide.reading import read_document
from trysquare.guide.tools.answers import CHANGING, ONLY_FULL, REMOVING, ProjectArguments, answer
from trysquare.store.documents import StoredDocument

Text = Annotated[str | None, Field(description="One line on what it is for")]


class SetCategory(ProjectArguments):
    """Arguments of set_category."""

    name: Annotated[str, Field(description="Such as lang")]
    folder: Annotated[str | None, Field(description="Below the content folder; by default its name")] = None
    patterns: Annotated[list[str] | None, Field(description="Which documents; by default all")] = None
    description: Text = None


class SetCollection(ProjectArguments):
    """Arguments of set_collection."""

    name: Annotated[str, Field(description="Such as backend")]
    expressions: Annotated[list[str] | None, Field(description="Replaces all that it held")] = None
    description: Text = None


class SetPreset(ProjectArguments):
    """Arguments of set_preset."""

    name: Annotated[str, Field(description="Such as strict")]
    flags: Annotated[dict[str, Any] | None, Field(description="Replaces all that it set")] = None
    expressions: Annotated[list[str] | None, Field(description="Replaces all that it held")] = None
    description: Text = None


class SetDocument(ProjectArguments):
    """Arguments of set_document."""

    id: Annotated[str, Field(description="category/name, such as lang/go")]
    text: Annotated[str | None, Field(description="The whole document as Markdown")] = None
    metadata: Annotated[dict[str, Any] | None, Field(description="Front matter: title, tags, type …")] = None
    rename: Annotated[str | None, Field(description="New category/name")] = None


class RemoveContent(ProjectArguments):
    """Arguments of remove_content."""

    kind: Annotated[
        Literal["category", "collection", "preset", "document", "project"], Field(description="What to remove")
    ]
    name: Annotated[str, Field(description="Of a document, category/name")]


def changing_tools(projects: Projects) -> list[Tool]:
    """The tools that add, change and remove content."""

    def set_category(args: SetCategory) -> Result[Any]:
        """Add a category, or change what is given of one."""
        project = projects.get(args.project)
        entry = _changed_category(project, args)
        projects.changed(project)
        return answer(project, {"category": args.name, **entry.model_dump(exclude_none=True)})

    def set_collection(args: SetCollection) -> Result[Any]:
        """Add a collection, or change what is given of one."""
        project = projects.get(args.project)
        entry = _changed_collection(project, args)
        projects.changed(project)
        return answer(project, {"collection": args.name, **entry.model_dump(exclude_none=True)})

    def set_preset(args: SetPreset) -> Result[Any]:
        """Add a preset, or change what is given of one."""
        project = projects.get(args.project)
        entry = _changed_preset(project, args)
        projects.changed(project)
        return answer(project, {"preset": args.name, **entry.model_dump(exclude_none=True)})

    def set_document(args: SetDocument, context: CallContext) -> Result[Any]:
        """Store a document, or change what is given of one."""
        project = projects.get(args.project)
        stored = _changed_document(project, args, by=context.principal.subject)
        projects.changed(project, _document_id(args.id), _document_id(args.rename or args.id))
        return answer(project, {"document": f"{stored.category}/{stored.name}", "characters": len(stored.text)})

    def remove_content(args: RemoveContent) -> Result[Any]:
        """Remove an entry, a stored document or a project."""
        project = projects.get(args.project)
        if args.kind == "project":
            projects.unregister(args.name)
        else:
            _removed(project, args)
            projects.changed(project, *([_document_id(args.name)] if args.kind == "document" else ()))
        return answer(project, {"removed": args.kind, "name": args.name})

    return [
        tool(set_category, **CHANGING, category="changes",
             consent=Consent(question="Set the category {name} of the guide, for everybody who uses it?"),
             profiles=ONLY_FULL, use_when="the person wants a folder described or narrowed",
             examples=(Example(arguments={"name": "lang", "patterns": ["go*"]}, explanation="Only Go."),)),
        tool(set_collection, **CHANGING, category="changes",
             consent=Consent(question="Set the collection {name} of the guide, for everybody who uses it?"),
             profiles=ONLY_FULL, use_when="several expressions belong under one name"),
        tool(set_preset, **CHANGING, category="changes",
             consent=Consent(question="Set the preset {name} of the guide, for everybody who uses it?"),
             profiles=ONLY_FULL, use_when="flags and content belong under one name",
             examples=(Example(arguments={"name": "strict", "flags": {"workflow": True}}, explanation="One flag."),)),
        tool(set_document, **CHANGING, category="changes",
             consent=Consent(question="Store the document {id} in the guide, in place of one of that name?"),
             profiles=ONLY_FULL, use_when="the person wants content kept that is in no file",
             avoid_when="it is a file: change the file",
             examples=(Example(arguments={"id": "lang/go", "text": "Run gofmt."}, explanation="A new one."),)),
        tool(remove_content, **REMOVING, category="changes",
             profiles=ONLY_FULL, consent=Consent(question="Remove the {kind} {name} from the guide?"),
             use_when="the person asked to have it removed", limits="Files stay"),
    ]  # fmt: skip


def _changed_category(project: Project, args: SetCategory) -> CategoryEntry:
    def change(file: GuideFile) -> GuideFile:
        known = file.categories.get(args.name, CategoryEntry())
        given = {"dir": args.folder, "patterns": args.patterns, "description": args.description}
        entry = known.model_copy(update={key: value for key, value in given.items() if value is not None})
        return file.model_copy(update={"categories": {**file.categories, args.name: entry}})

    _check_name(args.name)
    library, _ = project.guide_file()
    library.folder.folders(args.folder or args.name)
    return change_guide_file(library, change).categories[args.name]


def _changed_collection(project: Project, args: SetCollection) -> CollectionEntry:
    def change(file: GuideFile) -> GuideFile:
        known = file.collections.get(args.name, CollectionEntry(expressions=[]))
        given = {"expressions": args.expressions, "description": args.description}
        entry = known.model_copy(update={key: value for key, value in given.items() if value is not None})
        if not entry.expressions:
            raise InvalidArguments("A collection needs at least one expression, such as `lang/python`.")
        return file.model_copy(update={"collections": {**file.collections, args.name: entry}})

    _check_name(args.name)
    for expression in args.expressions or ():
        parse_expression(expression)
    return change_guide_file(project.guide_file()[0], change).collections[args.name]


def _changed_preset(project: Project, args: SetPreset) -> PresetEntry:
    def change(file: GuideFile) -> GuideFile:
        known = file.presets.get(args.name, PresetEntry())
        given = {"flags": args.flags, "expressions": args.expressions, "description": args.description}
        entry = known.model_copy(update={key: value for key, value in given.items() if value is not None})
        return file.model_copy(update={"presets": {**file.presets, args.name: entry}})

    _check_name(args.name)
    for name, value in (args.flags or {}).items():
        checked(name, value, scope="project")
    for expression in args.expressions or ():
        parse_expression(expression)
    return change_guide_file(project.guide_file()[0], change).presets[args.name]


def _changed_document(project: Project, args: SetDocument, *, by: str) -> StoredDocument:
    _document_id(args.id)
    identity = _document_id(args.rename or args.id)

    def change(before: StoredDocument | None) -> StoredDocument:
        if before is None and args.text is None:
            raise InvalidArguments(f"`{args.id}` is not stored yet, so `text` is needed.")
        document = StoredDocument(
            category=identity.category,
            name=identity.name,
            text=args.text if args.text is not None else before.text if before else "",
            metadata={**(before.metadata if before else {}), **(args.metadata or {})},
        )
        # Read it once, so that metadata which no reader could use is refused now.
        read_document(identity, document.text, source="stored", extra=document.metadata)
        return document

    known = _document_id(args.id)
    return project.stored.change(known.category, known.name, change, by=by)


def _document_id(text: str) -> DocumentId:
    # One way to write each letter: two names that look the same must be the same.
    category, _, name = unicodedata.normalize("NFC", text).partition("/")
    _check_name(category)
    if (
        not name
        or name.startswith("/")
        or name.endswith("/")
        or any(part in ("", ".", "..") for part in name.split("/"))
    ):
        raise InvalidArguments(f"`{text[:80]}` is no document: write category/name, such as lang/go.")
    return DocumentId(category=category, name=name)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidArguments(f"`{name[:80]}` is no name: up to 50 letters, digits, `-`, `_` and `.` are.")


def _removed(project: Project, args: RemoveContent) -> None:
    if args.kind == "document":
        identity = _document_id(args.name)
        project.stored.remove(identity.category, identity.name)
        return

    field = {"category": "categories", "collection": "collections", "preset": "presets"}[args.kind]

    def change(file: GuideFile) -> GuideFile:
        entries: dict[str, Any] = dict(getattr(file, field))
        if args.name not in entries:
            close = nearest(args.name, entries, count=3)
            hint = f" The nearest are {', '.join(close)}." if close else ""
            raise NotFound(
                f"guide.json has no {args.kind} `{args.name[:80]}`.{hint}", code=ErrorCode.RESOURCE_NOT_FOUND
            )
        del entries[args.name]
        return file.model_copy(update={field: entries})

    change_guide_file(project.guide_file()[0], change)

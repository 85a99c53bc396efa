"""The tools that change content, register projects and write exports."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.metadata import Consent, Example
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool, tool
from trysquare.guide import exports
from trysquare.guide.config import NAME, CategoryEntry, CollectionEntry, ExportFormat, GuideFile, Limits, PresetEntry
from trysquare.guide.documents import DocumentId, read_document
from trysquare.guide.expression import parse_expression
from trysquare.guide.flags import checked
from trysquare.guide.library import change_guide_file
from trysquare.guide.projects import Project, Projects
from trysquare.guide.tools.content import CHANGING, ONLY_FULL, READING, REMOVING, ProjectArguments, answer
from trysquare.store.content import RegisteredProject, StoredDocument

Text = Annotated[str | None, Field(description="One line on what it is for")]


class SetCategory(ProjectArguments):
    name: Annotated[str, Field(description="Such as lang")]
    folder: Annotated[str | None, Field(description="Below the content folder; by default its name")] = None
    patterns: Annotated[list[str] | None, Field(description="Which documents; by default all")] = None
    description: Text = None


class SetCollection(ProjectArguments):
    name: Annotated[str, Field(description="Such as backend")]
    expressions: Annotated[list[str] | None, Field(description="Replaces all that it held")] = None
    description: Text = None


class SetPreset(ProjectArguments):
    name: Annotated[str, Field(description="Such as strict")]
    flags: Annotated[dict[str, Any] | None, Field(description="Replaces all that it set")] = None
    expressions: Annotated[list[str] | None, Field(description="Replaces all that it held")] = None
    description: Text = None


class SetDocument(ProjectArguments):
    id: Annotated[str, Field(description="category/name, such as lang/go")]
    text: Annotated[str | None, Field(description="The whole document as Markdown")] = None
    metadata: Annotated[dict[str, Any] | None, Field(description="Front matter: title, tags, type …")] = None
    rename: Annotated[str | None, Field(description="New category/name")] = None

    @field_validator("text")
    @classmethod
    def _fits(cls, value: str | None) -> str | None:
        # As of a file. Checked with the arguments, so that nobody is asked about what cannot be stored.
        if value is not None and len(value.encode("utf-8", "replace")) > Limits().document_bytes:
            raise ValueError(f"it has more than {Limits().document_bytes:,} bytes; store it as several documents")
        return value


class RemoveContent(ProjectArguments):
    kind: Annotated[
        Literal["category", "collection", "preset", "document", "project"], Field(description="What to remove")
    ]
    name: Annotated[str, Field(description="Of a document, category/name")]


# Documented as in guide/tools/README.md.
def edit_tools(projects: Projects) -> list[Tool]:
    def save(args: SetCategory | SetCollection | SetPreset, kind: str) -> Result[Any]:
        project = projects.get(args.project)
        _check_name(args.name)
        entry = _save(project, args)
        projects.changed(project)
        return answer(project, {kind: args.name, **entry.model_dump(exclude_none=True)})

    def set_category(args: SetCategory) -> Result[Any]:
        """Add a category, or change what is given of one."""
        return save(args, "category")

    def set_collection(args: SetCollection) -> Result[Any]:
        """Add a collection, or change what is given of one."""
        return save(args, "collection")

    def set_preset(args: SetPreset) -> Result[Any]:
        """Add a preset, or change what is given of one."""
        return save(args, "preset")

    def set_document(args: SetDocument, context: CallContext) -> Result[Any]:
        """Store a document, or change what is given of one."""
        project = projects.get(args.project)
        stored = _save_document(project, args, by=context.principal.subject)
        projects.changed(project, _document_id(args.id), _document_id(args.rename or args.id))
        return answer(project, {"document": f"{stored.category}/{stored.name}", "characters": len(stored.text)})

    def remove_content(args: RemoveContent) -> Result[Any]:
        """Remove an entry, a stored document or a project."""
        project = projects.get(args.project)
        if args.kind == "project":
            projects.unregister(args.name)
        elif args.kind == "document":
            identity = _document_id(args.name)
            project.stored.remove(identity.category, identity.name)
            projects.changed(project, identity)
        else:
            _remove(project, args)
            projects.changed(project)
        return answer(project, {"removed": args.kind, "name": args.name})

    return [
        tool(set_category, **CHANGING, category="changes",
             consent=Consent(question="Set the category {name} of the guide, for everybody who uses it?"),
             profiles=ONLY_FULL, use_when="the user wants a folder described or narrowed",
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
             profiles=ONLY_FULL, use_when="the user wants content kept that is in no file",
             avoid_when="it is a file: change the file",
             examples=(Example(arguments={"id": "lang/go", "text": "Run gofmt."}, explanation="A new one."),)),
        tool(remove_content, **REMOVING, category="changes",
             profiles=ONLY_FULL, consent=Consent(question="Remove the {kind} {name} from the guide?"),
             use_when="the user asked to have it removed", limits="Files stay"),
    ]  # fmt: skip


def _save(project: Project, args: SetCategory | SetCollection | SetPreset) -> BaseModel:
    if isinstance(args, SetCategory):
        project.guide_file()[0].folder.folders(args.folder or args.name)
        given = {"dir": args.folder, "patterns": args.patterns, "description": args.description}
        return _save_entry(project, "categories", args.name, CategoryEntry(), given)
    given = {"expressions": args.expressions, "description": args.description}
    for expression in args.expressions or ():
        parse_expression(expression)
    if isinstance(args, SetPreset):
        for name, value in (args.flags or {}).items():
            checked(name, value, scope="project")
        return _save_entry(project, "presets", args.name, PresetEntry(), {**given, "flags": args.flags})
    return _save_entry(project, "collections", args.name, CollectionEntry(expressions=[]), given)


def _save_entry(project: Project, field: str, name: str, new: BaseModel, given: Mapping[str, object]) -> BaseModel:
    """Change what is given of an entry of `guide.json`, or add it."""

    def change(file: GuideFile) -> GuideFile:
        entries: dict[str, BaseModel] = getattr(file, field)
        update = {key: value for key, value in given.items() if value is not None}
        entry = entries.get(name, new).model_copy(update=update)
        if isinstance(entry, CollectionEntry) and not entry.expressions:
            raise InvalidArguments("A collection needs at least one expression, such as `lang/python`.")
        return file.model_copy(update={field: {**entries, name: entry}})

    return getattr(change_guide_file(project.guide_file()[0], change), field)[name]


def _save_document(project: Project, args: SetDocument, *, by: str) -> StoredDocument:
    known = _document_id(args.id)
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

    return project.stored.change(known.category, known.name, change, by=by)


def _document_id(text: str) -> DocumentId:
    # One way to write each letter: two names that look the same must be the same.
    category, _, name = unicodedata.normalize("NFC", text).partition("/")
    _check_name(category)
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise InvalidArguments(f"`{text[:80]}` is not a document id. Write category/name, such as lang/go.")
    return DocumentId(category=category, name=name)


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidArguments(f"`{name[:80]}` is not a valid name. Use up to 50 letters, digits, `-`, `_` and `.`.")


def _remove(project: Project, args: RemoveContent) -> None:
    field = {"category": "categories", "collection": "collections", "preset": "presets"}[args.kind]

    def change(file: GuideFile) -> GuideFile:
        entries: dict[str, Any] = dict(getattr(file, field))
        if args.name not in entries:
            close = closest_names(args.name, entries, count=3)
            hint = f" Did you mean {', '.join(close)}?" if close else ""
            raise NotFound(
                f"guide.json has no {args.kind} `{args.name[:80]}`.{hint}", code=ErrorCode.RESOURCE_NOT_FOUND
            )
        del entries[args.name]
        return file.model_copy(update={field: entries})

    change_guide_file(project.guide_file()[0], change)


class ExportContent(ProjectArguments):
    expression: Annotated[str | None, Field(description="By default all known exports again")] = None
    format: Annotated[ExportFormat, Field(description="For which program")] = "agents"
    path: Annotated[str | None, Field(description="Below the project; by default the usual place")] = None
    overwrite_edits: Annotated[bool, Field(description="Replace what was edited by hand")] = False


class AllowPath(ProjectArguments):
    path: Annotated[str, Field(description="File or folder below the project")]
    allowed: Annotated[bool, Field(description="false takes the permission back")] = True


def export_tools(projects: Projects) -> list[Tool]:
    def export_content(args: ExportContent) -> Result[Any]:
        """Write content into files for other programs."""
        project = projects.get(args.project)
        entries = exports.remembered(project)
        if args.expression is not None:
            entries = [exports.new_entry(args.expression, args.format, args.path)]
            exports.require_writable(project, entries[0].path)
        done = exports.export(project, entries, overwrite_edits=args.overwrite_edits)
        for entry in entries:
            exports.remember(project, entry)
        return answer(project, _report(done))

    def check_exports(args: ProjectArguments) -> Result[Any]:
        """List exported files that differ from the content."""
        project = projects.get(args.project)
        entries = exports.remembered(project)
        if not entries:
            raise InvalidArguments("This project has no exports yet.")
        return answer(project, _report(exports.compare(project, entries)))

    def allow_path(args: AllowPath) -> Result[Any]:
        """Permit exports to a path, or no longer."""
        project = projects.get(args.project)
        return answer(project, {"write_paths": exports.set_writable(project, args.path, allowed=args.allowed)})

    return [
        tool(export_content, **REMOVING, category="exports",
             profiles=ONLY_FULL, consent=Consent(question="Write guide content into files of the project?"),
             use_when="the user wants AGENTS.md, CLAUDE.md or Cursor rules made of it",
             examples=(Example(arguments={"expression": "rules", "format": "claude"}, explanation="CLAUDE.md."),)),
        tool(check_exports, **READING, category="exports", profiles=ONLY_FULL,
             use_when="you doubt that exported files are up to date"),
        tool(allow_path, **CHANGING, category="exports",
             profiles=ONLY_FULL, consent=Consent(question="Change whether the guide may write exports to {path}?"),
             use_when="an export goes to an unusual place"),
    ]  # fmt: skip


def _report(done: exports.Exported) -> dict[str, Any]:
    return {"files": {file.path: file.state for file in done.files}, "written": list(done.written)}


class SetProject(ToolArguments):
    name: Annotated[str, Field(description="By which calls choose it")]
    root: Annotated[str, Field(description="Absolute path of its folder")]
    content: Annotated[tuple[str, ...], Field(description="Folders of content below it")] = ("docs/guide",)


def project_tools(projects: Projects) -> list[Tool]:
    """The tool that registers projects. It needs consent: it decides what may be read."""

    def set_project(args: SetProject) -> Result[Any]:
        """Register a project, so that calls can name it."""
        opened = projects.register(_registered(args))
        return Result[Any].ok(
            {"name": opened.name, "categories": [each.name for each in opened.categories()]},
            fields={"project": opened.name},
            instruction=f"Pass project={opened.name!r} to the calls that are meant for it.",
        )

    return [
        tool(set_project, **CHANGING, category="projects",
             profiles=ONLY_FULL, consent=Consent(question="Let the guide read {content} of {root} as project {name}?"),
             use_when="the user wants another project's content too"),
    ]  # fmt: skip


def _registered(args: SetProject) -> RegisteredProject:
    root = Path(args.root)
    if not NAME.fullmatch(args.name):
        raise InvalidArguments(
            f"Invalid project name `{args.name[:80]}`. Use up to 50 letters, digits, `-`, `_` and `.`."
        )
    if not root.is_absolute() or not os.path.isdir(root):
        raise InvalidArguments(f"`{args.root[:200]}` is not the absolute path of a folder.")
    resolved = root.resolve()
    folders = tuple(_folder_inside(resolved, each) for each in args.content)
    return RegisteredProject(name=args.name, root=resolved, folders=folders)


def _folder_inside(root: Path, given: str) -> Path:
    try:
        folder = (root / given).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        # A link that leads to itself, a name that is too long, or a letter that no name can hold.
        raise InvalidArguments(f"`{given[:80]!r}` is not a folder inside {root}: {error}.") from None
    if not folder.is_relative_to(root) or not os.path.isdir(folder):
        raise InvalidArguments(f"`{given[:200]}` is not a folder inside {root}.")
    return folder

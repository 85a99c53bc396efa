"""The tools get_content, search_content and list_content, and what the tools of the guide share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field, field_validator

from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import NotFound
from trysquare.core.host_paths import value_without_host_paths
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.guide import retrieval
from trysquare.guide.documents import Document, expression_for
from trysquare.guide.projects import Project, Projects
from trysquare.guide.prompts.prompt import commands


class Shared(TypedDict):
    toolset: str
    read_only: bool
    destructive: bool
    idempotent: bool
    result_limit: None


READING = Shared(toolset="guide", read_only=True, destructive=False, idempotent=True, result_limit=None)
"""A read-only tool with a short answer."""
CHANGING: Shared = {**READING, "read_only": False}
"""A tool that sets something; what was there before can be set again."""
REMOVING: Shared = {**CHANGING, "destructive": True}
ONLY_FULL = frozenset({"full"})
LEVELS = frozenset({"full", "levels"})


class ProjectArguments(ToolArguments):
    """Arguments of a tool that works on one project."""

    project: Annotated[str | None, Field(description="By default the server's own")] = None

    @field_validator("*")
    @classmethod
    def _is_text(cls, value: Any) -> Any:
        # Half a character, which JSON can name, can be stored in no file and no table.
        written = json.dumps(value, ensure_ascii=False, default=str)
        if not written.isascii() and any("\ud800" <= letter <= "\udfff" for letter in written):
            raise ValueError("it contains an unpaired surrogate")
        return value


def answer(
    project: Project,
    value: Any = None,
    *,
    message: str | None = None,
    instruction: str | None = None,
    warnings: tuple[str, ...] = (),
    next: JsonObject | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Result[Any]:
    """A result that names the project that it is of."""
    named = {"project": project.name, **(fields or {})}
    return Result[Any].ok(value, message=message, instruction=instruction, warnings=warnings, next=next, fields=named)


_ALL_UNSURE = "No document is a likely fit; these are only the nearest."
_ASK_AGAIN = "If none fits, name the subject in a few words that the document would use, or call list_content."
HOLDING_SECONDS = 24 * 3600.0
MOST_LISTED = 50
"""Documents that are listed without being sent; keeps the list itself bounded."""
MOST_HELD = 5_000
"""Digests that one handle remembers; what is beyond it would be sent again."""


class GetContent(ProjectArguments):
    expression: Annotated[
        str, Field(description="category/pattern; + more patterns, comma more parts, - without, & both, #tag")
    ]
    pattern: Annotated[str | None, Field(description="For each part that has none")] = None
    budget: Annotated[int | None, Field(description="Most tokens; the rest is listed", ge=0)] = None
    holding: Annotated[str | None, Field(description="Of an earlier answer: only what is new is sent")] = None
    held: Annotated[list[str] | None, Field(description="`instruction_id`s that you hold")] = None
    explain: Annotated[bool, Field(description="Which, why and how many tokens; no text")] = False


def _held(args: GetContent, context: CallContext) -> tuple[frozenset[str], tuple[str, ...]]:
    """The digests that the caller has, and a warning if they are no longer known."""
    named = frozenset(retrieval.held_digest(each) for each in args.held or ())
    if args.holding is None:
        return named, ()
    try:
        return named | frozenset(context.handles.get(args.holding, principal=context.principal.subject)), ()
    except NotFound:
        return named, ("`holding` has expired or was never yours, so it was not counted.",)


def _delivered(
    project: Project,
    fetched: retrieval.RetrievedContent,
    held: frozenset[str],
    warnings: tuple[str, ...],
    context: CallContext,
) -> Result[Any]:
    delivery = fetched.delivery
    digests = dict.fromkeys((*delivery.held(), *sorted(held)))
    holding = context.handles.put(list(digests)[:MOST_HELD], principal=context.principal.subject, ttl=HOLDING_SECONDS)
    message = None
    if not delivery.sent:
        held_all = "You have all of it already; nothing has changed."
        message = "No document fits the budget." if delivery.left_out else held_all
    fields: dict[str, Any] = {
        "documents": _documents(project, delivery.sent),
        "unchanged": [str(piece.document.id) for piece in delivery.unchanged],
        "left_out": [_left_out(piece) for piece in delivery.left_out[:MOST_LISTED]],
        "left_out_more": max(0, len(delivery.left_out) - MOST_LISTED),
        **_noticed(fetched),
        "holding": holding,
    }
    return answer(
        project,
        retrieval.joined(delivery.sent, style=str(project.flag("content-style").value)),
        message=message,
        instruction=_instruction(fetched),
        warnings=warnings,
        next=_rest(project, delivery, holding),
        fields={name: value for name, value in fields.items() if value},
    )


def _noticed(fetched: retrieval.RetrievedContent) -> JsonObject:
    """What is not shown because of flags, and what contradicts itself: as much of it as anybody reads."""
    return {
        "hidden": [asdict(each) for each in fetched.hidden[:MOST_LISTED]],
        "conflicts": [asdict(each) for each in fetched.conflicts[:MOST_LISTED]],
    }


def _instruction(fetched: retrieval.RetrievedContent) -> str | None:
    sent = fetched.delivery.sent
    parts: list[str] = []
    if sent:
        parts.append(retrieval.shared_instruction(sent) or "Do with each document what its `instruction` says.")
    if fetched.conflicts:
        parts.append("Some of these contradict one another (see `conflicts`): ask the user which holds.")
    if fetched.delivery.left_out:
        parts.append("What did not fit the budget is in `left_out`: fetch what you need of it.")
    return " ".join(parts) or None


def _documents(project: Project, pieces: Sequence[retrieval.ContentPart]) -> list[JsonObject]:
    """What was sent, with what to do with each; a shared instruction is given once."""
    shared = retrieval.shared_instruction(pieces)
    return [
        {**_about(piece), "instruction_id": retrieval.instruction_id(project.name, piece)}
        | ({"instruction": retrieval.instruction_for(piece)} if shared is None else {})
        for piece in pieces
    ]


def _about(piece: retrieval.ContentPart) -> JsonObject:
    about: JsonObject = {"id": str(piece.document.id), "type": piece.document.type, "tokens": piece.tokens}
    if piece.document.written_by_agent:
        about["written_by_agent"] = piece.document.written_by_agent
    return {**about, "title": piece.document.title} if piece.document.title else about


def _left_out(piece: retrieval.ContentPart) -> JsonObject:
    about: JsonObject = {"id": str(piece.document.id), "tokens": piece.tokens}
    expression = expression_for(piece.document.id)
    return about if expression == about["id"] else {**about, "expression": expression}


def _rest(project: Project, delivery: retrieval.Delivery, holding: str) -> JsonObject | None:
    """The call for the first document that did not fit. It has no budget, since none was large enough for it."""
    if not delivery.left_out:
        return None
    first = expression_for(delivery.left_out[0].document.id)
    return {"tool": "get_content", "arguments": {"expression": first, "project": project.name, "holding": holding}}


def _explained(fetched: retrieval.RetrievedContent) -> JsonObject:
    delivery = fetched.delivery
    fates = {"sent": delivery.sent, "unchanged": delivery.unchanged, "left out: over the budget": delivery.left_out}
    pieces = [(piece, fate) for fate, found in fates.items() for piece in found]
    order = {chosen.document.id: number for number, chosen in enumerate(fetched.selection.chosen)}
    described: JsonObject = {
        "documents": [
            {
                **_about(piece),
                "because": piece.chosen.because,
                "source": piece.document.path or piece.document.source,
                "would_be": fate,
            }
            for piece, fate in sorted(pieces, key=lambda each: order[each[0].document.id])
        ],
        "tokens": delivery.tokens,
        "excluded": [{"id": str(each.document.id), "because": each.because} for each in fetched.selection.excluded],
        **_noticed(fetched),
    }
    return {name: value for name, value in described.items() if value or name == "tokens"}


Kind = Literal["categories", "collections", "documents", "presets", "commands", "projects", "problems"]


class SearchContent(ProjectArguments):
    query: Annotated[str, Field(description="Such as: error handling")]
    limit: Annotated[int, Field(description="Most documents to name", ge=1, le=50)] = 10


class ListContent(ProjectArguments):
    kind: Annotated[Kind, Field(description="What to list")] = "categories"
    category: Annotated[str | None, Field(description="Only its documents")] = None


# Documented as in guide/tools/README.md.
def content_tools(projects: Projects) -> list[Tool]:
    def get_content(args: GetContent, context: CallContext) -> Result[Any]:
        """Fetch the team's guidelines by expression."""
        project = projects.get(args.project)
        held, expired = _held(args, context)
        budget = args.budget
        if budget is None and isinstance(by_flag := project.flag("content-budget").value, int):
            budget = by_flag
        request = retrieval.Request(expression=args.expression, pattern=args.pattern, budget=budget, held=held)
        fetched = retrieval.fetch(project, request)
        warnings = (*fetched.warnings, *expired)
        if args.explain:
            return answer(project, _explained(fetched), warnings=warnings)
        return _delivered(project, fetched, held, warnings, context)

    def search_content(args: SearchContent) -> Result[Any]:
        """Find documents by what they are about."""
        project = projects.get(args.project)
        hits = project.search.find(args.query, limit=args.limit)
        if not hits:
            return answer(project, [], message="There are no documents in this project.")
        found = [
            {**_list_entry(hit.document), "fit": "likely" if hit.likely else "unsure", "excerpt": hit.excerpt}
            for hit in hits
        ]
        likely = [hit for hit in hits if hit.likely]
        first = ",".join(expression_for(hit.document.id) for hit in likely[:3] or hits[:1])
        return answer(
            project, found, message=None if likely else _ALL_UNSURE, instruction=None if likely else _ASK_AGAIN,
            next={"tool": "get_content", "arguments": {"expression": first, "project": project.name}},
        )  # fmt: skip

    def list_content(args: ListContent, context: CallContext) -> Result[Any]:
        """List the content of a project."""
        project = projects.get(args.project)
        found = _listed(projects, project, args)
        return answer(project, value_without_host_paths(found) if context.is_remote else found)

    return [
        tool(get_content, toolset="guide", category="content", requirement="required", read_only=True, idempotent=True,
             use_when="you need the team's rules, checklists or notes on a subject",
             avoid_when="you look for a word inside the content: search_content finds it", result_limit=None,
             examples=(Example(arguments={"expression": "lang/python+rust,docs/api,guidelines"},
                               explanation="Two guides, the API notes and all guidelines."),
                       Example(arguments={"expression": "guidelines,-#draft", "budget": 2000},
                               explanation="The guidelines without drafts, at most 2,000 tokens of them."))),
        tool(search_content, toolset="guide", result_limit=None, category="content", read_only=True, idempotent=True,
             use_when="you know a subject and not which document treats it",
             avoid_when="you know the category: get_content fetches it directly",
             examples=(Example(arguments={"query": "retry policy"}, explanation="The best first."),)),
        tool(list_content, toolset="guide", category="content", read_only=True, idempotent=True,
             use_when="you need the names that get_content takes",
             examples=(Example(arguments={"kind": "documents", "category": "lang"}, explanation="All of lang."),)),
    ]  # fmt: skip


def _listed(projects: Projects, project: Project, args: ListContent) -> Any:
    match args.kind:
        case "categories":
            return [
                {"name": each.name, "documents": len(project.documents(each.name))}
                | ({"description": each.description} if each.description else {})
                for each in project.categories()
            ]
        case "collections":
            return [{"name": each.name, "expressions": each.expressions, "description": each.description}
                    for each in project.collections()]  # fmt: skip
        case "documents":
            wanted = [each.name for each in project.categories() if args.category in (None, each.name)]
            return [_list_entry(document) for name in wanted for document in project.documents(name)]
        case "presets":
            return {name: preset.model_dump(exclude_defaults=True) for name, preset in project.presets().items()}
        case "commands":
            return {f":{name}": document.description or "" for name, document in commands(project).items()}
        case "projects":
            return [{"name": each.name, "root": str(each.root)} for each in projects.known().values()]
        case "problems":
            return [{"path": each.path, "reason": each.reason} for each in project.problems()]


def _list_entry(document: Document) -> JsonObject:
    about = {
        "id": str(document.id), "title": document.title, "description": document.description,
        "tags": sorted(document.tags), "written_by_agent": document.written_by_agent,
    }  # fmt: skip
    return {key: value for key, value in about.items() if value}

"""get_content: content by expression. See docs/templates/tools/README.md for how tools are described."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.context import CallContext
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.guide.delivery import SHORT_DIGEST, Piece, held_after
from trysquare.guide.fetch import Fetched, Request, fetch
from trysquare.guide.instructions import instruction_list, summary_instruction
from trysquare.guide.joining import joined
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects
from trysquare.guide.tools.answers import ProjectArguments, answer

HOLDING_SECONDS = 24 * 3600.0


class GetContent(ProjectArguments):
    """Arguments of get_content."""

    expression: Annotated[
        str,
        Field(description="What to fetch: category/pattern, + for more patterns, comma for more, -exclude, &, #tag"),
    ]
    pattern: Annotated[str | None, Field(description="Pattern for each part that has none of its own")] = None
    budget: Annotated[int | None, Field(description="Most tokens to send; the rest is listed", ge=0)] = None
    holding: Annotated[str | None, Field(description="`holding` of an earlier answer: sends only what is new")] = None
    held: Annotated[list[str] | None, Field(description="Digests that you hold already")] = None
    explain: Annotated[bool, Field(description="Tell which documents, why and how many tokens, without their text")] = (
        False
    )


def content_tool(projects: Projects) -> Tool:
    """The tool that fetches content."""

    def get_content(args: GetContent, context: CallContext) -> Result[Any]:
        """Fetch the team's guidelines, notes and policies by expression."""
        project = projects.get(args.project)
        held = _held(args, context)
        fetched = fetch(
            project, Request(expression=args.expression, pattern=args.pattern, budget=args.budget, held=held)
        )
        if args.explain:
            return answer(project, _explained(fetched), warnings=fetched.warnings)
        return _delivered(project, fetched, args, context)

    return tool(
        get_content,
        room="guide",
        category="content",
        requirement="required",
        use_when="you need the team's rules, checklists or notes on a subject before or while working on it",
        avoid_when="you look for a word inside the content: search_content finds it",
        read_only=True,
        idempotent=True,
        result_limit=None,
        examples=(
            Example(
                arguments={"expression": "lang/python+rust,docs/api,guidelines"},
                explanation="Two language guides, the API notes and all guidelines, in this order.",
            ),
            Example(
                arguments={"expression": "guidelines,-#draft", "budget": 2000},
                explanation="The guidelines without drafts, at most 2,000 tokens of them.",
            ),
        ),
    )


def _held(args: GetContent, context: CallContext) -> frozenset[str]:
    named = frozenset(args.held or ())
    if args.holding is None:
        return named
    return named | frozenset(context.handles.get(args.holding, principal=context.principal.subject))


def _delivered(project: Project, fetched: Fetched, args: GetContent, context: CallContext) -> Result[Any]:
    delivery = fetched.delivery
    holding = context.handles.put(
        list(held_after(delivery) + tuple(sorted(_held(args, context)))),
        principal=context.principal.subject,
        ttl=HOLDING_SECONDS,
    )
    fields: dict[str, Any] = {
        "documents": [_about(piece) for piece in delivery.sent],
        "instructions": instruction_list(project.name, delivery.sent),
        "holding": holding,
    }
    if delivery.unchanged:
        fields["unchanged"] = [str(piece.document.id) for piece in delivery.unchanged]
    if delivery.left_out:
        fields["left_out"] = [_to_fetch(project, piece) for piece in delivery.left_out]
    if fetched.hidden:
        fields["hidden"] = [asdict(each) for each in fetched.hidden]
    if fetched.conflicts:
        fields["conflicts"] = [asdict(each) for each in fetched.conflicts]
    return answer(
        project,
        joined(delivery.sent, style=str(project.flag("content-style").value)),
        message=None if delivery.sent else "You hold all of it already; nothing has changed.",
        instruction=_instruction(fetched),
        warnings=fetched.warnings,
        fields=fields,
    )


def _instruction(fetched: Fetched) -> str | None:
    parts: list[str] = []
    if fetched.delivery.sent:
        parts.append(summary_instruction(fetched.delivery.sent))
    if fetched.conflicts:
        parts.append("Some of these contradict one another (see `conflicts`): ask the person which holds.")
    if fetched.delivery.left_out:
        parts.append("Some did not fit the budget (see `left_out`): fetch what you need of it.")
    return " ".join(parts) or None


def _about(piece: Piece) -> JsonObject:
    about: JsonObject = {"id": str(piece.document.id), "type": piece.document.type, "tokens": piece.tokens}
    about["digest"] = piece.digest[:SHORT_DIGEST]
    if piece.document.title:
        about["title"] = piece.document.title
    return about


def _to_fetch(project: Project, piece: Piece) -> JsonObject:
    return {
        "id": str(piece.document.id),
        "tokens": piece.tokens,
        "fetch": {"tool": "get_content", "arguments": {"expression": str(piece.document.id), "project": project.name}},
    }


def _explained(fetched: Fetched) -> JsonObject:
    delivery = fetched.delivery
    fate = {
        **{piece.document.id: "sent" for piece in delivery.sent},
        **{piece.document.id: "unchanged" for piece in delivery.unchanged},
        **{piece.document.id: "left out: over the budget" for piece in delivery.left_out},
    }
    pieces = (*delivery.sent, *delivery.unchanged, *delivery.left_out)
    order = {chosen.document.id: number for number, chosen in enumerate(fetched.selection.chosen)}
    return {
        "documents": [
            {
                **_about(piece),
                "because": piece.chosen.because,
                "source": piece.document.path or piece.document.source,
                "would_be": fate[piece.document.id],
            }
            for piece in sorted(pieces, key=lambda each: order[each.document.id])
        ],
        "excluded": [{"id": str(each.document.id), "because": each.because} for each in fetched.selection.excluded],
        "hidden": [asdict(each) for each in fetched.hidden],
        "conflicts": [asdict(each) for each in fetched.conflicts],
        "tokens": delivery.tokens,
    }

"""get_content: content by expression. See docs/templates/tools/README.md for how tools are described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from trysquare.core.context import CallContext
from trysquare.core.errors import NotFound
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.guide.addresses import expression_for
from trysquare.guide.delivery import Delivery, Piece, held_after
from trysquare.guide.fetch import Fetched, Request, fetch
from trysquare.guide.instructions import held_digest, instruction_for, instruction_id, shared_instruction
from trysquare.guide.joining import joined
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects
from trysquare.guide.tools.answers import ProjectArguments, answer

HOLDING_SECONDS = 24 * 3600.0
MOST_LISTED = 50
"""Documents that are named without being sent; a budget would be worth little if the list beside it had no end."""
MOST_HELD = 5_000
"""Digests that one handle remembers; what is beyond it would be sent again."""


class GetContent(ProjectArguments):
    """Arguments of get_content."""

    expression: Annotated[
        str,
        Field(description="category/pattern; + more patterns, comma more parts, - without, & both, #tag"),
    ]
    pattern: Annotated[str | None, Field(description="For each part that has none")] = None
    budget: Annotated[int | None, Field(description="Most tokens; the rest is listed", ge=0)] = None
    holding: Annotated[str | None, Field(description="Of an earlier answer: only what is new is sent")] = None
    held: Annotated[list[str] | None, Field(description="`instruction_id`s that you hold")] = None
    explain: Annotated[bool, Field(description="Tell which, why and how many tokens; no text")] = False


def content_tool(projects: Projects) -> Tool:
    """The tool that fetches content."""

    def get_content(args: GetContent, context: CallContext) -> Result[Any]:
        """Fetch the team's guidelines by expression."""
        project = projects.get(args.project)
        held, expired = _held(args, context)
        fetched = fetch(project, _request(project, args, held))
        warnings = (*fetched.warnings, *expired)
        if args.explain:
            return answer(project, _explained(fetched), warnings=warnings)
        return _delivered(project, fetched, held, warnings, context)

    return tool(
        get_content,
        room="guide",
        category="content",
        requirement="required",
        use_when="you need the team's rules, checklists or notes on a subject",
        avoid_when="you look for a word inside the content: search_content finds it",
        read_only=True,
        idempotent=True,
        result_limit=None,
        examples=(
            Example(
                arguments={"expression": "lang/python+rust,docs/api,guidelines"},
                explanation="Two guides, the API notes and all guidelines.",
            ),
            Example(
                arguments={"expression": "guidelines,-#draft", "budget": 2000},
                explanation="The guidelines without drafts, at most 2,000 tokens of them.",
            ),
        ),
    )


def _request(project: Project, args: GetContent, held: frozenset[str]) -> Request:
    budget = args.budget
    if budget is None and isinstance(by_flag := project.flag("content-budget").value, int):
        budget = by_flag
    return Request(expression=args.expression, pattern=args.pattern, budget=budget, held=held)


def _held(args: GetContent, context: CallContext) -> tuple[frozenset[str], tuple[str, ...]]:
    """What the caller holds, and a warning where that cannot be known any more: then all of it is sent again."""
    named = frozenset(held_digest(each) for each in args.held or ())
    if args.holding is None:
        return named, ()
    try:
        return named | frozenset(context.handles.get(args.holding, principal=context.principal.subject)), ()
    except NotFound:
        return named, ("`holding` has expired or was never yours, so it was not counted.",)


def _delivered(
    project: Project, fetched: Fetched, held: frozenset[str], warnings: tuple[str, ...], context: CallContext
) -> Result[Any]:
    delivery = fetched.delivery
    digests = dict.fromkeys((*held_after(delivery), *sorted(held)))
    holding = context.handles.put(list(digests)[:MOST_HELD], principal=context.principal.subject, ttl=HOLDING_SECONDS)
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
        joined(delivery.sent, style=str(project.flag("content-style").value)),
        message=_message(delivery),
        instruction=_instruction(fetched),
        warnings=warnings,
        next=_rest(project, delivery, holding),
        fields={name: value for name, value in fields.items() if value},
    )


def _noticed(fetched: Fetched) -> JsonObject:
    """What is not shown because of flags, and what contradicts itself: as much of it as anybody reads."""
    return {
        "hidden": [asdict(each) for each in fetched.hidden[:MOST_LISTED]],
        "conflicts": [asdict(each) for each in fetched.conflicts[:MOST_LISTED]],
    }


def _message(delivery: Delivery) -> str | None:
    if delivery.sent:
        return None
    if delivery.left_out:
        return "No document fits the budget."
    return "You hold all of it already; nothing has changed."


def _instruction(fetched: Fetched) -> str | None:
    sent = fetched.delivery.sent
    parts: list[str] = []
    if sent:
        parts.append(shared_instruction(sent) or "Do with each document what its `instruction` says.")
    if fetched.conflicts:
        parts.append("Some of these contradict one another (see `conflicts`): ask the person which holds.")
    if fetched.delivery.left_out:
        parts.append("What did not fit the budget is in `left_out`: fetch what you need of it.")
    return " ".join(parts) or None


def _documents(project: Project, pieces: Sequence[Piece]) -> list[JsonObject]:
    """What was sent, with what to do with each; an instruction that all share is told once, beside them."""
    shared = shared_instruction(pieces)
    told = [{**_about(piece), "instruction_id": instruction_id(project.name, piece)} for piece in pieces]
    if shared is not None:
        return told
    return [{**about, "instruction": instruction_for(piece)} for about, piece in zip(told, pieces, strict=True)]


def _about(piece: Piece) -> JsonObject:
    about: JsonObject = {"id": str(piece.document.id), "type": piece.document.type, "tokens": piece.tokens}
    if piece.document.written_by_agent:
        about["written_by_agent"] = piece.document.written_by_agent
    return {**about, "title": piece.document.title} if piece.document.title else about


def _left_out(piece: Piece) -> JsonObject:
    about: JsonObject = {"id": str(piece.document.id), "tokens": piece.tokens}
    expression = expression_for(piece.document.id)
    return about if expression == about["id"] else {**about, "expression": expression}


def _rest(project: Project, delivery: Delivery, holding: str) -> JsonObject | None:
    """The call for the first document that did not fit. It has no budget, since none was large enough for it."""
    if not delivery.left_out:
        return None
    first = expression_for(delivery.left_out[0].document.id)
    return {
        "tool": "get_content",
        "arguments": {"expression": first, "project": project.name, "holding": holding},
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
    told: JsonObject = {
        "documents": [
            {
                **_about(piece),
                "because": piece.chosen.because,
                "source": piece.document.path or piece.document.source,
                "would_be": fate[piece.document.id],
            }
            for piece in sorted(pieces, key=lambda each: order[each.document.id])
        ],
        "tokens": delivery.tokens,
        "excluded": [{"id": str(each.document.id), "because": each.because} for each in fetched.selection.excluded],
        **_noticed(fetched),
    }
    return {name: value for name, value in told.items() if value or name == "tokens"}

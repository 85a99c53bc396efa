"""Retrieve content: select, filter by flags, render, fit the budget."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.tokens import SHORT_DIGEST, BudgetSelection, count_tokens, fit_budget
from trysquare.guide.contradictions import Contradiction, contradictions
from trysquare.guide.documents import Document, DocumentType
from trysquare.guide.expression import Named, parse_expression, with_pattern
from trysquare.guide.flags import FlagValue, holds
from trysquare.guide.projects import Project
from trysquare.guide.selection import Chosen, Selection, select
from trysquare.guide.templates import render


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentPart:
    """A document ready to send: rendered, counted, with the digest of exactly this text."""

    chosen: Chosen
    text: str
    digest: str
    tokens: int

    @property
    def document(self) -> Document:
        return self.chosen.document

    @property
    def priority(self) -> int:
        return self.document.priority


Delivery: TypeAlias = BudgetSelection[ContentPart]
"""What is sent, what the caller already has, and what did not fit."""


MAX_CHECKED = 200
"""Documents of one answer that are compared with the disk; beyond that only the watcher is trusted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    expression: str
    pattern: str | None = None
    budget: int | None = None
    held: AbstractSet[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Hidden:
    """A document that was chosen and is not shown, because of a flag."""

    document: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievedContent:
    delivery: Delivery
    selection: Selection
    hidden: tuple[Hidden, ...]
    conflicts: tuple[Contradiction, ...]
    warnings: tuple[str, ...]


def fetch(project: Project, request: Request) -> RetrievedContent:
    """Answer a request from a project's content."""
    expression = parse_expression(request.expression)
    if request.pattern:
        expression = with_pattern(expression, request.pattern)
    try:
        selection = select(expression, project)
    except NotFound as error:
        raise _with_problems(error, project) from None
    if not project.is_current([chosen.document for chosen in selection.chosen[:MAX_CHECKED]]):
        selection = select(expression, project)
    flags = project.flag_values()
    shown, hidden = _apply_flags(selection.chosen, flags)
    if not shown:
        named = "; ".join(f"`{each.document}` ({each.reason})" for each in hidden[:5])
        raise NotFound(
            f"What the expression names is hidden by flags: {named}.",
            code=ErrorCode.RESOURCE_NOT_FOUND,
            instruction="Ask the user whether to set the flag for this project.",
        )
    pieces, failed = _pieces(project, shown, flags)
    if not pieces:
        raise ToolError(failed[0], code=ErrorCode.CONFIG_INVALID)
    delivery = fit_budget(pieces, budget=request.budget, held=request.held)
    wants_conflicts = project.flag("report-conflicts").value
    conflicts = tuple(contradictions([piece.document for piece in pieces])) if wants_conflicts else ()
    warnings = (*selection.warnings, *failed)
    return RetrievedContent(
        delivery=delivery, selection=selection, hidden=hidden, conflicts=conflicts, warnings=warnings
    )


def _with_problems(error: NotFound, project: Project) -> NotFound:
    """The same error, which names files that could not be read: what is missing may be one of them."""
    if problems := project.problems():
        named = "; ".join(f"{each.path}: {each.reason}" for each in problems[:3])
        error.message += f" Some content could not be read ({named})."
        error.instruction = "Tell the user about these files; `list_content` with kind=problems lists all of them."
    return error


def visible_pieces(project: Project, documents: Sequence[Document]) -> list[ContentPart]:
    """Documents as they are delivered in this project: without those that flags hide, templates rendered."""
    flags = project.flag_values()
    shown, _ = _apply_flags([Chosen(document=each, because=str(each.id)) for each in documents], flags)
    pieces, _ = _pieces(project, shown, flags)
    return pieces


def _apply_flags(chosen: Sequence[Chosen], flags: dict[str, FlagValue]) -> tuple[list[Chosen], tuple[Hidden, ...]]:
    shown: list[Chosen] = []
    hidden: list[Hidden] = []
    for each in chosen:
        unmet = [name for name, wanted in each.document.requires.items() if not holds(wanted, flags.get(name))]
        if unmet:
            reason = ", ".join(f"requires-{name}: {json.dumps(each.document.requires[name])}" for name in unmet)
            hidden.append(Hidden(document=str(each.document.id), reason=reason))
        else:
            shown.append(each)
    return shown, tuple(hidden)


def _pieces(
    project: Project, chosen: Sequence[Chosen], flags: dict[str, FlagValue]
) -> tuple[list[ContentPart], list[str]]:
    pieces: list[ContentPart] = []
    failed: list[str] = []
    for each in chosen:
        try:
            text = render(each.document, flags=flags, include=lambda name: included_text(project, name))
        except ToolError as error:
            failed.append(error.message)
            continue
        digest, tokens = _measured(project.name, str(each.document.id), each.document.type,
                                   each.document.instruction, text)  # fmt: skip
        pieces.append(ContentPart(chosen=each, text=text, digest=digest, tokens=tokens))
    return pieces, failed


@lru_cache(maxsize=20_000)
def _measured(project: str, id: str, kind: str, instruction: str | None, text: str) -> tuple[str, int]:
    """The digest and the tokens of what is delivered.

    The digest stands for the text together with what is to be done with it, in one project: answers of two
    projects are never confused.
    """
    whole = json.dumps([project, id, kind, instruction, text])
    return hashlib.sha256(whole.encode()).hexdigest(), count_tokens(text)


def included_text(project: Project, name: str) -> str | None:
    """The text of a document that a template includes by its id."""
    try:
        operand = parse_expression(name).parts[0].operands[0]
    except ToolError:
        return None
    if not isinstance(operand, Named) or len(operand.patterns) != 1:
        return None
    found = [each for each in project.documents(operand.name) if each.id.name == operand.patterns[0]]
    if not found:
        return None
    # What a flag hides is hidden wherever it is asked for.
    shown, _ = _apply_flags([Chosen(document=found[0], because=name)], project.flag_values())
    return found[0].text if shown else ""


BY_TYPE: dict[DocumentType, str] = {
    "user/information": "Show this to the user as it is.",
    "agent/information": "Use this as background; there is no need to show it.",
    "agent/instruction": "Follow this in the work at hand.",
    "agent/requirements": "Check the work against this: it is done only when all of it is met.",
}


def instruction_for(piece: ContentPart) -> str:
    """What to do with one document: its own word, or what its type means."""
    return piece.document.instruction or BY_TYPE[piece.document.type]


def instruction_id(project: str, piece: ContentPart) -> str:
    """Which instruction it is: of which project, which document and which version, so that none is taken for another.

    Naming it in `held` means having that version of the document.
    """
    return f"{project}:{piece.document.id}@{piece.digest[:SHORT_DIGEST]}"


def held_digest(text: str) -> str:
    """The digest in an instruction's id; a digest by itself stays as it is."""
    return text.rpartition("@")[2]


def shared_instruction(pieces: Sequence[ContentPart]) -> str | None:
    """The instruction that holds for all of these documents; None where they differ."""
    found = {instruction_for(piece) for piece in pieces}
    return found.pop() if len(found) == 1 else None


def joined(pieces: Sequence[ContentPart], *, style: str = "headings") -> str | None:
    """The documents in order as one text; None where there are none."""
    if not pieces:
        return None
    if style == "plain" or (style == "headings" and len(pieces) == 1):
        return "\n\n".join(piece.text.strip() for piece in pieces)
    return "\n\n".join(f"{_heading(piece, full=style == 'full')}\n\n{piece.text.strip()}" for piece in pieces)


def _heading(piece: ContentPart, *, full: bool) -> str:
    # A line that no Markdown heading of the document itself can be taken for.
    text = str(piece.document.id)
    if full:
        tags = f", tags: {', '.join(sorted(piece.document.tags))}" if piece.document.tags else ""
        text += f" ({piece.document.type}, {piece.tokens} tokens, {piece.digest[:SHORT_DIGEST]}{tags})"
    # Names and tags are a file's own: none may end the comment, or begin a line of its own.
    return f"<!-- {' '.join(text.replace('--', '- -').split())} -->"

"""Fetch: from a request to an answer. Selects, checks flags, renders, bounds, and tells what it did."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from trysquare.catalog.tokens import count_tokens
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.guide.contradictions import Contradiction, contradictions
from trysquare.guide.delivery import Delivery, Piece, deliver
from trysquare.guide.document import Document
from trysquare.guide.expression import Expression, Named, parse_expression, with_pattern
from trysquare.guide.flags import FlagValue, holds
from trysquare.guide.project import Project
from trysquare.guide.render import render
from trysquare.guide.selection import Chosen, Selection, select

MAX_CHECKED = 200
"""Documents of one answer that are compared with the disk; for larger answers the watcher alone vouches."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked for."""

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
class Fetched:
    """What was found for a request, ready to be told."""

    delivery: Delivery
    selection: Selection
    hidden: tuple[Hidden, ...]
    conflicts: tuple[Contradiction, ...]
    warnings: tuple[str, ...]


def fetch(project: Project, request: Request) -> Fetched:
    """Answer a request from a project's content."""
    expression = parse_expression(request.expression)
    if request.pattern:
        expression = with_pattern(expression, request.pattern)
    selection = _current_selection(expression, project)
    flags = project.flag_values()
    shown, hidden = _by_flags(selection.chosen, flags)
    if not shown:
        raise _all_hidden(hidden)
    pieces, failed = _pieces(project, shown, flags)
    if not pieces:
        raise ToolError(failed[0], code=ErrorCode.CONFIG_INVALID)
    delivery = deliver(pieces, budget=request.budget, held=request.held)
    wants_conflicts = project.flag("report-conflicts").value
    found = contradictions([piece.document for piece in pieces]) if wants_conflicts else []
    return Fetched(
        delivery=delivery,
        selection=selection,
        hidden=hidden,
        conflicts=tuple(found),
        warnings=(*selection.warnings, *failed),
    )


def visible_pieces(project: Project, documents: Sequence[Document]) -> list[Piece]:
    """Documents as they are delivered in this project: without those that flags hide, templates rendered."""
    flags = project.flag_values()
    shown, _ = _by_flags([Chosen(document=each, because=str(each.id)) for each in documents], flags)
    pieces, _ = _pieces(project, shown, flags)
    return pieces


def _current_selection(expression: Expression, project: Project) -> Selection:
    selection = select(expression, project)
    looked_at = [chosen.document for chosen in selection.chosen[:MAX_CHECKED]]
    return selection if project.is_current(looked_at) else select(expression, project)


def _by_flags(chosen: Sequence[Chosen], flags: dict[str, FlagValue]) -> tuple[list[Chosen], tuple[Hidden, ...]]:
    shown: list[Chosen] = []
    hidden: list[Hidden] = []
    for each in chosen:
        unmet = [name for name, wanted in each.document.requires.items() if not holds(wanted, flags.get(name))]
        if unmet:
            reason = ", ".join(f"requires-{name}: {each.document.requires[name]}" for name in unmet)
            hidden.append(Hidden(document=str(each.document.id), reason=reason))
        else:
            shown.append(each)
    return shown, tuple(hidden)


def _all_hidden(hidden: Sequence[Hidden]) -> NotFound:
    named = "; ".join(f"`{each.document}` ({each.reason})" for each in hidden[:5])
    return NotFound(
        f"What the expression names is hidden by flags: {named}.",
        code=ErrorCode.RESOURCE_NOT_FOUND,
        instruction="Ask the person whether to set the flag for this project.",
    )


def _pieces(project: Project, chosen: Sequence[Chosen], flags: dict[str, FlagValue]) -> tuple[list[Piece], list[str]]:
    pieces: list[Piece] = []
    failed: list[str] = []
    for each in chosen:
        try:
            text = render(each.document, flags=flags, include=lambda name: included_text(project, name))
        except ToolError as error:
            failed.append(error.message)
            continue
        digest, tokens = _measured(project.name, str(each.document.id), each.document.type,
                                   each.document.instruction, text)  # fmt: skip
        pieces.append(Piece(chosen=each, text=text, digest=digest, tokens=tokens))
    return pieces, failed


@lru_cache(maxsize=20_000)
def _measured(project: str, id: str, kind: str, instruction: str | None, text: str) -> tuple[str, int]:
    """The digest and the tokens of what is delivered.

    The digest stands for the text together with what is to be done with it, in one project: what one project's answer
    told is never taken for another's.
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
    return found[0].text if found else None

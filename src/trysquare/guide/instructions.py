"""Instructions: what an agent is to do with each document, scoped to one project and one call."""

from __future__ import annotations

from collections.abc import Sequence

from trysquare.guide.delivery import SHORT_DIGEST, Piece
from trysquare.guide.document import DocumentType

BY_TYPE: dict[DocumentType, str] = {
    "user/information": "Show this to the person as it is.",
    "agent/information": "Know this; there is no need to show it.",
    "agent/instruction": "Follow this in the work at hand.",
    "agent/requirements": "Hold the work to this: it is done only when all of it is met.",
}


def instruction_for(piece: Piece) -> str:
    """What to do with one document: its own word, or what its type means."""
    return piece.document.instruction or BY_TYPE[piece.document.type]


def instruction_id(project: str, piece: Piece) -> str:
    """Which instruction it is: of which project, which document and which version, so that none is taken for another.

    Who names it in `held` tells that they hold that version of the document.
    """
    return f"{project}:{piece.document.id}@{piece.digest[:SHORT_DIGEST]}"


def held_digest(text: str) -> str:
    """The digest in an instruction's id; a digest by itself stays as it is."""
    return text.rpartition("@")[2]


def shared_instruction(pieces: Sequence[Piece]) -> str | None:
    """The instruction that holds for all of these documents; None where they differ."""
    found = {instruction_for(piece) for piece in pieces}
    return found.pop() if len(found) == 1 else None

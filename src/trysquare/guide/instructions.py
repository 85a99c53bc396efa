"""Instructions: what an agent is to do with each document, scoped to one project and one call."""

from __future__ import annotations

from collections.abc import Sequence

from trysquare.core.types import JsonObject
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


def instruction_list(project: str, pieces: Sequence[Piece]) -> list[JsonObject]:
    """Each instruction with an id that names project, document and version, so that none is taken for another's."""
    return [
        {
            "id": f"{project}:{piece.document.id}@{piece.digest[:SHORT_DIGEST]}",
            "type": piece.document.type,
            "instruction": instruction_for(piece),
        }
        for piece in pieces
    ]


def summary_instruction(pieces: Sequence[Piece]) -> str:
    """One line for the agent: the same instruction once, with the documents that it is for."""
    grouped: dict[str, list[str]] = {}
    for piece in pieces:
        grouped.setdefault(instruction_for(piece), []).append(str(piece.document.id))
    if len(grouped) == 1:
        return next(iter(grouped))
    return " ".join(f"{', '.join(ids)}: {text}" for text, ids in grouped.items())

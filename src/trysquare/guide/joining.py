"""Joining: several documents as one text, in the style that a flag chooses."""

from __future__ import annotations

from collections.abc import Sequence

from trysquare.guide.delivery import SHORT_DIGEST, Piece


def joined(pieces: Sequence[Piece], *, style: str = "headings") -> str | None:
    """The documents in order as one text; None where there are none."""
    if not pieces:
        return None
    if style == "plain" or (style == "headings" and len(pieces) == 1):
        return "\n\n".join(piece.text.strip() for piece in pieces)
    return "\n\n".join(f"{_heading(piece, full=style == 'full')}\n\n{piece.text.strip()}" for piece in pieces)


def _heading(piece: Piece, *, full: bool) -> str:
    # A line that no Markdown heading of the document itself can be taken for.
    if not full:
        return _comment(str(piece.document.id))
    tags = f", tags: {', '.join(sorted(piece.document.tags))}" if piece.document.tags else ""
    about = f"{piece.document.type}, {piece.tokens} tokens, {piece.digest[:SHORT_DIGEST]}{tags}"
    return _comment(f"{piece.document.id} ({about})")


def _comment(text: str) -> str:
    # Names and tags are a file's own: none may end the comment, or begin a line of its own.
    return f"<!-- {' '.join(text.replace('--', '- -').split())} -->"

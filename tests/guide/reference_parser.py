"""A second reading of expressions, written plainly and apart from the parser, to compare the two."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plain:
    """One operand: a tag, or a name with patterns."""

    kind: str
    name: str
    patterns: tuple[str, ...] = ()


def read_plainly(text: str) -> list[tuple[bool, list[Plain]]] | None:
    """Parts as (excludes, operands); None where the text is no expression."""
    parts: list[tuple[bool, list[Plain]]] = []
    for piece in text.split(","):
        piece = piece.strip()
        if piece == "":
            continue
        excludes = piece[0] == "-"
        if excludes:
            piece = piece[1:].strip()
        operands: list[Plain] = []
        for word in piece.split("&"):
            operand = _operand(word.strip())
            if operand is None:
                return None
            operands.append(operand)
        parts.append((excludes, operands))
    return parts if any(not excludes for excludes, _ in parts) else None


def _operand(word: str) -> Plain | None:
    if word == "":
        return None
    if word[0] == "#":
        tag = word[1:].strip()
        return Plain("tag", tag) if tag else None
    if "/" not in word:
        return Plain("name", word)
    at = word.index("/")
    name, rest = word[:at].strip(), word[at + 1 :]
    if name == "":
        return None
    patterns = tuple(each.strip() for each in rest.split("+") if each.strip() != "")
    return Plain("name", name, patterns)

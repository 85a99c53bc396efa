"""What an author wrote about a tool, taken apart: the renderings are put together from these parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADING = re.compile(
    r"^\s*#{2,6}\s+(Description|JSON Schema|Conceptual Schema|Usage(?: Instructions)?|(?:Concrete )?Examples?)\s*:?$",
    re.IGNORECASE | re.MULTILINE,
)
_PARTS = {"description": "description", "usage": "usage", "concrete": "examples", "example": "examples"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Authored:
    """The parts of a description. A schema section that was written by hand is left out: it is made from the schema."""

    description: str
    usage: str | None = None
    examples: str | None = None


def read_authored(text: str) -> Authored:
    """Take a text apart at the headings of the four sections. A text without headings is all description."""
    # Most texts have no headings, and a list of a thousand tools asks for each.
    headings = list(_HEADING.finditer(text)) if "##" in text else []
    if not headings:
        return Authored(description=text.strip())
    parts: dict[str, str] = {"description": text[: headings[0].start()].strip()}
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        part = _part(heading[1])
        if part is not None:
            parts[part] = f"{parts.get(part, '')}\n\n{text[heading.end() : end].strip()}".strip()
    return Authored(
        description=parts["description"], usage=parts.get("usage") or None, examples=parts.get("examples") or None
    )


def _part(heading: str) -> str | None:
    lowered = heading.lower()
    return next((part for start, part in _PARTS.items() if lowered.startswith(start)), None)

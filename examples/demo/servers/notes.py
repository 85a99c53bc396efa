"""A notebook: plain functions as tools."""

from typing import Literal

from trysquare import Consent, Tools

tools = Tools("notes")
notes = {"shopping": "oat milk, bread, two lemons"}


@tools.tool
def add_note(title: str, text: str, priority: Literal["low", "high"] = "low") -> str:
    """Write a note."""
    notes[title] = text
    return f"Wrote {title} ({priority})."


@tools.tool
def read_note(title: str) -> str:
    """Read a note."""
    return notes[title]


@tools.tool(destructive=True, consent=Consent(question="Delete the note {title}?"))
def delete_note(title: str) -> str:
    """Delete a note for good."""
    return f"Deleted {title}: {notes.pop(title)}"

"""The tools, prompts and resources of a notebook.

Tools are documented as in trysquare/guide/tools/README.md, prompts as in trysquare/guide/prompts/README.md.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from notebook import Notebook
from pydantic import Field

from trysquare import CallContext, Consent, ErrorCode, Example, Result, ToolArguments, ToolError, Tools

tools = Tools()
notebook = Notebook(folder=Path.cwd() / "notebook")

Title = Annotated[
    str,
    Field(
        description="Title of the note: small letters, digits and hyphens, such as night-train",
        pattern=r"^[a-z0-9][a-z0-9-]{0,63}$",
    ),
]


class WriteNote(ToolArguments):
    """A note to write."""

    title: Title
    text: str = Field(description="The whole text of the note", max_length=100_000)
    replace: bool = Field(False, description="Whether a note of that title may be replaced")


@tools.tool(
    category="notes",
    use_when="the user wants something written down",
    idempotent=True,
    destructive=False,
    examples=(
        Example(
            arguments={"title": "night-train", "text": "Vienna, leaves at 20:05"}, explanation="A new note of one line"
        ),
    ),
)
def write_note(args: WriteNote) -> Result[str]:
    """Write a whole text into the notebook."""
    known = notebook.read(args.title)
    if known is not None and known != args.text and not args.replace:
        raise ToolError(
            f"There is a note `{args.title}` already.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Ask the user whether to replace it. If so, send the call in `next`.",
            next={"tool": "write_note", "arguments": {**args.model_dump(), "replace": True}},
        )
    notebook.write(args.title, args.text)
    return Result.ok(args.title, message=f"The note {args.title} is written.")


class ReadNote(ToolArguments):
    """Which note to read."""

    title: Title


@tools.tool(
    category="notes",
    use_when="the user asks what a note says",
    read_only=True,
    result_limit=2_000,
    examples=(Example(arguments={"title": "night-train"}, explanation="The whole text of one note"),),
)
def read_note(args: ReadNote) -> str:
    """Return the whole text of one note."""
    return existing(args.title)


class FindNotes(ToolArguments):
    """What to look for."""

    words: str = Field("", description="Words that title or text contain, separated by spaces; empty for all notes")


@tools.tool(
    category="notes",
    use_when="the user looks for a note, or wants to know which there are",
    read_only=True,
    result_limit=2_000,
    examples=(Example(arguments={"words": "train vienna"}, explanation="Notes that speak of a train and of Vienna"),),
)
async def find_notes(args: FindNotes, context: CallContext) -> Result[list[str]]:
    """Find notes by their words."""
    titles = notebook.titles()
    wanted = args.words.lower().split()
    found: list[str] = []
    for number, title in enumerate(titles, start=1):
        text = f"{title} {notebook.read(title) or ''}".lower()
        if all(word in text for word in wanted):
            found.append(title)
        await context.progress(number, len(titles))
    return Result.ok(found, message=f"{len(found)} of {len(titles)} notes.")


class DeleteNote(ToolArguments):
    """Which note to delete."""

    title: Title


@tools.tool(
    category="notes",
    use_when="the user asks for a note to be deleted",
    avoid_when="the user only wants to change it",
    destructive=True,
    consent=Consent(question="Delete the note {title}? It cannot be brought back."),
    examples=(Example(arguments={"title": "night-train"}, explanation="Deletes one note, once the user agreed"),),
)
def delete_note(args: DeleteNote) -> Result[str]:
    """Remove one note from the notebook for good."""
    existing(args.title)
    notebook.delete(args.title)
    return Result.ok(args.title, message=f"The note {args.title} is deleted.")


async def complete_title(argument: str, typed: str, others: dict[str, str]) -> list[str]:
    """Titles that begin with what was typed."""
    return [title for title in notebook.titles() if argument == "title" and title.startswith(typed)]


@tools.prompt(
    complete=complete_title,
    examples=(("@summarize night-train", "A summary of one note, in three lines"),),
)
async def summarize(title: str, context: CallContext) -> str:
    """Summarize a note.

    Args:
        title: Title of the note
    """
    note = await context.call_tool("read_note", {"title": title})
    return f"Summarize this note in three lines:\n\n{note.value}" if note.success else note.to_text()


@tools.resource("note://{title}", mime_type="text/plain", description="One note", complete=complete_title)
def note(title: str) -> str:
    """The text of one note."""
    return existing(title)


@tools.resource("notes://titles", mime_type="text/plain", description="Titles of all notes, one per line")
def titles() -> str:
    """The titles of all notes."""
    return "\n".join(notebook.titles())


def existing(title: str) -> str:
    """The text of a note that must be there; the error names the nearest titles."""
    text = notebook.read(title)
    if text is not None:
        return text
    near = get_close_matches(title, notebook.titles())
    raise ToolError(
        f"There is no note `{title}`.",
        instruction=f"Did the user mean {' or '.join(near)}?" if near else "Look for it with find_notes.",
    )

"""The writing tools: each phase of a text is a tool that the model chooses, and can leave out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field

from trysquare.agent.records import usage_meta
from trysquare.agent.writing.analysis import LONG_KINDS, Analysis, Kind, Network, PieceKind, require_asked
from trysquare.agent.writing.draft import Draft, Note, Outline, Section, SectionId
from trysquare.agent.writing.expanding import expanded
from trysquare.agent.writing.posts import LIMITS, checked_post
from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool, tool
from trysquare.core.untrusted import quoted
from trysquare.models.model import Model
from trysquare.workbench.answers import answered

ROOM = "writing"


class _Writing(TypedDict):
    """What every writing tool says of itself."""

    room: str
    category: str
    idempotent: bool
    destructive: bool
    open_world: bool
    result_limit: None


_WRITES: _Writing = {
    "room": ROOM,
    "category": "orchestration",
    "idempotent": True,
    "destructive": False,
    "open_world": False,
    "result_limit": None,
}
Text = Annotated[str, Field(min_length=1, max_length=60_000, description="As Markdown")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Desk:
    """What the writing tools of one run share."""

    draft: Draft
    model: Model
    task: str

    def analysis(self) -> Analysis:
        """What the prompt asks for."""
        found = self.draft.analysis()
        if found is None:
            raise ToolError(
                "The prompt was not analysed yet.", code=ErrorCode.STATE_CONFLICT, instruction="Call `analyse` first."
            )
        return found

    def require_wanted(self, kind: Kind) -> None:
        """Refuse to write what nobody asked for."""
        wanted = self.analysis().deliverables
        if kind not in wanted:
            raise ToolError(
                f"The prompt does not ask for {kind}, by its analysis: {', '.join(wanted)}.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Leave it out. If the analysis is wrong, call `analyse` again.",
            )


class AddNote(ToolArguments):
    """Keep a finding."""

    action: Literal["add"]
    origin: Annotated[str, Field(min_length=1, max_length=500, description="Where it was found")]
    text: Annotated[str, Field(min_length=1, max_length=4000, description="What was found, in few words")]


class ListNotes(ToolArguments):
    """Read the findings."""

    action: Literal["list"]


class SetOutline(ToolArguments):
    """Plan the text."""

    action: Literal["set"]
    title: Annotated[str, Field(min_length=1, max_length=200, description="Title of the whole text")]
    sections: Annotated[list[Section], Field(min_length=1, max_length=20, description="In their order")]


class GetOutline(ToolArguments):
    """Read the plan."""

    action: Literal["get"]


class ExpandSection(ToolArguments):
    """Have a section written by itself."""

    action: Literal["expand"]
    section: SectionId
    words: Annotated[int, Field(ge=20, le=1500, description="About how long")] = 250


class WriteSection(ToolArguments):
    """Write a section yourself."""

    action: Literal["write"]
    section: SectionId
    text: Text


class ReadSection(ToolArguments):
    """Read a section."""

    action: Literal["read"]
    section: SectionId


class WritePiece(ToolArguments):
    """Write a newsletter or show notes."""

    action: Literal["write"]
    kind: Annotated[PieceKind, Field(description="Which one")]
    text: Text


class ReadPiece(ToolArguments):
    """Read it again."""

    action: Literal["read"]
    kind: Annotated[PieceKind, Field(description="Which one")]


class SocialPost(ToolArguments):
    """A post."""

    network: Annotated[Network, Field(description="Where it will stand")]
    text: Annotated[str, Field(min_length=1, max_length=3000, description="280 on Twitter, 300 on Bluesky, else 3000")]


class CompleteDraft(ToolArguments):
    """Nothing to say."""


ANALYSE = "analyse"


def analyse_tool(desk: Desk) -> Tool:
    """The tool that every run begins with."""

    def analyse(args: Analysis) -> Result[Any]:
        """Say what the prompt asks for; opens the tools for it."""
        require_asked(args, desk.task)
        place = desk.draft.keep_analysis(args)
        said = f"To write: {', '.join(args.deliverables)}. "
        said += f"Research: {', '.join(sorted(args.tools())) or 'none'}. "
        return answered(
            said + ("To be published." if args.publishes else "Not to be published."), modified_files=[place]
        )

    return tool(
        analyse,
        **_WRITES,
        use_when="a run begins, or the prompt turns out to ask for something else",
        avoid_when="the analysis is right as it stands",
        limits="Publication only with the prompt's own words",
        examples=(
            Example(
                arguments={"topic": "Bees", "audience": "gardeners", "tone": "friendly", "deliverables": ["article"]},
                explanation="An article, no research, nothing published.",
            ),
        ),
    )


def research_notes_tool(desk: Desk) -> Tool:
    """The tool that keeps what was found out."""

    def research_notes(args: AddNote | ListNotes) -> Result[Any]:
        """Keep what research found, for all sections."""
        if isinstance(args, AddNote):
            place = desk.draft.add_note(Note(origin=args.origin, text=args.text))
            return answered(f"Kept. There are {len(desk.draft.notes())} notes.", modified_files=[place])
        notes = desk.draft.notes()
        return answered("\n\n".join(quoted(note.text, source=note.origin) for note in notes) or "There are no notes.")

    return tool(
        research_notes,
        **_WRITES,
        use_when="a research tool found something that the text should use",
        avoid_when="nothing was found out",
        limits="Forty notes",
        examples=(
            Example(arguments={"action": "add", "origin": "https://b.example", "text": "…"}, explanation="One note."),
        ),
    )


def outline_tool(desk: Desk) -> Tool:
    """The tool that plans the text."""

    def outline(args: SetOutline | GetOutline) -> Result[Any]:
        """Plan the sections of the article or script."""
        if isinstance(args, GetOutline):
            return answered(_planned(desk.draft.needed_outline()))
        names = [section.id for section in args.sections]
        if len(set(names)) < len(names):
            raise InvalidArguments("Two sections have the same id. Give each its own.")
        place = desk.draft.keep_outline(Outline(title=args.title, sections=tuple(args.sections)))
        return answered(f"Sections to write: {', '.join(names)}.", modified_files=[place])

    return tool(
        outline,
        **_WRITES,
        use_when="an article or a script is to be written",
        avoid_when="only posts or a newsletter are wanted",
        limits="Twenty sections",
        examples=(
            Example(
                arguments={
                    "action": "set",
                    "title": "Bees",
                    "sections": [{"id": "why", "title": "Why bees", "points": ["They pollinate"]}],
                },
                explanation="A plan with one section.",
            ),
        ),
    )


def section_tool(desk: Desk) -> Tool:
    """The tool that writes the text, section by section."""

    async def section(args: ExpandSection | WriteSection | ReadSection) -> Result[Any]:
        """Have a section expanded by itself, write or read one."""
        planned = desk.draft.needed_outline().section(args.section)
        if isinstance(args, ReadSection):
            found = desk.draft.section(args.section)
            return answered(found or f"Section {args.section} has no text yet.")
        if isinstance(args, WriteSection):
            return await run_in_thread(lambda: _kept(desk, args.section, args.text, ()))
        outline, notes = desk.draft.needed_outline(), desk.draft.notes()
        answer = await expanded(desk.model, desk.analysis(), outline, planned, notes, words=args.words)
        warnings = ("The text was cut at its length: read its end.",) if answer.stop == "length" else ()
        kept = await run_in_thread(lambda: _kept(desk, args.section, answer.text, warnings))
        return replace(kept, meta=usage_meta(answer.usage))

    return tool(
        section,
        **_WRITES,
        use_when="the outline is set; expand each section, and write one anew where it is not good",
        avoid_when="there is no outline",
        limits="One section a call",
        examples=(Example(arguments={"action": "expand", "section": "why"}, explanation="Written by itself."),),
    )


def _kept(desk: Desk, name: str, text: str, warnings: tuple[str, ...]) -> Result[Any]:
    place = desk.draft.keep_section(name, text.strip() + "\n")
    left = desk.draft.unwritten()
    said = f"Section {name} has {len(text.split())} words. "
    said += f"Still to write: {', '.join(left)}." if left else "All sections are written."
    return answered(said, modified_files=[place], warnings=warnings)


def piece_tool(desk: Desk) -> Tool:
    """The tool that writes newsletters and show notes."""

    def piece(args: WritePiece | ReadPiece) -> Result[Any]:
        """Write the newsletter or the show notes, or read them."""
        if isinstance(args, ReadPiece):
            return answered(desk.draft.piece(args.kind) or f"The {args.kind} has no text yet.")
        desk.require_wanted(args.kind)
        place = desk.draft.keep_piece(args.kind, args.text.strip() + "\n")
        return answered(f"The {args.kind} has {len(args.text.split())} words.", modified_files=[place])

    return tool(
        piece,
        **_WRITES,
        use_when="a newsletter or show notes are wanted, from what was found and written",
        avoid_when="the prompt asks for neither",
        limits="One of each",
        examples=(
            Example(arguments={"action": "write", "kind": "newsletter", "text": "# News"}, explanation="A short one."),
        ),
    )


def social_post_tool(desk: Desk) -> Tool:
    """The tool that writes posts."""

    def social_post(args: SocialPost) -> Result[Any]:
        """Write a post within the length of its network."""
        desk.require_wanted(args.network)
        text = args.text.strip()
        length = checked_post(args.network, text)
        place = desk.draft.keep_post(args.network, text + "\n")
        return answered(f"{length} of {LIMITS[args.network].most} characters.", modified_files=[place])

    return tool(
        social_post,
        **_WRITES,
        use_when="the prompt asks for a post, and its text is clear",
        avoid_when="the prompt asks for no post in that network",
        limits="Twitter 280, Bluesky 300, LinkedIn 3000; nothing is posted",
        examples=(Example(arguments={"network": "twitter", "text": "Bees fly."}, explanation="A post."),),
    )


def complete_draft_tool(desk: Desk) -> Tool:
    """The tool that says whether everything is there."""

    def complete_draft(args: CompleteDraft) -> Result[Any]:
        """Check that all that was asked for is written, and join it."""
        analysis = desk.analysis()
        if missing := desk.draft.missing(analysis):
            raise ToolError(
                f"Not everything is written: {'; '.join(missing)}.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Write what is missing, then call this again.",
            )
        places = [desk.draft.keep_assembled(kind) for kind in analysis.deliverables if kind in LONG_KINDS]
        return answered(f"Complete, in {desk.draft.place()}.", modified_files=places)

    return tool(
        complete_draft,
        **_WRITES,
        use_when="all that the prompt asks for is written; before publishing and before finish",
        avoid_when="something is still to be written",
        limits="It writes nothing new",
    )


def _planned(outline: Outline) -> str:
    lines = [f"# {outline.title}"]
    for section in outline.sections:
        lines += [f"## {section.title} ({section.id})", *(f"- {point}" for point in section.points)]
    return "\n".join(lines)

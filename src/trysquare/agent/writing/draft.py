"""Draft: what a run has written so far, as files in a folder of its own that a person can read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trysquare.agent.writing.analysis import LONG_KINDS, Analysis, Kind, Network, PieceKind
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.sealed_folder import SealedFolder

FOLDER = "drafts"
MOST_NOTES = 40
M = TypeVar("M", bound=BaseModel)
SectionId = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="Short name of a section, such as why-bees")
]


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Section(_Kept):
    """A section as the outline plans it."""

    id: SectionId
    title: Annotated[str, Field(min_length=1, max_length=200, description="Its heading")]
    points: Annotated[list[str], Field(min_length=1, max_length=12, description="What it says, point by point")]


class Outline(_Kept):
    """The plan of the text."""

    title: str
    sections: tuple[Section, ...]

    def section(self, name: str) -> Section:
        """The section of that name."""
        found = next((each for each in self.sections if each.id == name), None)
        if found is None:
            raise NotFound(
                f"The outline has no section `{name}`.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                instruction=f"Use one of {', '.join(each.id for each in self.sections)}.",
            )
        return found


class Note(_Kept):
    """Something that was found out, and where."""

    origin: str
    text: str


class _Notes(_Kept):
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """The files of one run. What is there outlives the process, so a job that is taken up again finds it."""

    root: Path
    name: str
    """The name of the folder below `drafts`."""

    def analysis(self) -> Analysis | None:
        """What the prompt asks for, once it was analysed."""
        return self._read("analysis.json", Analysis)

    def keep_analysis(self, analysis: Analysis) -> str:
        return self._write("analysis.json", analysis)

    def outline(self) -> Outline | None:
        """The plan, once there is one."""
        return self._read("outline.json", Outline)

    def needed_outline(self) -> Outline:
        """The plan, for what cannot be done without one."""
        found = self.outline()
        if found is None:
            raise ToolError(
                "There is no outline yet.", code=ErrorCode.STATE_CONFLICT, instruction="Set one with `outline` first."
            )
        return found

    def keep_outline(self, outline: Outline) -> str:
        return self._write("outline.json", outline)

    def notes(self) -> tuple[Note, ...]:
        """What was found out so far."""
        kept = self._read("research.json", _Notes)
        return () if kept is None else kept.notes

    def add_note(self, note: Note) -> str:
        """Keep a note, once."""
        known = self.notes()
        if note not in known and len(known) >= MOST_NOTES:
            raise ToolError(f"There are {MOST_NOTES} notes already. Write with what you have.")
        return self._write("research.json", _Notes(notes=known if note in known else (*known, note)))

    def section(self, name: str) -> str | None:
        """The text of a section, once it was written."""
        return self._text(f"sections/{name}.md")

    def keep_section(self, name: str, text: str) -> str:
        return self._keep(f"sections/{name}.md", text)

    def piece(self, kind: PieceKind) -> str | None:
        """The newsletter or the show notes, once they were written."""
        return self._text(f"{kind}.md")

    def keep_piece(self, kind: PieceKind, text: str) -> str:
        return self._keep(f"{kind}.md", text)

    def post(self, network: Network) -> str | None:
        """The post for a network, once it was written."""
        return self._text(f"posts/{network}.txt")

    def keep_post(self, network: Network, text: str) -> str:
        return self._keep(f"posts/{network}.txt", text)

    def unwritten(self) -> list[str]:
        """The sections of the outline that have no text yet."""
        outline = self.outline()
        return [] if outline is None else [each.id for each in outline.sections if self.section(each.id) is None]

    def assembled(self) -> str:
        """The sections as one text, in the order of the outline."""
        outline = self.needed_outline()
        parts = [f"# {outline.title}"]
        for section in outline.sections:
            parts += [f"## {section.title}", (self.section(section.id) or "").strip()]
        return "\n\n".join(parts) + "\n"

    def keep_assembled(self, kind: Kind) -> str:
        """Write the sections as one file."""
        return self._keep(f"{kind}.md", self.assembled())

    def missing(self, analysis: Analysis) -> list[str]:
        """What the prompt asked for and is not there."""
        return [told for kind in analysis.deliverables if (told := self._missing(kind)) is not None]

    def _missing(self, kind: Kind) -> str | None:
        if kind in LONG_KINDS:
            if self.outline() is None:
                return f"{kind}: there is no outline"
            unwritten = self.unwritten()
            return f"{kind}: sections without text: {', '.join(unwritten)}" if unwritten else None
        path = f"posts/{kind}.txt" if kind in ("twitter", "linkedin", "bluesky") else f"{kind}.md"
        return f"{kind}: not written" if self._text(path) is None else None

    def place(self, path: str = "") -> str:
        """Where a file lies, as seen from the run's folder."""
        return f"{FOLDER}/{self.name}/{path}".rstrip("/")

    def _text(self, path: str) -> str | None:
        with SealedFolder(self.root) as folder:
            try:
                return folder.read_text(self.place(path))
            except NotFound:
                return None

    def _keep(self, path: str, text: str) -> str:
        place = self.place(path)
        with SealedFolder(self.root) as folder:
            folder.write_bytes(place, text.encode())
        return place

    def _write(self, path: str, kept: BaseModel) -> str:
        return self._keep(path, json.dumps(kept.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")

    def _read(self, path: str, model: type[M]) -> M | None:
        text = self._text(path)
        if text is None:
            return None
        try:
            return model.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ToolError(
                f"{self.place(path)} cannot be read: {'.'.join(map(str, first['loc']))} {first['msg'].lower()}.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Write it again with its tool, or tell the person.",
            ) from None

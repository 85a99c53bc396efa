"""Draft files of a writing run, analysis of its prompt, lengths of posts."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.files.root import DirectoryRoot

Kind: TypeAlias = Literal["article", "script", "newsletter", "show_notes", "twitter", "linkedin", "bluesky"]
Network: TypeAlias = Literal["twitter", "linkedin", "bluesky"]
PieceKind: TypeAlias = Literal["newsletter", "show_notes"]
ResearchTool: TypeAlias = Literal["rss_feed", "static_links", "calendar"]

LONG_KINDS = frozenset({"article", "script"})
PIECE_KINDS = frozenset({"newsletter", "show_notes"})
NETWORKS = frozenset({"twitter", "linkedin", "bluesky"})

PUBLISHING_WORDS = (
    "publish", "notion", "release", "go live", "put online", "post it", "upload", "veröffentlich", "publier", "publie",
    "publica", "pubblica", "publicer", "opublikuj", "опубликуй", "公開", "发布", "發布", "게시", "발행",
)  # fmt: skip
"""A text without any of these words is not published, whatever the model concludes."""


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: Annotated[ResearchTool, Field(description="Where the answer is")]
    question: Annotated[str, Field(min_length=1, max_length=500, description="What to find out")]


class Analysis(ToolArguments):
    topic: Annotated[str, Field(min_length=1, max_length=500, description="What the text is about")]
    audience: Annotated[str, Field(min_length=1, max_length=300, description="Who reads or listens to it")]
    tone: Annotated[str, Field(min_length=1, max_length=200, description="How it sounds")]
    deliverables: Annotated[
        list[Kind], Field(min_length=1, max_length=7, description="What the prompt asks for, and nothing else")
    ]
    research: list[Question] = Field(
        default_factory=list[Question],
        max_length=10,
        description="Only what the prompt itself does not say; often empty",
    )
    publish_words: Annotated[
        str | None,
        Field(max_length=300, description="The prompt's own words that ask to publish; none, no publication"),
    ] = None

    @property
    def publishes(self) -> bool:
        return self.publish_words is not None

    def wants(self, kinds: frozenset[str]) -> bool:
        return any(kind in kinds for kind in self.deliverables)

    def tools(self) -> frozenset[str]:
        return frozenset(question.tool for question in self.research)


def require_publish_request(analysis: Analysis, task: str) -> None:
    """Refuse to publish unless the prompt itself asks for it."""
    if analysis.publish_words is None:
        return
    words = _plain(analysis.publish_words)
    if words not in _plain(task):
        raise InvalidArguments(
            f"`publish_words` is “{analysis.publish_words[:100]}”, which is not in the prompt.",
            instruction="Omit publish_words, or quote the words of the prompt that ask to publish.",
        )
    if not any(word in words for word in PUBLISHING_WORDS):
        raise InvalidArguments(
            f"“{analysis.publish_words[:100]}” does not ask to publish anything.",
            instruction="Omit publish_words: what is not asked for is not published.",
        )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


FOLDER = "drafts"
MAX_NOTES = 40
M = TypeVar("M", bound=BaseModel)
SectionId = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="Short name of a section, such as why-bees")
]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Section(_Stored):
    id: SectionId
    title: Annotated[str, Field(min_length=1, max_length=200, description="Its heading")]
    points: Annotated[list[str], Field(min_length=1, max_length=12, description="What it says, point by point")]


class Outline(_Stored):
    title: str
    sections: tuple[Section, ...]

    def section(self, name: str) -> Section:
        found = next((each for each in self.sections if each.id == name), None)
        if found is None:
            raise NotFound(
                f"Unknown section `{name}`.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                instruction=f"Use one of {', '.join(each.id for each in self.sections)}.",
            )
        return found


class Note(_Stored):
    origin: str
    text: str


class _Notes(_Stored):
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """The files of one run, which a resumed job finds again."""

    root: Path
    name: str

    def analysis(self) -> Analysis | None:
        return self._read("analysis.json", Analysis)

    def outline(self) -> Outline | None:
        return self._read("outline.json", Outline)

    def require_outline(self) -> Outline:
        if (found := self.outline()) is None:
            raise ToolError(
                "The outline is missing.", code=ErrorCode.STATE_CONFLICT, instruction="Set one with `outline` first."
            )
        return found

    def notes(self) -> tuple[Note, ...]:
        stored = self._read("research.json", _Notes)
        return () if stored is None else stored.notes

    def add_note(self, note: Note) -> str:
        known = self.notes()
        if note not in known and len(known) >= MAX_NOTES:
            raise ToolError(f"Too many notes (limit {MAX_NOTES}). Write with what you have.")
        return self.save_model("research.json", _Notes(notes=known if note in known else (*known, note)))

    def unwritten(self) -> list[str]:
        """Sections of the outline without a text."""
        sections = outline.sections if (outline := self.outline()) else ()
        return [each.id for each in sections if self.text(section_file(each.id)) is None]

    def assembled(self) -> str:
        """The sections as one text, in the order of the outline."""
        outline = self.require_outline()
        parts = [f"# {outline.title}"]
        for section in outline.sections:
            parts += [f"## {section.title}", (self.text(section_file(section.id)) or "").strip()]
        return "\n\n".join(parts) + "\n"

    def missing(self, analysis: Analysis) -> list[str]:
        """What the prompt asks for and is not written."""
        return [reason for kind in analysis.deliverables if (reason := self._missing(kind)) is not None]

    def _missing(self, kind: Kind) -> str | None:
        if kind not in LONG_KINDS:
            return f"{kind}: not written" if self.text(file_of(kind)) is None else None
        if self.outline() is None:
            return f"{kind}: there is no outline"
        unwritten = self.unwritten()
        return f"{kind}: sections without text: {', '.join(unwritten)}" if unwritten else None

    def path(self, name: str = "") -> str:
        """Path of a file, relative to the run's directory."""
        return f"{FOLDER}/{self.name}/{name}".rstrip("/")

    def text(self, name: str) -> str | None:
        """The text of a file; None if it was not written."""
        with DirectoryRoot(self.root) as folder:
            try:
                return folder.read_text(self.path(name))
            except NotFound:
                return None

    def save(self, name: str, text: str) -> str:
        """Write a file; returns its path."""
        path = self.path(name)
        with DirectoryRoot(self.root) as folder:
            folder.write_bytes(path, text.encode())
        return path

    def save_model(self, name: str, model: BaseModel) -> str:
        return self.save(name, json.dumps(model.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")

    def _read(self, name: str, model: type[M]) -> M | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return model.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ToolError(
                f"{self.path(name)} is invalid: {'.'.join(map(str, first['loc']))} {first['msg'].lower()}.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Write it again with its tool, or ask the user.",
            ) from None


def section_file(section: str) -> str:
    return f"sections/{section}.md"


def file_of(kind: Kind) -> str:
    """The file of a deliverable."""
    return f"posts/{kind}.txt" if kind in NETWORKS else f"{kind}.md"


_ADDRESS = re.compile(r"https?://\S+")
_ADDRESS_LENGTH = 23
_NARROW = ((0, 4351), (8192, 8205), (8208, 8223), (8242, 8247))
"""Code points that count once on Twitter; all others count twice."""
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def twitter_length(text: str) -> int:
    """Every URL counts the same; wide characters count twice."""
    addresses = len(_ADDRESS.findall(text))
    rest = unicodedata.normalize("NFC", _ADDRESS.sub("", text))
    narrow = sum(any(first <= ord(letter) <= last for first, last in _NARROW) for letter in rest)
    return addresses * _ADDRESS_LENGTH + 2 * len(rest) - narrow


def bluesky_length(text: str) -> int:
    """Upper bound of the graphemes that Bluesky counts."""
    return sum(1 for letter in text if letter not in _JOINERS and unicodedata.category(letter) not in ("Mn", "Me"))


@dataclass(frozen=True, kw_only=True, slots=True)
class PostLimit:
    most: int
    length: Callable[[str], int]
    bytes: int | None = None


LIMITS: Mapping[Network, PostLimit] = {
    "twitter": PostLimit(most=280, length=twitter_length),
    "linkedin": PostLimit(most=3000, length=len),
    "bluesky": PostLimit(most=300, length=bluesky_length, bytes=3000),
}


def checked_post(network: Network, text: str) -> int:
    """Check the length of a post; returns it."""
    limit, length = LIMITS[network], LIMITS[network].length(text)
    if length > limit.most:
        raise InvalidArguments(
            f"The post for {network} has {length} characters (limit {limit.most}).",
            instruction=f"Shorten it by at least {length - limit.most} characters and write it again.",
        )
    if limit.bytes is not None and len(text.encode()) > limit.bytes:
        raise InvalidArguments(f"The post for {network} has more than {limit.bytes} bytes. Shorten it.")
    return length

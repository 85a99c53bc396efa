"""Analysis: what a prompt asks for, as a value that opens the tools which it needs and no others."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import InvalidArguments

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
"""Words that ask for a publication. A text that has none of them is not published, whatever a model makes of it."""


class Question(BaseModel):
    """Something to find out, and the tool that can tell."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: Annotated[ResearchTool, Field(description="Where the answer is")]
    question: Annotated[str, Field(min_length=1, max_length=500, description="What to find out")]


class Analysis(ToolArguments):
    """What the prompt asks for."""

    topic: Annotated[str, Field(min_length=1, max_length=500, description="What the text is about")]
    audience: Annotated[str, Field(min_length=1, max_length=300, description="Who reads or hears it")]
    tone: Annotated[str, Field(min_length=1, max_length=200, description="How it sounds")]
    deliverables: Annotated[
        list[Kind], Field(min_length=1, max_length=7, description="What the prompt asks for, and nothing else")
    ]
    research: list[Question] = Field(
        default_factory=list[Question],
        max_length=10,
        description="Only what the prompt itself does not tell; often empty",
    )
    publish_words: Annotated[
        str | None,
        Field(max_length=300, description="The prompt's own words that ask to publish; none, no publication"),
    ] = None

    @property
    def publishes(self) -> bool:
        """Whether the prompt asks for a publication."""
        return self.publish_words is not None

    def wants(self, kinds: frozenset[str]) -> bool:
        """Whether it asks for any of these."""
        return any(kind in kinds for kind in self.deliverables)

    def tools(self) -> frozenset[str]:
        """The tools for research that it needs."""
        return frozenset(question.tool for question in self.research)


def require_asked(analysis: Analysis, task: str) -> None:
    """Refuse an analysis that wants to publish without words of the prompt that ask for it."""
    if analysis.publish_words is None:
        return
    words = _plain(analysis.publish_words)
    if words not in _plain(task):
        raise InvalidArguments(
            f"`publish_words` is “{analysis.publish_words[:100]}”, which does not stand in the prompt.",
            instruction="Leave publish_words out, or quote the words of the prompt that ask to publish.",
        )
    if not any(word in words for word in PUBLISHING_WORDS):
        raise InvalidArguments(
            f"“{analysis.publish_words[:100]}” does not ask to publish anything.",
            instruction="Leave publish_words out: what is not asked for is not published.",
        )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())

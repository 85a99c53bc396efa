"""Publishing: the tool for it takes the draft itself, so that no model has to write the whole text once more."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from trysquare.agent.writing.analysis import LONG_KINDS, Analysis, PieceKind
from trysquare.agent.writing.tools import Desk
from trysquare.core.arguments import ToolArguments
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.schema import ModelArguments
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

WORDS_A_MINUTE = 220
Lines = Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=20)]


class PublishDraft(ToolArguments):
    """How the draft is published."""

    title: Annotated[str, Field(min_length=1, max_length=300, description="Title of the page")]
    request_key: Annotated[
        str, Field(min_length=1, max_length=200, description="Your own; sent again with it, nothing is published twice")
    ]
    tags: Annotated[Lines | None, Field(description="What readers find it by")] = None
    key_takeaways: Annotated[Lines | None, Field(description="Its main points")] = None


def drafted(publish: Tool, desk: Desk) -> Tool:
    """The publishing tool under its own name, with the text taken from the draft. Consent is still asked for it."""
    arguments = ModelArguments(PublishDraft)

    async def call(raw: JsonObject, context: CallContext) -> Result[Any]:
        args: PublishDraft = arguments.parse(publish.name, raw)
        whole = await run_in_thread(lambda: _whole(desk, args))
        return await publish.call(whole, context)

    example = Example(arguments={"title": "Bees", "request_key": "bees-1"}, explanation="The complete draft.")
    return publish.wrapped(
        call,
        description="Publish the complete draft as a page in Notion.",
        arguments=arguments,
        function=None,
        metadata=replace(publish.metadata, examples=(example,)),
    )


def _whole(desk: Desk, args: PublishDraft) -> JsonObject:
    """The arguments of the publication, from the draft."""
    analysis, draft = desk.analysis(), desk.draft
    if not analysis.publishes:
        raise ToolError("The prompt does not ask to publish anything.", code=ErrorCode.POLICY_DENIED)
    if missing := draft.missing(analysis):
        raise ToolError(
            f"The draft is not complete: {'; '.join(missing)}.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Write what is missing first.",
        )
    text = _text(desk, analysis)
    posts = {f"{network}_post": draft.post(network) for network in ("twitter", "linkedin", "bluesky")}
    whole: JsonObject = {
        "title": args.title,
        "expanded_draft": text,
        "request_key": args.request_key,
        "substack_tags": args.tags,
        "key_takeaways": args.key_takeaways,
        "target_audience": analysis.audience,
        "read_time": f"{max(1, round(len(text.split()) / WORDS_A_MINUTE))} min",
        **posts,
    }
    return {name: part for name, part in whole.items() if part}


def _text(desk: Desk, analysis: Analysis) -> str:
    """What was asked for, the longest first; posts stand in fields of their own."""
    long = [desk.draft.assembled()] if analysis.wants(LONG_KINDS) else []
    kinds: tuple[PieceKind, ...] = ("show_notes", "newsletter")
    pieces = (desk.draft.piece(kind) or "" for kind in kinds if kind in analysis.deliverables)
    return "\n\n".join([*long, *pieces]) or "Posts only."

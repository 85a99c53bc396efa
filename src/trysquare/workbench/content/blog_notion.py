"""blog_notion: publishes a text to Notion, once, with a person's consent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.consent import arguments_digest
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments
from trysquare.core.metadata import Consent, Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.types import JsonObject
from trysquare.store.lazy import Transactions
from trysquare.workbench.answers import answered
from trysquare.workbench.content.config import NotionConfig
from trysquare.workbench.content.notion_blocks import Block, markdown_blocks, text_blocks

if TYPE_CHECKING:
    from trysquare.workbench.content.notion import Shape

NAME = "blog_notion"
MAX_DRAFT = 400_000
Lines = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=100)]
Post = Annotated[str | None, Field(max_length=10_000, description="Kept under the text")]


class BlogNotion(ToolArguments):
    """What is published."""

    title: Annotated[str, Field(min_length=1, max_length=1000, description="Title of the page")]
    expanded_draft: Annotated[str, Field(min_length=1, max_length=MAX_DRAFT, description="The whole text, as Markdown")]
    request_key: Annotated[
        str, Field(min_length=1, max_length=200, description="Your own; sent again with it, nothing is published twice")
    ]
    original_dictation: Annotated[str | None, Field(max_length=MAX_DRAFT, description="Kept at the end")] = None
    suggested_titles: Annotated[Lines | None, Field(description="Other titles")] = None
    substack_tags: Annotated[Lines | None, Field(description="What readers find it by, one word or two each")] = None
    twitter_post: Post = None
    linkedin_post: Post = None
    bluesky_post: Post = None
    key_takeaways: Annotated[Lines | None, Field(description="Main points")] = None
    target_audience: Annotated[str | None, Field(max_length=1000, description="For whom it is")] = None
    read_time: Annotated[str | None, Field(max_length=100, description="Such as 6 minutes")] = None


def blog_notion_tool(config: NotionConfig, *, state: Transactions) -> Tool:
    """The tool that publishes; `state` remembers the request keys."""

    async def blog_notion(args: BlogNotion, context: CallContext) -> Result[Any]:
        """Publish a text as a page in Notion."""
        # What speaks HTTP takes long to import, so it is when somebody first wants it.
        from trysquare.workbench.content.keyed import once
        from trysquare.workbench.content.notion import Notion, tag_names

        notion = Notion(config)
        given = args.model_dump(exclude={"request_key"})

        async def publish() -> JsonObject:
            shape = await notion.shape()
            tags = tag_names(args.substack_tags or [])
            page = await notion.publish(args.title, page_blocks(args, shape, tags), shape=shape, tags=tags)
            return {"page_id": page.id, "url": page.url}

        page, is_new = await once(
            state,
            args.request_key,
            tool=NAME,
            principal=context.principal.subject,
            digest=arguments_digest(given),
            work=publish,
        )
        said = "Published" if is_new else "An earlier call with this key published it"
        return answered(f"{said}: {page['url']}", data={**page, "new": is_new})

    return tool(
        blog_notion,
        name=NAME,
        category="publish",
        needs=("notion",),
        room="workbench",
        consent=Consent(question="Publish “{title}” to Notion?"),
        destructive=False,
        read_only=False,
        open_world=True,
        result_limit=None,
        use_when="the prompt asks to publish",
        avoid_when="the prompt does not ask for it, or the text is not finished",
        limits="Notion only; a person is asked before each publication",
        examples=(
            Example(
                arguments={"title": "Bees", "expanded_draft": "# Bees\n\nThey fly.", "request_key": "bees-1"},
                explanation="A page with one heading and one paragraph.",
            ),
        ),
        trigger_words=("publish", "notion", "blog"),
    )


def page_blocks(args: BlogNotion, shape: Shape, tags: list[str]) -> list[Block]:
    """The page: the text first, then what belongs to it."""
    blocks = markdown_blocks(args.expanded_draft)
    if not blocks:
        raise InvalidArguments("`expanded_draft` has no text in it.")
    for title, lines in (("Key takeaways", args.key_takeaways), ("Other titles", args.suggested_titles)):
        blocks += _section(title, [each for line in lines or () for each in text_blocks("bulleted_list_item", line)])
    posts = (("Twitter", args.twitter_post), ("LinkedIn", args.linkedin_post), ("Bluesky", args.bluesky_post))
    for title, post in posts:
        blocks += _section(title, text_blocks("paragraph", post) if post else [])
    blocks += _section("About this text", _about(args, shape, tags))
    dictation = args.original_dictation
    return blocks + _section("Original dictation", text_blocks("paragraph", dictation) if dictation else [])


def _about(args: BlogNotion, shape: Shape, tags: list[str]) -> list[Block]:
    facts = {
        "Audience": args.target_audience,
        "Reading time": args.read_time,
        # A place without a property for tags still shows them.
        "Tags": ", ".join(tags) if tags and shape.tags is None else None,
    }
    return [
        each for name, fact in facts.items() if fact for each in text_blocks("bulleted_list_item", f"{name}: {fact}")
    ]


def _section(title: str, blocks: list[Block]) -> list[Block]:
    return [*text_blocks("heading_2", title), *blocks] if blocks else []

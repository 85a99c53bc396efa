"""The tools `rss_feed` and `static_links`: newest entries of feeds, and the configured links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from trysquare.content.config import ContentConfig, LinkConfig
from trysquare.content.feeds import Feed, NoFeed, parse_feed
from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, ToolError, require_extra
from trysquare.core.metadata import Example
from trysquare.core.result import Result, answered
from trysquare.core.tool import Tool, tool
from trysquare.core.untrusted import quote_untrusted

if TYPE_CHECKING:
    from trysquare.net.fetch import Fetched, Fetcher


_ACCEPT = "application/rss+xml, application/atom+xml, application/rdf+xml, application/xml;q=0.9, */*;q=0.1"
Limit = Annotated[int, Field(ge=1, le=50, description="Entries of each feed")]


class FetchFeed(ToolArguments):
    action: Literal["fetch"]
    url: Annotated[str, Field(min_length=1, max_length=2000, description="Address of an RSS or Atom feed")]
    limit: Limit = 5


class ConfiguredFeeds(ToolArguments):
    action: Literal["get_configured"]
    limit: Limit = 5


# Documented as in guide/tools/README.md.
def rss_feed_tool(config: ContentConfig) -> Tool:
    async def rss_feed(args: FetchFeed | ConfiguredFeeds) -> Result[Any]:
        """Read the newest entries of RSS and Atom feeds."""
        # The HTTP client is slow to import.
        from trysquare.net.fetch import Fetcher

        require_extra("content", "httpcore2", "httpx2", feature="This tool", code=ErrorCode.FETCH_FAILED)
        fetcher = Fetcher(config.fetch)
        if isinstance(args, FetchFeed):
            fetched, feed = await _read(fetcher, args.url)
            shown = min(len(feed.entries), args.limit)
            data = {"url": fetched.url, "entries": shown, "more": len(feed.entries) - shown, "from_outside": True}
            return answered(_text(fetched, feed, args.limit), data=data)
        return await _configured(fetcher, config, args.limit)

    return tool(
        rss_feed,
        category="research",
        needs=("network",),
        toolset="workbench",
        read_only=True,
        open_world=True,
        result_limit=None,
        use_when="the text needs recent news or posts",
        avoid_when="the prompt asks for no news",
        limits="RSS 2.0, RSS 1.0 and Atom; public addresses only",
        examples=(Example(arguments={"action": "get_configured", "limit": 3}, explanation="Three of each feed."),),
        trigger_words=("news", "feed", "rss", "recent posts"),
    )


async def _read(fetcher: Fetcher, url: str) -> tuple[Fetched, Feed]:
    fetched = await fetcher.fetch(url, accept=_ACCEPT)
    try:
        return fetched, parse_feed(fetched.body, base=fetched.url)
    except NoFeed as error:
        raise ToolError(
            f"`{url[:200]}` is not a feed: {error}.",
            code=ErrorCode.FETCH_FAILED,
            instruction="Use the URL of the feed itself; a page often has it in a link of type application/rss+xml.",
        ) from None


async def _configured(fetcher: Fetcher, config: ContentConfig, limit: int) -> Result[Any]:
    if not config.feeds:
        raise ToolError(
            "No feeds are configured.",
            code=ErrorCode.CONFIG_NOT_FOUND,
            instruction='Use `fetch` with a URL, or ask the user to set `content.feeds = ["name=URL"]`.',
        )
    outputs: list[str] = []
    warnings: list[str] = []
    for name, url in config.feeds.items():
        try:
            fetched, feed = await _read(fetcher, url)
            outputs.append(_text(fetched, feed, limit))
        except ToolError as error:
            warnings.append(f"Skipped the feed {name}: {error.message}")
    if not outputs:
        raise ToolError("Cannot read any configured feed. " + " ".join(warnings), code=ErrorCode.FETCH_FAILED)
    return answered("\n\n".join(outputs), data={"feeds": len(outputs), "from_outside": True}, warnings=warnings)


def _text(fetched: Fetched, feed: Feed, limit: int) -> str:
    lines = [feed.title]
    for entry in feed.entries[:limit]:
        lines.append("* " + " | ".join(filter(None, (entry.title, entry.published, entry.author, entry.link))))
        lines += [f"  {entry.summary}"] if entry.summary else []
    return quote_untrusted("\n".join(lines if feed.entries else [*lines, "(no entries)"]), source=fetched.url)


_SETTINGS = {
    "get_social": "content.social_links",
    "get_custom": "content.custom_links",
    "get_youtube_placeholder": "content.youtube_placeholder",
    "get_all": "content.social_links, content.custom_links and content.youtube_placeholder",
}


class StaticLinks(ToolArguments):
    action: Annotated[
        Literal["get_all", "get_social", "get_custom", "get_youtube_placeholder"], Field(description="Which links")
    ]


def static_links_tool(config: LinkConfig) -> Tool:
    def static_links(args: StaticLinks) -> Result[Any]:
        """Give the links that belong under a text."""
        parts = {
            "get_social": _list("Social", config.social),
            "get_custom": _list("Links", config.custom),
            "get_youtube_placeholder": config.youtube_placeholder or "",
        }
        wanted = parts if args.action == "get_all" else {args.action: parts[args.action]}
        text = "\n\n".join(part for part in wanted.values() if part)
        if not text:
            raise ToolError(
                "No such links are configured.",
                code=ErrorCode.CONFIG_NOT_FOUND,
                instruction=f"Continue without them, or ask the user to set {_SETTINGS[args.action]}.",
            )
        return answered(text)

    return tool(
        static_links,
        category="research",
        toolset="workbench",
        read_only=True,
        idempotent=True,
        open_world=False,
        result_limit=None,
        use_when="a newsletter or show notes end with the author's links",
        avoid_when="the text carries no links",
        limits="What is configured, nothing else",
        examples=(Example(arguments={"action": "get_social"}, explanation="The author's profiles."),),
        trigger_words=("links", "social", "youtube"),
    )


def _list(title: str, links: Mapping[str, str]) -> str:
    return "\n".join([f"## {title}", *(f"- [{name}]({url})" for name, url in links.items())]) if links else ""

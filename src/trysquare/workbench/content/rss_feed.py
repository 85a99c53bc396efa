"""rss_feed: reads news, from an address or from the feeds that are configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.core.untrusted import quoted
from trysquare.workbench.answers import answered
from trysquare.workbench.content.config import ContentConfig
from trysquare.workbench.content.feed import Entry, Feed, NoFeed, parse_feed

if TYPE_CHECKING:
    from trysquare.workbench.fetching import Fetched, Fetcher

_ACCEPT = "application/rss+xml, application/atom+xml, application/rdf+xml, application/xml;q=0.9, */*;q=0.1"
Limit = Annotated[int, Field(ge=1, le=50, description="Entries of each feed")]


class FetchFeed(ToolArguments):
    """Read the feed at an address."""

    action: Literal["fetch"]
    url: Annotated[str, Field(min_length=1, max_length=2000, description="Address of an RSS or Atom feed")]
    limit: Limit = 5


class ConfiguredFeeds(ToolArguments):
    """Read the configured feeds."""

    action: Literal["get_configured"]
    limit: Limit = 5


def rss_feed_tool(config: ContentConfig) -> Tool:
    """The tool that reads feeds."""

    async def rss_feed(args: FetchFeed | ConfiguredFeeds) -> Result[Any]:
        """Read the newest entries of RSS and Atom feeds."""
        # What speaks HTTP takes long to import, so it is when somebody first wants it.
        from trysquare.workbench.fetching import Fetcher

        reading = Fetcher(config.fetch)
        if isinstance(args, FetchFeed):
            return _told(*await _read(reading, args.url), limit=args.limit)
        return await _configured(reading, config, args.limit)

    return tool(
        rss_feed,
        category="research",
        needs=("network",),
        room="workbench",
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
            f"`{url[:200]}` is no feed: {error}.",
            code=ErrorCode.FETCH_FAILED,
            instruction="Give the address of the feed itself; a page often names it in a link of type "
            "application/rss+xml.",
        ) from None


async def _configured(fetcher: Fetcher, config: ContentConfig, limit: int) -> Result[Any]:
    if not config.feeds:
        raise ToolError(
            "No feeds are configured.",
            code=ErrorCode.CONFIG_NOT_FOUND,
            instruction='Use `fetch` with an address, or tell the person to set `content.feeds = ["name=URL"]`.',
        )
    outputs: list[str] = []
    warnings: list[str] = []
    for name, url in config.feeds.items():
        try:
            fetched, feed = await _read(fetcher, url)
            outputs.append(_text(fetched, feed, limit))
        except ToolError as error:
            warnings.append(f"The feed {name} was left out: {error.message}")
    if not outputs:
        raise ToolError(
            "None of the configured feeds could be read. " + " ".join(warnings), code=ErrorCode.FETCH_FAILED
        )
    return answered("\n\n".join(outputs), data={"feeds": len(outputs), "from_outside": True}, warnings=warnings)


def _told(fetched: Fetched, feed: Feed, *, limit: int) -> Result[Any]:
    shown = len(feed.entries[:limit])
    return answered(
        _text(fetched, feed, limit),
        data={"url": fetched.url, "entries": shown, "more": len(feed.entries) - shown, "from_outside": True},
    )


def _text(fetched: Fetched, feed: Feed, limit: int) -> str:
    lines = [feed.title, *(line for entry in feed.entries[:limit] for line in _lines(entry))]
    return quoted("\n".join(lines if feed.entries else [*lines, "(no entries)"]), source=fetched.url)


def _lines(entry: Entry) -> list[str]:
    head = " | ".join(part for part in (entry.title, entry.published, entry.author, entry.link) if part)
    return [f"* {head}", *([f"  {entry.summary}"] if entry.summary else [])]

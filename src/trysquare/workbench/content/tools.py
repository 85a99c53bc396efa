"""The content tools, as the workbench's door adds them to its own."""

from __future__ import annotations

from trysquare.core.tool import Tool
from trysquare.store.lazy import Transactions
from trysquare.workbench.content.blog_notion import blog_notion_tool
from trysquare.workbench.content.calendar import calendar_tool
from trysquare.workbench.content.config import ContentConfig
from trysquare.workbench.content.rss_feed import rss_feed_tool
from trysquare.workbench.content.static_links import static_links_tool


def content_tools(config: ContentConfig, *, state: Transactions) -> tuple[Tool, ...]:
    """Every content tool; `state` remembers what was published. Nothing is reached before a call."""
    return (
        rss_feed_tool(config),
        static_links_tool(config.links),
        calendar_tool(config.calendar),
        blog_notion_tool(config.notion, state=state),
    )

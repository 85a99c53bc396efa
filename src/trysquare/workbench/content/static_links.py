"""static_links: the links that belong under every text, from the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.workbench.answers import answered
from trysquare.workbench.content.config import LinkConfig

_SETTINGS = {
    "get_social": "content.social_links",
    "get_custom": "content.custom_links",
    "get_youtube_placeholder": "content.youtube_placeholder",
    "get_all": "content.social_links, content.custom_links and content.youtube_placeholder",
}


class StaticLinks(ToolArguments):
    """Which links."""

    action: Annotated[
        Literal["get_all", "get_social", "get_custom", "get_youtube_placeholder"], Field(description="Which links")
    ]


def static_links_tool(config: LinkConfig) -> Tool:
    """The tool that knows the links."""

    def static_links(args: StaticLinks) -> Result[Any]:
        """Give the links that belong under a text."""
        parts = _parts(config)
        wanted = parts if args.action == "get_all" else {args.action: parts[args.action]}
        text = "\n\n".join(part for part in wanted.values() if part)
        if not text:
            raise ToolError(
                "No such links are configured.",
                code=ErrorCode.CONFIG_NOT_FOUND,
                instruction=f"Go on without them, or tell the person to set {_SETTINGS[args.action]}.",
            )
        return answered(text)

    return tool(
        static_links,
        category="research",
        room="workbench",
        read_only=True,
        idempotent=True,
        open_world=False,
        result_limit=None,
        use_when="a newsletter or show notes end with the author's links",
        avoid_when="the text carries no links",
        limits="What is configured, nothing else",
        examples=(Example(arguments={"action": "get_social"}, explanation="Where the author can be found."),),
        trigger_words=("links", "social", "youtube"),
    )


def _parts(config: LinkConfig) -> dict[str, str]:
    return {
        "get_social": _list("Social", config.social),
        "get_custom": _list("Links", config.custom),
        "get_youtube_placeholder": config.youtube_placeholder or "",
    }


def _list(title: str, links: Mapping[str, str]) -> str:
    return "\n".join([f"## {title}", *(f"- [{name}]({url})" for name, url in links.items())]) if links else ""

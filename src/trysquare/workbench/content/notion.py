"""Notion: the requests of its API that publish a page, all of it or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.workbench.content.api import Api, ServiceLost
from trysquare.workbench.content.config import NotionConfig
from trysquare.workbench.content.notion_blocks import MAX_TEXT, Block, batches, pieces

VERSION = "2025-09-03"
"""The version of the API that the requests are written for."""
MAX_TAGS = 100
MAX_TAG = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page that was made."""

    id: str
    url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """The properties of a place for pages that we fill: what its title is called, and its tags, if it has some."""

    title: str = "title"
    tags: str | None = None


class Notion:
    """One workspace of Notion, through one integration."""

    def __init__(self, config: NotionConfig) -> None:
        self._config = config
        self._api = Api(service="Notion", url=config.url, token_setting="content.notion_token")

    async def shape(self) -> Shape:
        """What pages of the configured place look like. Below a page they have a title and nothing else."""
        self._require_configured()
        if self._config.data_source is None:
            return Shape()
        source = await self._send("GET", f"/v1/data_sources/{quote(self._config.data_source, safe='')}")
        properties = cast(dict[str, JsonObject], source.get("properties") or {})
        titles = [name for name, each in properties.items() if each.get("type") == "title"]
        tags = [name for name, each in properties.items() if each.get("type") == "multi_select"]
        named = next((name for name in tags if name.lower() == "tags"), None)
        return Shape(title=titles[0] if titles else "title", tags=named)

    async def publish(self, title: str, blocks: Sequence[Block], *, shape: Shape, tags: Sequence[str]) -> Page:
        """Make the page with all its blocks. If a part cannot be added, what was made goes to the trash."""
        first, *rest = batches(blocks)
        made = await self._send("POST", "/v1/pages", self._new_page(title, first, shape, tags))
        page = Page(id=str(made.get("id")), url=str(made.get("url")))
        try:
            for batch in rest:
                await self._send("PATCH", f"/v1/blocks/{quote(page.id, safe='')}/children", {"children": batch})
        except ToolError as error:
            raise await self._taken_back(page, error) from error
        return page

    async def check(self) -> None:
        """Ask Notion who we are; raises what is wrong."""
        self._require_configured()
        await self._send("GET", "/v1/users/me")

    def _new_page(self, title: str, children: Sequence[Block], shape: Shape, tags: Sequence[str]) -> JsonObject:
        texts = [{"type": "text", "text": {"content": piece}} for piece in pieces(title, MAX_TEXT)]
        properties: JsonObject = {shape.title: {"title": texts}}
        if shape.tags and tags:
            properties[shape.tags] = {"multi_select": [{"name": tag} for tag in tags]}
        return {"parent": self._parent(), "properties": properties, "children": list(children)}

    def _parent(self) -> JsonObject:
        if self._config.data_source is not None:
            return {"type": "data_source_id", "data_source_id": self._config.data_source}
        return {"type": "page_id", "page_id": self._config.page}

    async def _taken_back(self, page: Page, cause: ToolError) -> ToolError:
        """Put a page that is not whole into the trash, and say how it stands."""
        try:
            await self._send("PATCH", f"/v1/pages/{quote(page.id, safe='')}", {"in_trash": True})
        except ToolError:
            return ServiceLost(
                f"The page {page.url} was made, but not all of it: {cause.message}",
                instruction="Tell the person to look at the page, and to remove it before it is published again.",
            )
        return ToolError(
            f"Nothing is published: {cause.message} The page that was begun is in Notion's trash.",
            code=cause.code,
            instruction=cause.instruction,
        )

    async def _send(self, method: str, path: str, body: JsonObject | None = None) -> JsonObject:
        headers: dict[str, Any] = {"Authorization": f"Bearer {self._config.token}", "Notion-Version": VERSION}
        return await self._api.send(method, path, headers=headers, body=body)

    def _require_configured(self) -> None:
        if not self._config.is_set:
            raise ToolError(
                "Notion is not configured.",
                code=ErrorCode.CONFIG_NOT_FOUND,
                instruction="Go on without it, or tell the person to set content.notion_token and one of "
                "content.notion_page and content.notion_data_source.",
            )


def tag_names(tags: Sequence[str]) -> list[str]:
    """Tags as Notion takes them: no commas, not longer than it allows, each once."""
    names = (" ".join(tag.replace(",", " ").split())[:MAX_TAG].strip() for tag in tags)
    return list(dict.fromkeys(name for name in names if name))[:MAX_TAGS]

"""Access: whether a principal may use a tool. A token can be narrowed to some rooms."""

from __future__ import annotations

from trysquare.catalog.profiles import CATALOG_ROOM
from trysquare.core.context import Principal
from trysquare.core.tool import Tool


def may_use(principal: Principal, tool: Tool) -> bool:
    """Whether the principal's scopes hold the tool's room. Searching is open to all: it shows what may be used."""
    scopes, room = principal.scopes, tool.metadata.room
    return scopes is None or room in scopes or room == CATALOG_ROOM

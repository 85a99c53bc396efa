"""Requests about skills: which there are, and one of them. Their files are ordinary resources (SEP-2640)."""

from __future__ import annotations

from typing import Final

import mcp_types as types

from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.resource import Resource
from trysquare.core.types import JsonObject
from trysquare.serve.contexts import principal_of
from trysquare.serve.eras import Request
from trysquare.serve.listings import page_of, page_to_wire
from trysquare.serve.options import ServeOptions
from trysquare.serve.resource_requests import ResourceRequests
from trysquare.wire.results import COMPLETE
from trysquare.wire.skills import skill_to_wire

EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILLS_LIST: Final = "skills/list"
SKILLS_GET: Final = "skills/get"


class GetSkillParams(types.RequestParams):
    """Which skill is asked for."""

    uri: str


class SkillRequests:
    """Answers what clients ask about skills."""

    def __init__(self, resources: ResourceRequests, options: ServeOptions) -> None:
        self._resources = resources
        self._options = options

    async def list(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`skills/list`."""
        skills = sorted((each for each in self._resources.visible() if each.skill is not None), key=_uri)
        page, following = page_of(skills, key=_uri, cursor=params.cursor, size=self._options.page_size)
        listed = page_to_wire("skills", [skill_to_wire(each) for each in page], following, principal_of(self._options))
        return {"ttlMs": self._options.list_ttl_ms, "cacheScope": "public", **listed}

    async def get(self, request: Request, params: GetSkillParams) -> JsonObject:
        """`skills/get`."""
        found = next((each for each in self._resources.visible() if each.uri == params.uri), None)
        if found is None or found.skill is None:
            raise NotFound(
                f"There is no skill at `{params.uri[:200]}`.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                fields={"uri": params.uri[:200]},
            )
        return {
            "resultType": COMPLETE,
            "ttlMs": self._options.list_ttl_ms,
            "cacheScope": "private",
            "skill": skill_to_wire(found),
        }


def _uri(resource: Resource) -> str:
    return resource.uri

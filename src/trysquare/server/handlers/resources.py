"""Resources/*, skills/*."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import mcp_types as types

from trysquare.core.call import direct_calls
from trysquare.core.errors import ErrorCode, InputRequired, NotFound
from trysquare.core.json import JsonObject
from trysquare.core.resources import Resource, ResourceTemplate
from trysquare.core.toolset import Toolset
from trysquare.server._sdk import connection_of
from trysquare.server.caller import McpCaller, bounded, call_context, principal_of
from trysquare.server.convert import COMPLETE, reading_to_wire, resource_to_wire, skill_to_wire, template_to_wire
from trysquare.server.handlers.base import list_page, questions_to_wire
from trysquare.server.notifications import SUBSCRIBED
from trysquare.server.options import ServeOptions
from trysquare.server.protocol import Request

RESOURCES_SCOPE = "resources"
"""The scope that a scoped token needs for resources, which belong to no toolset."""


class ResourceHandlers:
    """Answers what clients ask about resources."""

    def __init__(self, toolset: Toolset, options: ServeOptions) -> None:
        self._toolset = toolset
        self._options = options
        self._direct = options.direct or direct_calls(toolset)

    def visible(self) -> Sequence[Resource]:
        """The resources that whoever asks may see."""
        return self._toolset.resources() if self._allowed() else ()

    async def list(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`resources/list`."""
        options, cursor = self._options, params.cursor
        return list_page("resources", self.visible(), resource_to_wire, key=_uri, cursor=cursor, options=options)

    async def list_templates(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`resources/templates/list`."""
        visible, options, cursor = self._toolset.templates() if self._allowed() else (), self._options, params.cursor
        return list_page("resourceTemplates", visible, template_to_wire, key=_form, cursor=cursor, options=options)

    async def read(self, request: Request, params: types.ReadResourceRequestParams) -> JsonObject:
        """`resources/read`."""
        caller = McpCaller(request)
        context = call_context(caller, self._options, self._direct)
        uri = str(params.uri)
        try:
            resource = self.find(uri)
            reading = resource.read(uri, {}, context)
            return reading_to_wire(await bounded(f"Resource {uri[:200]}", reading, context))
        except InputRequired:
            return questions_to_wire(caller)

    def find(self, uri: str) -> Resource:
        """The resource at an address, or an error."""
        resource = self._toolset.find_resource(uri) if self._allowed() else None
        if resource is None:
            raise NotFound(
                f"There is no resource at `{uri[:200]}`.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                fields={"uri": uri},
                instruction="Use an address from the list of resources, or one of the form of a template.",
            )
        return resource

    async def subscribe(self, request: Request, params: types.SubscribeRequestParams) -> JsonObject:
        """`resources/subscribe` (2025-11-25): notify this connection of changes of the resource."""
        connection_of(request).state.setdefault(SUBSCRIBED, set()).add(str(params.uri))
        self.follow([str(params.uri)])
        return {}

    async def listen(
        self, request: Request, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """`subscriptions/listen` (2026-07-28): notify the client while the stream is open."""
        self.follow(params.notifications.resource_subscriptions or ())
        return await request.lifespan_context.listen(request, params)

    def follow(self, uris: Iterable[str]) -> None:
        """Have the sources of these resources tell when they change."""
        for uri in uris:
            resource = self._toolset.find_resource(uri) if self._allowed() else None
            if resource is not None and resource.follow is not None:
                resource.follow()

    async def unsubscribe(self, request: Request, params: types.UnsubscribeRequestParams) -> JsonObject:
        """`resources/unsubscribe` of the session protocol (2025-11-25)."""
        connection_of(request).state.setdefault(SUBSCRIBED, set()).discard(str(params.uri))
        return {}

    def _allowed(self) -> bool:
        return principal_of(self._options).may_use(RESOURCES_SCOPE)


def _uri(resource: Resource) -> str:
    return resource.uri


def _form(template: ResourceTemplate) -> str:
    return template.uri_template


EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILLS_LIST: Final = "skills/list"
SKILLS_GET: Final = "skills/get"


class GetSkillParams(types.RequestParams):
    """Which skill is asked for."""

    uri: str


class SkillHandlers:
    """Answers what clients ask about skills."""

    def __init__(self, resources: ResourceHandlers, options: ServeOptions) -> None:
        self._resources = resources
        self._options = options

    async def list(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`skills/list`."""
        skills = sorted((each for each in self._resources.visible() if each.skill is not None), key=_uri)
        listed = list_page("skills", skills, skill_to_wire, key=_uri, cursor=params.cursor, options=self._options)
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

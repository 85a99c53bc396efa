"""Requests about resources: their list, their templates, reading them, and following one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import mcp_types as types

from trysquare.core.call import direct_calls
from trysquare.core.errors import ErrorCode, InputRequired, NotFound
from trysquare.core.resource import Resource, ResourceTemplate
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject
from trysquare.serve.contexts import bounded, call_context, principal_of
from trysquare.serve.eras import Request, connection_of
from trysquare.serve.listings import page_of, page_to_wire
from trysquare.serve.options import ServeOptions
from trysquare.serve.switchboard import SUBSCRIBED
from trysquare.serve.tool_requests import questions_to_wire
from trysquare.wire.resources import reading_to_wire, resource_to_wire, template_to_wire

RESOURCES_SCOPE = "resources"
"""The scope that a scoped token needs for resources, which belong to no room."""


class ResourceRequests:
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
        page, following = page_of(self.visible(), key=_uri, cursor=params.cursor, size=self._options.page_size)
        return page_to_wire(
            "resources", [resource_to_wire(resource) for resource in page], following, principal_of(self._options)
        )

    async def list_templates(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`resources/templates/list`."""
        visible = list(self._toolset.templates()) if self._allowed() else []
        page, following = page_of(visible, key=_form, cursor=params.cursor, size=self._options.page_size)
        return page_to_wire(
            "resourceTemplates",
            [template_to_wire(template) for template in page],
            following,
            principal_of(self._options),
        )

    async def read(self, request: Request, params: types.ReadResourceRequestParams) -> JsonObject:
        """`resources/read`."""
        context = call_context(request, self._options, self._direct)
        uri = str(params.uri)
        try:
            resource = self.find(uri)
            reading = resource.read(uri, {}, context)
            return reading_to_wire(await bounded(f"Resource {uri[:200]}", reading, context))
        except InputRequired:
            return questions_to_wire(context.caller)

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
        """`resources/subscribe` of the handshake era: tell this connection when the resource changes."""
        connection_of(request).state.setdefault(SUBSCRIBED, set()).add(str(params.uri))
        self.follow([str(params.uri)])
        return {}

    async def listen(
        self, request: Request, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """`subscriptions/listen` of the stateless era: tell what the client names for as long as the stream is open."""
        self.follow(params.notifications.resource_subscriptions or ())
        return await request.lifespan_context.listen(request, params)

    def follow(self, uris: Iterable[str]) -> None:
        """Have the sources of these resources tell when they change."""
        for uri in uris:
            resource = self._toolset.find_resource(uri) if self._allowed() else None
            if resource is not None and resource.follow is not None:
                resource.follow()

    async def unsubscribe(self, request: Request, params: types.UnsubscribeRequestParams) -> JsonObject:
        """`resources/unsubscribe` of the handshake era."""
        connection_of(request).state.setdefault(SUBSCRIBED, set()).discard(str(params.uri))
        return {}

    def _allowed(self) -> bool:
        return principal_of(self._options).may_use(RESOURCES_SCOPE)


def _uri(resource: Resource) -> str:
    return resource.uri


def _form(template: ResourceTemplate) -> str:
    return template.uri_template

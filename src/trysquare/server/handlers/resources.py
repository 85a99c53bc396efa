"""Handlers of `resources/*`, `skills/*` and `subscriptions/listen`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trysquare.core.apps import APPROVAL_PAGE, approval_resource
from trysquare.core.call import direct_calls, get_resource
from trysquare.core.context import Principal
from trysquare.core.errors import ErrorCode, InputRequired, NotFound
from trysquare.core.json import JsonObject
from trysquare.core.resources import RESOURCES_SCOPE, Resource, ResourceTemplate
from trysquare.core.toolset import Toolset
from trysquare.protocol.methods import ListenParams, ListParams, ReadResourceParams, UriParams
from trysquare.server.caller import McpCaller, Request, bounded, call_context
from trysquare.server.convert import COMPLETE, reading_to_wire, resource_to_wire, skill_to_wire, template_to_wire
from trysquare.server.handlers.base import list_page, questions_to_wire
from trysquare.server.handlers.tasks import TaskHandlers
from trysquare.server.notifications import NotificationHub
from trysquare.server.options import ServeOptions


class ResourceHandlers:
    """Answers what clients ask about resources, and sends what they subscribe to."""

    def __init__(
        self, toolset: Toolset, options: ServeOptions, hub: NotificationHub, tasks: TaskHandlers | None
    ) -> None:
        self._toolset = toolset
        self._tasks = tasks
        self._options = options
        self._direct = options.direct or direct_calls(toolset)
        self._hub = hub

    def visible(self, principal: Principal) -> Sequence[Resource]:
        """The resources that a principal may see."""
        return self._toolset.resources() if principal.may_use(RESOURCES_SCOPE) else ()

    async def list(self, request: Request) -> JsonObject:
        """`resources/list`."""
        params: ListParams = request.params
        resources, size = self.visible(request.principal), self._options.page_size
        return list_page("resources", resources, resource_to_wire, key=_uri, cursor=params.cursor, size=size)

    async def list_templates(self, request: Request) -> JsonObject:
        """`resources/templates/list`."""
        params: ListParams = request.params
        templates = self._toolset.templates() if request.principal.may_use(RESOURCES_SCOPE) else ()
        size = self._options.page_size
        return list_page("resourceTemplates", templates, template_to_wire, key=_form, cursor=params.cursor, size=size)

    async def read(self, request: Request) -> JsonObject:
        """`resources/read`."""
        params: ReadResourceParams = request.params
        caller = McpCaller(request)
        context = call_context(caller, self._options, self._direct)
        try:
            found = self._page(params.uri) or get_resource(self._toolset, params.uri, request.principal)
            reading = found.read(params.uri, {}, context)
            return reading_to_wire(await bounded(f"Resource {params.uri[:200]}", reading, context))
        except InputRequired:
            return questions_to_wire(caller)

    async def subscribe(self, request: Request) -> JsonObject:
        """`resources/subscribe` (2025-11-25): notify this session of changes of the resource."""
        params: UriParams = request.params
        if request.session is not None:
            request.session.subscribed.add(params.uri)
        self._follow([params.uri], request.principal)
        return {}

    async def unsubscribe(self, request: Request) -> JsonObject:
        """`resources/unsubscribe` (2025-11-25)."""
        params: UriParams = request.params
        if request.session is not None:
            request.session.subscribed.discard(params.uri)
        return {}

    async def listen(self, request: Request) -> JsonObject:
        """`subscriptions/listen` (2026-07-28): notify the client while the request is open."""
        params: ListenParams = request.params
        self._follow(params.notifications.resource_subscriptions or (), request.principal)
        wanted = params.notifications.task_ids
        follow = None if self._tasks is None or not wanted else await self._tasks.following(request, wanted)
        return await self._hub.listen(request, params.notifications, follow)

    def _page(self, uri: str) -> Resource | None:
        """Our own page of tools that need consent, which belongs to no toolset and holds nothing to protect."""
        return approval_resource() if uri == APPROVAL_PAGE else None

    def _find(self, uri: str, principal: Principal) -> Resource | None:
        return self._toolset.find_resource(uri) if principal.may_use(RESOURCES_SCOPE) else None

    def _follow(self, uris: Iterable[str], principal: Principal) -> None:
        """Have the sources of these resources report changes."""
        for uri in uris:
            resource = self._find(uri, principal)
            if resource is not None and resource.follow is not None:
                resource.follow()


def _uri(resource: Resource) -> str:
    return resource.uri


def _form(template: ResourceTemplate) -> str:
    return template.uri_template


class SkillHandlers:
    """Answers what clients ask about skills (SEP-2640)."""

    def __init__(self, resources: ResourceHandlers, options: ServeOptions) -> None:
        self._resources = resources
        self._options = options

    async def list(self, request: Request) -> JsonObject:
        """`skills/list`."""
        params: ListParams = request.params
        skills = [each for each in self._resources.visible(request.principal) if each.skill is not None]
        skills.sort(key=_uri)
        size = self._options.page_size
        return list_page("skills", skills, skill_to_wire, key=_uri, cursor=params.cursor, size=size)

    async def get(self, request: Request) -> JsonObject:
        """`skills/get`."""
        params: UriParams = request.params
        visible = self._resources.visible(request.principal)
        found = next((each for each in visible if each.uri == params.uri and each.skill is not None), None)
        if found is None:
            raise NotFound(
                f"There is no skill at `{params.uri[:200]}`.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                fields={"uri": params.uri[:200]},
            )
        return {"resultType": COMPLETE, "skill": skill_to_wire(found)}

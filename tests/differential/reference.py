"""The reference of the differential suite: the SDK's low-level server with tools of the same behavior as ours.

Built from the SDK alone. What the SDK leaves to the author of a server (checking arguments, unknown names, cursors, the
rounds of questions) follows the specification and the SDK's own high-level server.
"""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import anyio
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.differential import material
from tests.differential.material import Json

Context: TypeAlias = ServerRequestContext[Any, Any]
Result: TypeAlias = types.CallToolResult
Run: TypeAlias = Callable[["Request"], Awaitable[Result]]
T = TypeVar("T")
LEGACY_RESOURCE_NOT_FOUND = -32002
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class InputNeeded(Exception):
    """The client has to answer first, and call again."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("input needed")
        self.result = result


class Refused(Exception):
    """The tool ends with an error result."""


class Request:
    """One request of a client: its context and parameters, and the way to ask the client."""

    def __init__(self, reference: Reference, context: Context, params: Any) -> None:
        self.reference = reference
        self.context = context
        self.params = params
        self.is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def arguments(self) -> Json:
        return self.params.arguments or {}

    async def ask(self, **requests: types.InputRequest) -> dict[str, Json]:
        """The client's answers by key; each request is answered at most once per call."""
        for request in requests.values():
            self._require_capability(request)
        if not self.is_modern:
            return {key: await self._send(request) for key, request in requests.items()}
        state: Json = json.loads(self.params.request_state or '{"asked":[],"answers":{}}')
        given = {key: _dumped(answer) for key, answer in (self.params.input_responses or {}).items()}
        answers = state["answers"] | {key: given[key] for key in state["asked"] if key in given}
        missing = {key: request for key, request in requests.items() if key not in answers}
        if missing:
            kept = json.dumps({"asked": list(missing), "answers": answers})
            raise InputNeeded(types.InputRequiredResult(input_requests=missing, request_state=kept))
        return {key: answers[key] for key in requests}

    async def name(self) -> Json:
        """The answer to the question for a name."""
        return (await self.ask(name=form(material.NAME_QUESTION, material.NAME_FORM)))["name"]

    async def _send(self, request: types.InputRequest) -> Json:
        kinds: dict[str, type[types.Result]] = {
            "elicitation/create": types.ElicitResult,
            "sampling/createMessage": types.CreateMessageResult,
            "roots/list": types.ListRootsResult,
        }
        related = ServerMessageMetadata(related_request_id=self.context.request_id)
        try:
            answer = await self.context.session.send_request(request, kinds[request.method], metadata=related)
        except (MCPError, ValueError) as error:
            raise Refused(f"The client did not answer: {error}") from error
        return _dumped(answer)

    def _require_capability(self, request: types.InputRequest) -> None:
        offered = self.context.session.client_capabilities
        needed = _needed_capability(request)
        can_ask = self.is_modern or self.context.session.can_send_request
        if can_ask and offered is not None and _offers(offered, needed):
            return
        if self.is_modern:
            data = {"requiredCapabilities": needed.model_dump(by_alias=True, exclude_none=True)}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "The client lacks a capability.", data)
        raise Refused("The client lacks a capability.")


def _dumped(model: Any) -> Json:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _needed_capability(request: types.InputRequest) -> types.ClientCapabilities:
    if isinstance(request, types.CreateMessageRequest):
        return types.ClientCapabilities(sampling=types.SamplingCapability())
    if isinstance(request, types.ListRootsRequest):
        return types.ClientCapabilities(roots=types.RootsCapability())
    if isinstance(request.params, types.ElicitRequestURLParams):
        return types.ClientCapabilities(elicitation=types.ElicitationCapability(url=types.UrlElicitationCapability()))
    return types.ClientCapabilities(elicitation=types.ElicitationCapability())


def _offers(offered: types.ClientCapabilities, needed: types.ClientCapabilities) -> bool:
    if needed.sampling is not None:
        return offered.sampling is not None
    if needed.roots is not None:
        return offered.roots is not None
    if offered.elicitation is None or needed.elicitation is None:
        return False
    if needed.elicitation.url is not None:
        return offered.elicitation.url is not None
    # A capability without modes means forms.
    return offered.elicitation.form is not None or offered.elicitation.url is None


def form(message: str, schema: Json) -> types.ElicitRequest:
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def page(identifier: str | None) -> types.ElicitRequest:
    params = types.ElicitRequestURLParams(message=material.PAGE_QUESTION, url=material.PAGE, elicitation_id=identifier)
    return types.ElicitRequest(params=params)


def completion() -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=material.MODEL_PROMPT))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=material.MODEL_TOKENS)
    )


def text(words: str) -> Result:
    return Result(content=[types.TextContent(text=words)])


def blocks(*content: types.ContentBlock) -> Result:
    return Result(content=list(content))


def structured(data: Json) -> Result:
    written = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return Result(content=[types.TextContent(text=written)], structured_content=data)


IMAGE = types.ImageContent(data=material.PICTURE, mime_type="image/png")
AUDIO = types.AudioContent(data=material.SOUND, mime_type="audio/wav")
EMBEDDED = types.EmbeddedResource(
    resource=types.TextResourceContents(uri=material.EMBEDDED_URI, mime_type="text/plain", text=material.TEXT)
)
EMBEDDED_BLOB = types.EmbeddedResource(
    resource=types.BlobResourceContents(
        uri=material.EMBEDDED_URI, mime_type="application/octet-stream", blob=material.BLOB
    )
)
LINK = types.ResourceLink(uri=material.LINK_URI, name="linked", mime_type="text/plain", description="A linked text")


def constant(result: Result) -> Run:
    async def run(request: Request) -> Result:
        return result

    return run


async def echo(request: Request) -> Result:
    return text(request.arguments["words"])


async def add(request: Request) -> Result:
    return structured({"sum": request.arguments["a"] + request.arguments.get("b", 2)})


async def route(request: Request) -> Result:
    return text(request.arguments["region"])


async def refused(request: Request) -> Result:
    raise Refused(material.REFUSAL)


async def crashing(request: Request) -> Result:
    raise RuntimeError("a fault of the tool")


async def steps(request: Request) -> Result:
    for number in material.STEPS:
        await request.context.session.report_progress(number, len(material.STEPS), f"step {number}")
    return text("Done with the steps.")


async def lines(request: Request) -> Result:
    lowest = request.reference.log_level(request.context)
    session, request_id = request.context.session, request.context.request_id
    for level, line in material.LINES:
        if LEVELS.index(level) >= LEVELS.index(lowest):
            with warnings.catch_warnings(category=MCPDeprecationWarning, action="ignore"):
                await session.send_log_message(  # pyright: ignore[reportDeprecated]
                    level, line, "reference", related_request_id=request_id
                )
    return text("Done with the lines.")


async def ask_form(request: Request) -> Result:
    answer = await request.name()
    return text(f"{answer['action']}: {answer.get('content', {}).get('name')}")


async def ask_page(request: Request) -> Result:
    identifier = None if request.is_modern else material.PAGE_ID
    return text((await request.ask(page=page(identifier)))["page"]["action"])


async def ask_model(request: Request) -> Result:
    return text((await request.ask(capital=completion()))["capital"]["content"]["text"])


async def ask_roots(request: Request) -> Result:
    found = (await request.ask(roots=types.ListRootsRequest()))["roots"]["roots"]
    return text(", ".join(root["uri"] for root in found))


async def ask_several(request: Request) -> Result:
    answers = await request.ask(
        name=form(material.NAME_QUESTION, material.NAME_FORM), capital=completion(), roots=types.ListRootsRequest()
    )
    name, capital = answers["name"]["content"]["name"], answers["capital"]["content"]["text"]
    return text(f"{name}, {capital}, {answers['roots']['roots'][0]['uri']}")


async def ask_twice(request: Request) -> Result:
    name = await request.name()
    color = (await request.ask(color=form(material.COLOR_QUESTION, material.COLOR_FORM)))["color"]
    return text(f"{name.get('content', {}).get('name')} likes {color.get('content', {}).get('color')}.")


async def linger(request: Request) -> Result:
    try:
        await request.context.session.report_progress(1, 2)
        await anyio.sleep_forever()
    finally:
        request.reference.cancelled.release()
    return text("never")


async def await_cancelled(request: Request) -> Result:
    await request.reference.cancelled.acquire()
    return text("cancelled")


async def touch(request: Request) -> Result:
    reference = request.reference
    if material.WATCHED_URI in reference.subscribed.get(reference.client(request.context), set()):
        await request.context.session.send_resource_updated(material.WATCHED_URI)
    await reference.bus.publish(ResourceUpdated(uri=material.WATCHED_URI))
    return text("touched")


def change(kind: str, event: Callable[[], ServerEvent]) -> Run:
    async def run(request: Request) -> Result:
        reference, session = request.reference, request.context.session
        reference.changed ^= {kind}
        if not request.is_modern:
            senders = {
                "tools": session.send_tool_list_changed,
                "prompts": session.send_prompt_list_changed,
                "resources": session.send_resource_list_changed,
            }
            await senders[kind]()
        await reference.bus.publish(event())
        return text("changed")

    return run


STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def schema(*required: str, **properties: Json) -> Json:
    found: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": list(required)} if required else found


NOTHING = schema()
TOOLS: Mapping[str, tuple[Json, Run]] = {
    "plain": (NOTHING, constant(text(material.GREETING))),
    "picture": (NOTHING, constant(blocks(IMAGE))),
    "sound": (NOTHING, constant(blocks(AUDIO))),
    "embedded": (NOTHING, constant(blocks(EMBEDDED))),
    "embedded_blob": (NOTHING, constant(blocks(EMBEDDED_BLOB))),
    "linked": (NOTHING, constant(blocks(LINK))),
    "mixed": (NOTHING, constant(blocks(types.TextContent(text=material.GREETING), IMAGE, AUDIO, EMBEDDED))),
    "structured": (NOTHING, constant(structured(material.DATA))),
    "echo": (schema("words", words=STRING), echo),
    "add": (schema("a", a=INTEGER, b={**INTEGER, "default": 2}), add),
    "route": (schema("region", region={**STRING, "x-mcp-header": "Region"}), route),
    "refused": (NOTHING, refused),
    "crashing": (NOTHING, crashing),
    "steps": (NOTHING, steps),
    "lines": (NOTHING, lines),
    "ask_form": (NOTHING, ask_form),
    "ask_page": (NOTHING, ask_page),
    "ask_model": (NOTHING, ask_model),
    "ask_roots": (NOTHING, ask_roots),
    "ask_several": (NOTHING, ask_several),
    "ask_twice": (NOTHING, ask_twice),
    "linger": (NOTHING, linger),
    "await_cancelled": (NOTHING, await_cancelled),
    "touch": (NOTHING, touch),
    "change_tools": (NOTHING, change("tools", ToolsListChanged)),
    "change_prompts": (NOTHING, change("prompts", PromptsListChanged)),
    "change_resources": (NOTHING, change("resources", ResourcesListChanged)),
}
EXTRA_TOOLS: Mapping[str, tuple[Json, Run]] = {"extra": (NOTHING, constant(text("extra")))}


def said(words: str) -> list[types.PromptMessage]:
    return [types.PromptMessage(role="user", content=types.TextContent(text=words))]


async def greeting(request: Request) -> list[types.PromptMessage]:
    return said(f"Greet {request.arguments['name']} in a {request.arguments.get('tone', 'warm')} tone.")


async def pictured(request: Request) -> list[types.PromptMessage]:
    return [
        types.PromptMessage(role="user", content=IMAGE),
        types.PromptMessage(role="user", content=EMBEDDED),
        types.PromptMessage(role="assistant", content=types.TextContent(text=material.GREETING)),
    ]


async def asking(request: Request) -> list[types.PromptMessage]:
    return said(material.named((await request.name()).get("content", {}).get("name")))


async def failing(request: Request) -> list[types.PromptMessage]:
    raise RuntimeError("a fault of the prompt")


def saying(words: str) -> Callable[[Request], Awaitable[list[types.PromptMessage]]]:
    async def run(request: Request) -> list[types.PromptMessage]:
        return said(words)

    return run


ARGUMENTS = [
    types.PromptArgument(name="name", description="Who is greeted", required=True),
    types.PromptArgument(name="tone", description="How the greeting sounds", required=False),
]
PROMPTS = {
    "simple": ([], saying(material.GREETING)),
    "greeting": (ARGUMENTS, greeting),
    "pictured": ([], pictured),
    "asking": ([], asking),
    "failing": ([], failing),
}
EXTRA_PROMPTS = {"extra_prompt": ([], saying("extra"))}
TEXT, BYTES = "text/plain", "application/octet-stream"
RESOURCES = {
    material.TEXT_URI: ("text_resource", TEXT),
    material.BLOB_URI: ("blob_resource", BYTES),
    material.WATCHED_URI: ("watched_resource", TEXT),
    material.CRASHING_URI: ("crashing_resource", TEXT),
    material.ASKING_URI: ("asking_resource", TEXT),
}
EXTRA_RESOURCES = {material.ADDED_URI: ("added", TEXT)}


class ReferenceServer(Server[Any]):
    """The SDK's server, which declares that its lists change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(changing, experimental_capabilities, extensions)


class Reference:
    """The state and the handlers of one reference server."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.cancelled = anyio.Semaphore(0)
        self.changed: set[str] = set()
        self.subscribed: dict[str | None, set[str]] = {}
        self._levels: dict[str | None, str] = {}

    def client(self, context: Context) -> str | None:
        """Which client a request is from: the HTTP session, or "" for the pipe; None where nothing is remembered."""
        return "" if context.request is None else context.request.headers.get("mcp-session-id")

    def log_level(self, context: Context) -> str:
        """The lowest level that a client of the session protocol wants. The SDK itself filters for 2026-07-28."""
        return self._levels.get(self.client(context), "debug")

    def tools(self) -> dict[str, tuple[Json, Run]]:
        return {**TOOLS, **(EXTRA_TOOLS if "tools" in self.changed else {})}

    def prompts(self) -> dict[str, Any]:
        return {**PROMPTS, **(EXTRA_PROMPTS if "prompts" in self.changed else {})}

    def resources(self) -> dict[str, tuple[str, str]]:
        return {**RESOURCES, **(EXTRA_RESOURCES if "resources" in self.changed else {})}

    async def list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        listed = [types.Tool(name=name, description=name, input_schema=one[0]) for name, one in self.tools().items()]
        page, following = paged(listed, params)
        return types.ListToolsResult(tools=page, next_cursor=following)

    async def call_tool(self, context: Context, params: Any) -> Result | types.InputRequiredResult:
        found = self.tools().get(params.name)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        request = Request(self, context, params)
        try:
            check_arguments(found[0], request.arguments)
            return await found[1](request)
        except Refused as error:
            return Result(content=[types.TextContent(text=str(error))], is_error=True)
        except InputNeeded as needed:
            return needed.result

    async def list_prompts(self, context: Context, params: Any) -> types.ListPromptsResult:
        listed = [
            types.Prompt(name=name, description=name, arguments=one[0] or None) for name, one in self.prompts().items()
        ]
        page, following = paged(listed, params)
        return types.ListPromptsResult(prompts=page, next_cursor=following)

    async def get_prompt(self, context: Context, params: Any) -> types.GetPromptResult | types.InputRequiredResult:
        found = self.prompts().get(params.name)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        given = params.arguments or {}
        known = {argument.name for argument in found[0]}
        if any(argument.required and argument.name not in given for argument in found[0]) or given.keys() - known:
            raise MCPError(types.INVALID_PARAMS, "The arguments do not fit the prompt.")
        try:
            messages = await found[1](Request(self, context, params))
        except Refused as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        except InputNeeded as needed:
            return needed.result
        return types.GetPromptResult(description=params.name, messages=messages)

    async def list_resources(self, context: Context, params: Any) -> types.ListResourcesResult:
        listed = [
            types.Resource(uri=uri, name=name, mime_type=kind, description=name if uri in RESOURCES else None)
            for uri, (name, kind) in self.resources().items()
        ]
        page, following = paged(listed, params)
        return types.ListResourcesResult(resources=page, next_cursor=following)

    async def list_templates(self, context: Context, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=material.TEMPLATE, name="item_resource", mime_type=TEXT, description="item_resource"
        )
        page, following = paged([template], params)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=following)

    async def read_resource(
        self, context: Context, params: Any
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        uri = str(params.uri)
        if uri == material.BLOB_URI:
            blob = types.BlobResourceContents(uri=uri, mime_type=BYTES, blob=material.BLOB)
            return types.ReadResourceResult(contents=[blob])
        try:
            words = await self._read_text(uri, Request(self, context, params))
        except Refused as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        except InputNeeded as needed:
            return needed.result
        contents = types.TextResourceContents(uri=uri, mime_type=TEXT, text=words)
        return types.ReadResourceResult(contents=[contents])

    async def _read_text(self, uri: str, request: Request) -> str:
        prefix = material.TEMPLATE.partition("{")[0]
        key = uri.removeprefix(prefix)
        if uri.startswith(prefix) and key and "/" not in key:
            return material.item(key)
        if uri not in self.resources():
            code = types.INVALID_PARAMS if request.is_modern else LEGACY_RESOURCE_NOT_FOUND
            raise MCPError(code, f"Unknown resource: {uri}", {"uri": uri})
        if uri == material.CRASHING_URI:
            raise RuntimeError("a fault of the resource")
        if uri == material.ASKING_URI:
            return material.named((await request.name()).get("content", {}).get("name"))
        return "extra" if uri == material.ADDED_URI else material.TEXT

    async def subscribe(self, context: Context, params: Any) -> types.EmptyResult:
        self.subscribed.setdefault(self.client(context), set()).add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: Any) -> types.EmptyResult:
        self.subscribed.setdefault(self.client(context), set()).discard(str(params.uri))
        return types.EmptyResult()

    async def complete(self, context: Context, params: Any) -> types.CompleteResult:
        if isinstance(params.ref, types.PromptReference):
            if params.ref.name not in self.prompts():
                raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.ref.name}")
            is_known = params.ref.name == "greeting"
        else:
            is_known = params.ref.uri == material.TEMPLATE
        known = material.COMPLETIONS if is_known else ()
        values = [value for value in known if value.startswith(params.argument.value)]
        found = types.Completion(values=values[:100], total=len(values), has_more=len(values) > 100)
        return types.CompleteResult(completion=found)

    async def set_level(self, context: Context, params: Any) -> types.EmptyResult:
        if (client := self.client(context)) is not None:
            self._levels[client] = params.level
        return types.EmptyResult()


def check_arguments(wanted: Json, given: Json) -> None:
    """Refuse arguments that do not fit, as an error result that a model can read."""
    kinds: dict[str, type] = {"string": str, "integer": int}
    properties: Mapping[str, Json] = wanted["properties"]
    unknown = given.keys() - properties.keys()
    missing = set(wanted.get("required", ())) - given.keys()
    wrong = [name for name in given.keys() & properties.keys() if not _is(given[name], kinds[properties[name]["type"]])]
    if unknown or missing or wrong:
        raise Refused(f"Invalid arguments: {sorted(unknown)} {sorted(missing)} {wrong}")


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def paged(listed: Sequence[T], params: Any) -> tuple[list[T], str | None]:
    """One page of a list, and the cursor of the next one."""
    start = 0 if params is None or params.cursor is None else _offset(params.cursor)
    end = start + material.PAGE_SIZE
    return list(listed[start:end]), _cursor(end) if end < len(listed) else None


def _cursor(offset: int) -> str:
    return base64.urlsafe_b64encode(f"offset-{offset}".encode()).decode()


def _offset(cursor: str) -> int:
    known = {_cursor(offset): offset for offset in range(0, 100, material.PAGE_SIZE)}
    if cursor not in known:
        raise MCPError(types.INVALID_PARAMS, "Invalid cursor")
    return known[cursor]


def cache_hints() -> dict[CacheableMethod, CacheHint]:
    shared = CacheHint(ttl_ms=material.LIST_TTL_MS, scope="public")
    lists: tuple[CacheableMethod, ...] = (
        "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list",
    )  # fmt: skip
    return {**dict.fromkeys(lists, shared), "resources/read": CacheHint(ttl_ms=0, scope="private")}


def reference_server() -> Server[Any]:
    """A fresh server with its own state."""
    reference = Reference()
    make = partial(ReferenceServer, "reference", version="1", cache_hints=cache_hints())
    with warnings.catch_warnings(category=MCPDeprecationWarning, action="ignore"):
        server = make(
            on_list_tools=reference.list_tools,
            on_call_tool=reference.call_tool,
            on_list_prompts=reference.list_prompts,
            on_get_prompt=reference.get_prompt,
            on_list_resources=reference.list_resources,
            on_list_resource_templates=reference.list_templates,
            on_read_resource=reference.read_resource,
            on_subscribe_resource=reference.subscribe,
            on_unsubscribe_resource=reference.unsubscribe,
            on_subscriptions_listen=ListenHandler(reference.bus),
            on_completion=reference.complete,
            on_set_logging_level=reference.set_level,
        )
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="reference"))
    return server

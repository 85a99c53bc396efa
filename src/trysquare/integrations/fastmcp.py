"""TrysquareProvider: a toolset as a provider of FastMCP 4."""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pydantic import AnyUrl, PrivateAttr, TypeAdapter, ValidationError

from trysquare.catalog import ProfileChoice
from trysquare.catalog.descriptions import compact_description, prompt_description
from trysquare.catalog.toolset import listed
from trysquare.core.approvals import Approvals
from trysquare.core.cache import Handles, MemoryHandles
from trysquare.core.call import call_tool, direct_calls, guard_crash
from trysquare.core.content import ResourceContents
from trysquare.core.context import (
    Answer,
    CallContext,
    Capability,
    ClientRequest,
    ElicitRequest,
    FastCall,
    LogLevel,
    Principal,
    local_principal,
)
from trysquare.core.errors import ErrorCode, InputRequired, NobodyToAsk, NotFound, ToolError
from trysquare.core.prompts import Prompt, PromptMessage
from trysquare.core.resources import Resource, ResourceTemplate
from trysquare.core.tool import Tool
from trysquare.core.toolset import Change, Toolset, open_lifespans
from trysquare.server.caller import ElicitationAnswers
from trysquare.server.convert import answer_from_wire, block_to_wire, request_to_wire, result_to_wire, tool_to_wire

try:
    import mcp_types
    from fastmcp.exceptions import NotFoundError, PromptError, ResourceError
    from fastmcp.prompts.base import InputRequiredPromptResult, Message, PromptArgument, PromptResult
    from fastmcp.prompts.base import Prompt as FastMcpPrompt
    from fastmcp.resources.base import InputRequiredResourceResult, ResourceContent, ResourceResult
    from fastmcp.resources.base import Resource as FastMcpResource
    from fastmcp.resources.template import ResourceTemplate as FastMcpTemplate
    from fastmcp.resources.template import expand_uri_template
    from fastmcp.server.context import Context
    from fastmcp.server.dependencies import get_access_token, get_context
    from fastmcp.server.providers import Provider
    from fastmcp.tools.base import InputRequiredToolResult, ToolResult
    from fastmcp.tools.base import Tool as FastMcpTool
    from fastmcp.utilities.versions import VersionSpec
    from mcp.server.session import ServerSession
    from mcp.shared.exceptions import MCPError
    from mcp.shared.message import ServerMessageMetadata
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
except ImportError as error:
    raise ImportError("TrysquareProvider needs FastMCP 4. Install it with: pip install 'trysquare[fastmcp]'") from error

T = TypeVar("T")

_BLOCK: TypeAdapter[mcp_types.ContentBlock] = TypeAdapter(mcp_types.ContentBlock)
_HTTP = ("sse", "streamable-http")
_MOST_SESSIONS = 256
_REQUEST: TypeAdapter[mcp_types.InputRequest] = TypeAdapter(mcp_types.InputRequest)
_RESULTS: Mapping[str, type[mcp_types.Result]] = {
    "elicitation": mcp_types.ElicitResult,
    "elicitation.url": mcp_types.ElicitResult,
    "sampling": mcp_types.CreateMessageResult,
    "roots": mcp_types.ListRootsResult,
}


class FastMcpCaller:
    """The client on the other side of FastMCP's context, in both protocol versions."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answers = _answers_so_far(context)

    @property
    def asks_by(self) -> str:
        """How a receipt says that a human was asked."""
        return "input_required" if is_stateless(self._context) else "elicitation"

    @property
    def waits(self) -> bool:
        """Whether this run of the call has asked for something that it did not get."""
        return bool(self._answers.open)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._context.report_progress(done, total, message)

    async def log(self, level: LogLevel, message: str) -> None:
        if self._context.request_context is not None:
            await self._context.log(message, level)

    def can_ask(self) -> bool:
        return self.offers("elicitation")

    def offers(self, capability: Capability) -> bool:
        """Whether the client said that it can do this."""
        if self._context.request_context is None:
            return False
        found: Any = self._context.session.client_capabilities
        for part in capability.split("."):
            found = getattr(found, part, None)
        return found is not None

    async def ask(self, question: ElicitRequest) -> Answer:
        if not self.can_ask():
            raise NobodyToAsk(question.message)
        return (await self.request((question,)))[question.key]

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        """Put all of them to the client; in 2026-07-28 it answers with its next call."""
        if is_stateless(self._context):
            return self._answers.take(requests)
        return {wanted.key: await self._put(wanted) for wanted in requests}

    def continue_with(self, used: str, fresh: str) -> None:
        self._answers.renew(used, fresh)

    async def _put(self, wanted: ClientRequest) -> Answer:
        request = _REQUEST.validate_python(request_to_wire(wanted))
        try:
            result = await self._context.session.send_request(
                request,
                _RESULTS[wanted.needs],
                metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
            )
        except (MCPError, ValidationError) as error:
            reason = error.message if isinstance(error, MCPError) else "its answer does not fit the protocol"
            raise ToolError(
                f"The client did not answer: {reason}",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction="Ask the user in the conversation instead.",
            ) from None
        return answer_from_wire(wanted, result.model_dump(by_alias=True, mode="json", exclude_none=True))

    def asking(self) -> mcp_types.InputRequiredResult:
        """The answer to this call that carries the open questions, and what is known already."""
        requests = {slot: _REQUEST.validate_python(wanted) for slot, wanted in self._answers.wire().items()}
        return mcp_types.InputRequiredResult(input_requests=requests, request_state=self._answers.state())


def active_context() -> Context | None:
    """FastMCP's context of the request that is being served; None at start-up and outside a server."""
    try:
        return get_context()
    except RuntimeError:
        return None


def is_stateless(context: Context) -> bool:
    """Whether the client speaks a protocol version in which a result asks it and it calls again."""
    request = context.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def _answers_so_far(context: Context) -> ElicitationAnswers:
    """What this call's client has answered in earlier rounds. FastMCP seals the state, so it proves what was asked."""
    if not is_stateless(context):
        return ElicitationAnswers(None, None)
    responses = {
        slot: answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        for slot, answer in (context.input_responses or {}).items()
    }
    return ElicitationAnswers(context.request_state, responses)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where provided components come from and what their calls share."""

    toolset: Toolset
    handles: Handles
    direct: FastCall
    """How prompts and tools call other tools by name."""
    approvals: Approvals | None = None
    """Where consent is kept, for `trysquare approve`."""


class ProvidedTool(FastMcpTool):
    """One of our tools in a FastMCP server."""

    _name: str = PrivateAttr()
    _source: Source = PrivateAttr()

    @classmethod
    def made_of(cls, tool: Tool, description: str, source: Source) -> Self:
        """The component for a tool. A transform may rename it; the call still goes to the tool's own name."""
        wire = tool_to_wire(tool, lambda _: description)
        made = cls(
            name=tool.name,
            title=tool.title,
            description=description,
            parameters=tool.input_schema,
            output_schema=wire.get("outputSchema"),
            annotations=mcp_types.ToolAnnotations.model_validate(wire.get("annotations", {})),
            tags={tool.metadata.category} if tool.metadata.category else set(),
            version=tool.metadata.version,
            meta=wire.get("_meta"),
        )
        made._name, made._source = tool.name, source
        return made

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the tool through `call_tool`. Failures are results, so FastMCP has nothing to mask."""
        caller, context = _call_context(self._source)
        result = None
        with suppress(InputRequired):
            result = await call_tool(self._source.toolset, self._name, arguments, context)
        # A tool may have caught the question, such as one of several at the same time: it needs the answer still.
        if result is None or caller.waits:
            return InputRequiredToolResult(caller.asking())
        return ToolResult.from_mcp_result(mcp_types.CallToolResult.model_validate(result_to_wire(result)))


class ProvidedPrompt(FastMcpPrompt):
    """One of our prompts in a FastMCP server."""

    _prompt: Prompt = PrivateAttr()
    _source: Source = PrivateAttr()

    @classmethod
    def made_of(cls, prompt: Prompt, source: Source) -> Self:
        arguments = [
            PromptArgument(name=argument.name, description=argument.description, required=argument.required)
            for argument in prompt.arguments
        ]
        made = cls(name=prompt.name, title=prompt.title, description=prompt_description(prompt), arguments=arguments)
        made._prompt, made._source = prompt, source
        return made

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        caller, context = _call_context(self._source)
        given = {name: str(value) for name, value in (arguments or {}).items()}
        try:
            rendering = self._prompt.render(given, context)
            messages = await _foreseen(PromptError, f"Prompt {self.name}", rendering, arguments=given)
        except InputRequired:
            return InputRequiredPromptResult(caller.asking())
        return PromptResult([_message(message) for message in messages], description=self._prompt.description)


class ProvidedResource(FastMcpResource):
    """One of our resources in a FastMCP server."""

    _resource: Resource = PrivateAttr()
    _source: Source = PrivateAttr()

    @classmethod
    def made_of(cls, resource: Resource, source: Source) -> Self:
        made = cls(
            uri=AnyUrl(resource.uri),
            name=resource.name,
            title=resource.title,
            description=resource.description,
            mime_type=resource.mime_type or "text/plain",
        )
        made._resource, made._source = resource, source
        return made

    async def read(self) -> ResourceResult:
        caller, context = _call_context(self._source)
        own = self._resource
        try:
            contents = await _foreseen(ResourceError, f"Resource {own.uri}", own.read(own.uri, {}, context))
        except InputRequired:
            return InputRequiredResourceResult(caller.asking())
        return ResourceResult([ResourceContent(_held(part), mime_type=part.mime_type) for part in contents])


class ProvidedTemplate(FastMcpTemplate):
    """One of our resource templates in a FastMCP server."""

    _template: ResourceTemplate = PrivateAttr()
    _source: Source = PrivateAttr()

    @classmethod
    def made_of(cls, template: ResourceTemplate, source: Source) -> Self:
        made = cls(
            uri_template=template.uri_template,
            name=template.name,
            title=template.title,
            description=template.description,
            mime_type=template.mime_type or "text/plain",
            parameters={},
        )
        made._template, made._source = template, source
        return made

    async def create_resource(self, uri: str, params: dict[str, Any]) -> FastMcpResource:
        """The resource at one address of the template's form."""
        own = self._template
        # A transform may have put a namespace into the address; the values say what our own address is.
        address = expand_uri_template(own.uri_template, params)
        values = own.match(address) or {}

        async def read(uri: str, _: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            return await own.read(uri, values, context)

        found = Resource(uri=address, name=own.name, read=read, mime_type=own.mime_type)
        return ProvidedResource.made_of(found, self._source)


def _call_context(source: Source) -> tuple[FastMcpCaller, CallContext]:
    context = active_context()
    if context is None:
        raise RuntimeError("A provided component runs only inside a FastMCP server; call the toolset with `call_tool`.")
    caller = FastMcpCaller(context)
    served = context.request_context is not None
    request = context.session.client_params if served else None
    return caller, CallContext(
        principal=_principal(context.transport),
        caller=caller,
        handles=source.handles,
        request_id=context.request_id if served else None,
        client=request.client_info.name if request is not None else None,
        direct=source.direct,
        approvals=source.approvals,
    )


def _principal(transport: str | None) -> Principal:
    token = get_access_token()
    if token is not None:
        return Principal(subject=token.subject or token.client_id)
    return Principal(subject="anonymous") if transport in _HTTP else local_principal()


async def _foreseen(kind: type[Exception], what: str, work: Awaitable[T], *, arguments: Any = None) -> T:
    """Await the work; an expected failure becomes FastMCP's error of the same text, a crash one with an id only."""
    try:
        return await guard_crash(what, work, arguments=arguments)
    except NotFound as error:
        raise NotFoundError(error.message) from error
    except ToolError as error:
        raise kind(error.message) from error


def _message(message: PromptMessage) -> Message:
    block = _BLOCK.validate_python(block_to_wire(message.content))
    if isinstance(block, mcp_types.ResourceLink):
        # FastMCP's messages hold no links: the address as text loses nothing that a model reads.
        return Message(f"{block.name}: {block.uri}", role=message.role)
    return Message(block, role=message.role)


def _held(contents: ResourceContents) -> str | bytes:
    return base64.b64decode(contents.blob) if contents.blob is not None else contents.text or ""


class TrysquareProvider(Provider):
    """A toolset as a FastMCP provider.

    `profiles` says what is listed; whatever is listed, every tool stays callable by name. `direct` is how prompts and
    tools call other tools by name, by default through this toolset. `approvals` is where consent is kept; without it, a
    tool that needs consent runs only if the client can ask.
    """

    def __init__(
        self,
        toolset: Toolset,
        *,
        profiles: ProfileChoice | None = None,
        handles: Handles | None = None,
        direct: FastCall | None = None,
        approvals: Approvals | None = None,
    ) -> None:
        super().__init__()
        self._toolset = toolset
        self._profiles = profiles or ProfileChoice()
        self._source = Source(
            toolset=toolset,
            handles=handles or MemoryHandles(),
            direct=direct or direct_calls(toolset),
            approvals=approvals,
        )
        self._made: dict[str, tuple[Tool, ProvidedTool]] = {}
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()

    async def _list_tools(self) -> Sequence[ProvidedTool]:
        self._remember_session()
        return [self._tool(tool) for tool in listed(self._toolset, self._profiles)]

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> ProvidedTool | None:
        tool = self._toolset.find(name)
        if tool is None or (version is not None and not version.matches(tool.metadata.version)):
            return None
        return self._tool(tool)

    async def _list_prompts(self) -> Sequence[ProvidedPrompt]:
        self._remember_session()
        return [ProvidedPrompt.made_of(prompt, self._source) for prompt in self._toolset.prompts()]

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> ProvidedPrompt | None:
        prompt = None if version is not None else self._toolset.find_prompt(name)
        return None if prompt is None else ProvidedPrompt.made_of(prompt, self._source)

    async def _list_resources(self) -> Sequence[ProvidedResource]:
        self._remember_session()
        return [ProvidedResource.made_of(resource, self._source) for resource in self._toolset.resources()]

    async def _list_resource_templates(self) -> Sequence[ProvidedTemplate]:
        return [ProvidedTemplate.made_of(template, self._source) for template in self._toolset.templates()]

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Open what the toolset needs, and pass on what changes in it, for as long as the server runs."""
        loop = asyncio.get_running_loop()
        changes: asyncio.Queue[Change] = asyncio.Queue()
        # A toolset may report a change from any thread.
        unsubscribe = self._toolset.subscribe(lambda change: _enqueue(loop, changes, change))
        telling = asyncio.create_task(self._tell(changes))
        try:
            async with open_lifespans(self._toolset):
                yield
        finally:
            unsubscribe()
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self, changes: asyncio.Queue[Change]) -> None:
        while True:
            change = await changes.get()
            for session in list(self._sessions.values()):
                await _notify(session, change)

    def _remember_session(self) -> None:
        """Keep the session of a client that has listed, to notify it of changes."""
        context = active_context()
        if context is None or context.request_context is None or is_stateless(context):
            return
        self._sessions[context.session_id] = context.session
        self._sessions.move_to_end(context.session_id)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)

    def _tool(self, tool: Tool) -> ProvidedTool:
        made = self._made.get(tool.name)
        if made is None or made[0] is not tool:
            made = (tool, ProvidedTool.made_of(tool, compact_description(tool), self._source))
            self._made[tool.name] = made
        return made[1]


def _enqueue(loop: asyncio.AbstractEventLoop, changes: asyncio.Queue[Change], change: Change) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(changes.put_nowait, change)


async def _notify(session: ServerSession, change: Change) -> None:
    listings = {
        "tools": session.send_tool_list_changed,
        "prompts": session.send_prompt_list_changed,
        "resources": session.send_resource_list_changed,
    }
    await (listings[change]() if change in listings else session.send_resource_updated(change))

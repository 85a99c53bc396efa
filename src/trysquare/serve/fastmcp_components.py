"""Our tools, prompts and resources as FastMCP's components."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from trysquare.catalog.describe import prompt_description
from trysquare.core.call import call_tool, contained
from trysquare.core.consent import Approvals
from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext, DirectCall, Principal, local_principal
from trysquare.core.errors import InputRequired, NotFound, ToolError
from trysquare.core.handles import Handles
from trysquare.core.prompt import Prompt, PromptMessage
from trysquare.core.resource import Resource, ResourceTemplate
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.serve.fastmcp_caller import FastMcpCaller, active_context
from trysquare.wire.blocks import block_to_wire
from trysquare.wire.results import result_to_wire
from trysquare.wire.tools import tool_to_wire

try:
    import mcp_types
    from fastmcp.exceptions import NotFoundError, PromptError, ResourceError
    from fastmcp.prompts.base import InputRequiredPromptResult, Message, PromptArgument, PromptResult
    from fastmcp.prompts.base import Prompt as FastMcpPrompt
    from fastmcp.resources.base import InputRequiredResourceResult, ResourceContent, ResourceResult
    from fastmcp.resources.base import Resource as FastMcpResource
    from fastmcp.resources.template import ResourceTemplate as FastMcpTemplate
    from fastmcp.resources.template import expand_uri_template
    from fastmcp.server.dependencies import get_access_token
    from fastmcp.tools.base import InputRequiredToolResult, ToolResult
    from fastmcp.tools.base import Tool as FastMcpTool
    from pydantic import AnyUrl, PrivateAttr, TypeAdapter
except ImportError as error:
    raise ImportError("TrysquareProvider needs FastMCP 4. Install it with: pip install 'trysquare[fastmcp]'") from error

T = TypeVar("T")

_BLOCK: TypeAdapter[mcp_types.ContentBlock] = TypeAdapter(mcp_types.ContentBlock)
_HTTP = ("sse", "streamable-http")


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where provided components come from and what their calls share."""

    toolset: Toolset
    handles: Handles
    direct: DirectCall
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
        """Call the tool by the one way in. Failures are results, so FastMCP has nothing to mask."""
        caller, context = _call_context(self._source)
        try:
            result = await call_tool(self._source.toolset, self._name, arguments, context)
        except InputRequired:
            return InputRequiredToolResult(caller.asking())
        if caller.waits:
            # The tool has kept a question from us, such as one of several at the same time: it needs the answer still.
            return InputRequiredToolResult(caller.asking())
        return ToolResult.from_mcp_result(mcp_types.CallToolResult.model_validate(result_to_wire(result)))


class ProvidedPrompt(FastMcpPrompt):
    """One of our prompts in a FastMCP server."""

    _prompt: Prompt = PrivateAttr()
    _source: Source = PrivateAttr()

    @classmethod
    def made_of(cls, prompt: Prompt, source: Source) -> Self:
        """The component for a prompt."""
        arguments = [
            PromptArgument(name=argument.name, description=argument.description, required=argument.required)
            for argument in prompt.arguments
        ]
        made = cls(name=prompt.name, title=prompt.title, description=prompt_description(prompt), arguments=arguments)
        made._prompt, made._source = prompt, source
        return made

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        """Render the prompt."""
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
        """The component for a resource."""
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
        """Read the resource."""
        caller, context = _call_context(self._source)
        own = self._resource
        try:
            return _reading(await _foreseen(ResourceError, f"Resource {own.uri}", own.read(own.uri, {}, context)))
        except InputRequired:
            return InputRequiredResourceResult(caller.asking())


class ProvidedTemplate(FastMcpTemplate):
    """One of our resource templates in a FastMCP server."""

    _template: ResourceTemplate = PrivateAttr()
    _source: Source = PrivateAttr()

    @classmethod
    def made_of(cls, template: ResourceTemplate, source: Source) -> Self:
        """The component for a template."""
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
    return caller, CallContext(
        principal=_principal(context.transport),
        caller=caller,
        handles=source.handles,
        request_id=context.request_id if served else None,
        client=_client_name(context.session.client_params) if served else None,
        direct=source.direct,
        approvals=source.approvals,
    )


def _principal(transport: str | None) -> Principal:
    token = get_access_token()
    if token is not None:
        return Principal(subject=token.subject or token.client_id)
    return Principal(subject="anonymous") if transport in _HTTP else local_principal()


def _client_name(told: mcp_types.InitializeRequestParams | None) -> str | None:
    return None if told is None else told.client_info.name


async def _foreseen(kind: type[Exception], what: str, work: Awaitable[T], *, arguments: Any = None) -> T:
    """Await the work; a foreseen failure becomes FastMCP's error of the same text, a crash tells an id only."""
    try:
        return await contained(what, work, arguments=arguments)
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


def _reading(contents: Sequence[ResourceContents]) -> ResourceResult:
    return ResourceResult([ResourceContent(_held(part), mime_type=part.mime_type) for part in contents])


def _held(contents: ResourceContents) -> str | bytes:
    return base64.b64decode(contents.blob) if contents.blob is not None else contents.text or ""

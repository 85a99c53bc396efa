"""A FastMCP 4 server as a toolset in this process: its tools, prompts and resources, with its own middleware."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

from trysquare.core.content import Content, ResourceContents, Text
from trysquare.core.context import CallContext, ClientRequest, ElicitRequest, LogLevel, SamplingRequest, Visit
from trysquare.core.errors import DeclarationError, ErrorCode, InputRequired, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.lifespan import Lifespans
from trysquare.core.metadata import ToolMetadata
from trysquare.core.output import Output
from trysquare.core.prompts import Prompt, PromptArgument, PromptMessage
from trysquare.core.resources import Resource, ResourceTemplate
from trysquare.core.result import Result, read_block
from trysquare.core.schema.repair import repair_arguments
from trysquare.core.schema.validator import InputValidator, input_validator
from trysquare.core.tool import Tool
from trysquare.core.toolset import DynamicToolset, ServerInfo

try:
    import mcp_types
    from fastmcp import Client, FastMCP
    from mcp.shared.exceptions import MCPError
except ImportError as error:
    raise ImportError("A FastMCP server needs FastMCP 4. Install it: pip install 'trysquare[fastmcp]'") from error

T = TypeVar("T")
_LOG_LEVELS: Mapping[str, LogLevel] = {
    "debug": "debug", "info": "info", "notice": "info", "warning": "warning", "error": "error", "critical": "error",
    "alert": "error", "emergency": "error",
}  # fmt: skip


def from_fastmcp(server: FastMCP[Any]) -> FastMcpToolset:
    """The tools, prompts and resources of a FastMCP server. Its lifespan is open as long as the toolset is."""
    toolset = FastMcpToolset(server)
    # The server lists on an event loop; there may be one in this thread.
    listed = _run_apart(toolset.list())
    toolset.replace(**listed)
    return toolset


def _run_apart(work: Coroutine[Any, Any, T]) -> T:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()


class FastMcpToolset(DynamicToolset):
    """A FastMCP server in this process. Each call has a session of its own, so questions reach the right caller."""

    def __init__(self, server: FastMCP[Any]) -> None:
        self._server = server
        self._is_open = False
        lifespans = Lifespans(self)
        lifespans.add(self._running)
        info = ServerInfo(name=server.name, version=server.version, instructions=server.instructions)
        super().__init__(server_info=info, lifespans=lifespans)

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        """The server's lifespan; what it lists now counts."""
        async with Client(self._server):
            self.replace(**await self.list())
            yield

    async def list(self) -> dict[str, Any]:
        """Everything that the server lists, as parts of a toolset."""
        async with Client(self._server) as client:
            tools = [_wire(each) for each in await client.list_tools()]
            prompts = [_wire(each) for each in await client.list_prompts()]
            resources = [_wire(each) for each in await client.list_resources()]
            templates = [_wire(each) for each in await client.list_resource_templates()]
        return {
            "tools": [tool for each in tools if (tool := self._tool(each)) is not None],
            "prompts": [self._prompt(each) for each in prompts],
            "resources": [self._resource(each) for each in resources],
            "templates": [self._template(each) for each in templates],
        }

    def _tool(self, wire: JsonObject) -> Tool | None:
        name = str(wire["name"])
        arguments = _CheckedArguments(as_object(wire.get("inputSchema")))
        hints = as_object(wire.get("annotations"))

        async def call(raw: JsonObject, context: CallContext) -> Result[Any]:
            return await self._call(name, arguments.parse(name, raw), context)

        schema = wire.get("outputSchema")
        tags = as_object(as_object(wire.get("_meta")).get("fastmcp")).get("tags")
        return Tool(
            name=name,
            title=cast(str | None, wire.get("title") or hints.get("title")),
            description=str(wire.get("description") or name),
            arguments=arguments,
            call=call,
            metadata=ToolMetadata(
                read_only=hints.get("readOnlyHint"), destructive=hints.get("destructiveHint"),
                idempotent=hints.get("idempotentHint"), open_world=hints.get("openWorldHint"),
                tags=frozenset(map(str, as_list(tags))), meta=as_object(wire.get("_meta")),
            ),
            output=Output.listed(as_object(schema)) if isinstance(schema, dict) else None,
        )  # fmt: skip

    def _prompt(self, wire: JsonObject) -> Prompt:
        name = str(wire["name"])

        async def render(arguments: Mapping[str, str], context: CallContext) -> Sequence[PromptMessage]:
            found = await self._ask(context, lambda client: client.get_prompt(name, dict(arguments)))
            return [_message(_wire(each)) for each in found.messages]

        arguments = tuple(
            PromptArgument(
                name=str(each["name"]), description=each.get("description"), required=bool(each.get("required"))
            )
            for each in map(as_object, as_list(wire.get("arguments")))
        )
        return Prompt(
            name=name, title=wire.get("title"), description=str(wire.get("description") or name), arguments=arguments,
            render=render,
        )  # fmt: skip

    def _resource(self, wire: JsonObject) -> Resource:
        return Resource(
            uri=str(wire["uri"]), name=str(wire["name"]), title=wire.get("title"), read=self._read,
            description=wire.get("description"), mime_type=wire.get("mimeType"),
        )  # fmt: skip

    def _template(self, wire: JsonObject) -> ResourceTemplate:
        return ResourceTemplate(
            uri_template=str(wire["uriTemplate"]), name=str(wire["name"]), title=wire.get("title"), read=self._read,
            description=wire.get("description"), mime_type=wire.get("mimeType"),
        )  # fmt: skip

    async def _read(self, uri: str, values: Mapping[str, str], context: CallContext) -> Sequence[ResourceContents]:
        found = await self._ask(context, lambda client: client.read_resource(uri))
        return [ResourceContents(uri=uri, mime_type=each.get("mimeType"), text=each.get("text"), blob=each.get("blob"))
                for each in map(_wire, found)]  # fmt: skip

    async def _call(self, name: str, arguments: JsonObject, context: CallContext) -> Result[Any]:
        found = await self._ask(context, lambda client: client.call_tool_mcp(name, arguments))
        wire = _wire(found)
        wire.pop("resultType", None)
        return Result.relay(json.dumps(wire).encode(), is_error=wire.get("isError") is True)

    async def _ask(self, context: CallContext, send: Callable[[Client[Any]], Awaitable[Any]]) -> Any:
        """Send one request in a session of its own, whose questions, logs and progress go to this caller.

        In 2026-07-28 a question ends the call: the tool runs again from its start once the user has answered.
        """
        caller = _Caller(context)
        async with Client(self._server, mode="legacy", **caller.handlers()) as client:
            work = asyncio.ensure_future(send(client))
            try:
                await asyncio.wait((work, caller.question), return_when=asyncio.FIRST_COMPLETED)
                if caller.question.done():
                    raise caller.question.result()
                return work.result()
            except MCPError as error:
                raise ToolError(error.error.message, code=ErrorCode.TOOL_FAILED) from None
            finally:
                work.cancel()
                await asyncio.wait((work,))
                caller.question.cancel()


class _Caller:
    """The way from a session of the server back to our caller."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self.question: asyncio.Future[InputRequired] = asyncio.get_running_loop().create_future()
        """A question that only the caller's next request answers."""

    def handlers(self) -> dict[str, Any]:
        """What the caller can do, as options of FastMCP's client."""
        found: dict[str, Any] = {"log_handler": self._log, "progress_handler": self._progress}
        if self._context.can_ask():
            found["elicitation_handler"] = self._elicit
        if self._context.offers("sampling"):
            found["sampling_handler"] = self._sample
        if self._context.offers("roots"):
            found["roots"] = self._roots
        return found

    async def _request(self, wanted: ClientRequest) -> Any:
        try:
            return (await self._context.request(wanted))[wanted.key]
        except InputRequired as error:
            if not self.question.done():
                self.question.set_result(error)
            # The session ends; nothing may go on as if there were an answer.
            await asyncio.Event().wait()

    async def _elicit(self, message: str, response_type: Any, params: Any, context: Any) -> Any:
        given = _wire(params)
        if "url" in given:
            answer = await self._request(Visit(message=message, url=str(given["url"])))
        else:
            answer = await self._request(ElicitRequest(message=message, schema=as_object(given.get("requestedSchema"))))
        content = dict(answer.content) if answer.action == "accept" else None
        return mcp_types.ElicitResult(action=answer.action, content=content)

    async def _sample(self, messages: Any, params: Any, context: Any) -> Any:
        answer = await self._request(SamplingRequest(prompt="", whole=_wire(params)))
        return mcp_types.CreateMessageResult.model_validate(answer.content["whole"])

    async def _roots(self, context: Any) -> list[str]:
        return list(await self._context.roots())

    async def _log(self, message: Any) -> None:
        data: Any = message.data
        text = as_object(data).get("msg", data)
        await self._context.relay_log(_LOG_LEVELS.get(message.level, "info"), text, message.logger or "fastmcp")

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._context.progress(progress, total, message)


class _CheckedArguments:
    """Arguments by the schema of the server: closed, and repaired where that loses nothing."""

    def __init__(self, schema: JsonObject) -> None:
        self.wire: JsonObject = {**schema, "type": "object", "properties": as_object(schema.get("properties"))}
        self.wire.setdefault("additionalProperties", False)
        self.exact = self.wire
        self._validator: InputValidator | None = None

    def parse(self, tool: str, raw: JsonObject) -> JsonObject:
        if self._validator is None:
            self._validator = input_validator(self.wire)
        if self._validator.accepts(raw):
            return raw
        return repair_arguments(self._validator, raw, lambda fixed: {"tool": tool, "arguments": fixed}).arguments


def _wire(value: Any) -> JsonObject:
    """A value of the SDK as the protocol has it."""
    return cast(JsonObject, value.model_dump(by_alias=True, mode="json", exclude_none=True))


def _message(wire: JsonObject) -> PromptMessage:
    block = as_object(wire.get("content"))
    content: Content | None = (
        Text(text=str(block.get("text", ""))) if block.get("type") == "text" else read_block(block)
    )
    if content is None:
        raise DeclarationError(f"A message of the server has content of the unknown type `{block.get('type')}`.")
    return PromptMessage(role=wire["role"], content=content)

"""Client: the tools, prompts and resources of one MCP server, over stdio, HTTP or in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic_core import from_json

import trysquare
from trysquare.client import results
from trysquare.client.connect import Server, Target, open_target, target_of
from trysquare.client.handlers import (
    ElicitationHandler,
    Handlers,
    HandlingCaller,
    LogHandler,
    ProgressHandler,
    SamplingHandler,
)
from trysquare.client.results import (
    Completion,
    PromptDefinition,
    PromptResult,
    ResourceDefinition,
    ResourceResult,
    ToolResult,
)
from trysquare.core.call import require_object
from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.context import CallContext, LogLevel
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.gateway.models import ToolDefinition
from trysquare.gateway.pool.pool import read_definition
from trysquare.gateway.upstream import errors as failures
from trysquare.gateway.upstream.lists import read_list
from trysquare.gateway.upstream.request import ServerTask, UpstreamCall, UpstreamRequest
from trysquare.gateway.upstream.session import ClientInfo, ServerInfo, UpstreamSession, capability_object
from trysquare.gateway.upstream.tasks import FollowedTask
from trysquare.gateway.upstream.transport import DisconnectReason, TransportError
from trysquare.protocol.messages import RpcError, encode

ChangeHandler = Callable[[str], None]
"""Receives `tools`, `prompts` or `resources` when a list has changed, or the address of a changed resource."""
_START_SECONDS = 30.0
_NEEDS_TOKEN = "Pass its token: Client(url, bearer=…), or on the command line --header 'Authorization: Bearer …'."
_NO_ANSWER = (ErrorCode.UPSTREAM_UNAVAILABLE, ErrorCode.UPSTREAM_MALFORMED, ErrorCode.TOOL_TIMEOUT)
"""Failures of the connection, which are no results of a call."""


class Client:
    """A client of one MCP server, used as an async context manager.

    `server` is what to reach: `Tools` or a toolset (served in this process), a Python file or another source that
    `trysquare serve` takes (started as a process), or a URL. The protocol version is negotiated, unless
    `protocol_version` names one.

    Handlers answer the server's requests; only what has a handler is offered to the server. `timeout` is in
    seconds, for each request; None waits for ever.
    """

    def __init__(
        self,
        server: Server | Target,
        *,
        elicitation_handler: ElicitationHandler | None = None,
        sampling_handler: SamplingHandler | None = None,
        roots: Sequence[str | Path] | None = None,
        log_handler: LogHandler | None = None,
        log_level: LogLevel = "info",
        change_handler: ChangeHandler | None = None,
        timeout: float | None = None,
        start_timeout: float = _START_SECONDS,
        protocol_version: str | None = None,
        bearer: str | None = None,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        project: str | Path | None = None,
        name: str = "trysquare",
    ) -> None:
        given = {**(headers or {}), **({} if bearer is None else {"Authorization": f"Bearer {bearer}"})}
        known = isinstance(server, Target)
        self._target = server if known else target_of(server, env=env, cwd=cwd, headers=given, project=project)
        self._config = self._target.config(timeout=timeout, start_timeout=start_timeout)
        self._background = BackgroundTasks()
        self._handlers = Handlers(
            elicitation=elicitation_handler,
            sampling=sampling_handler,
            roots=roots,
            log=log_handler,
            log_level=log_level,
        )
        self._on_change: ChangeHandler = change_handler or _ignore
        self._version = protocol_version
        self._client_name = name
        self._stack: AsyncExitStack | None = None
        self._session: UpstreamSession | None = None

    @classmethod
    def stdio(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> Self:
        """A client of the server that a command starts. `env` is added to this process's environment."""
        return cls(Target(command=tuple(command), env=env or {}, cwd=cwd), **options)

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise RuntimeError("The client is connected already.")
        async with AsyncExitStack() as stack:
            transport = await stack.enter_async_context(open_target(self._target, self._config))
            capabilities = capability_object(self._handlers.capabilities())
            info = ClientInfo(name=self._client_name, version=trysquare.__version__, capabilities=capabilities)
            session = UpstreamSession(
                self._config, transport, info, on_change=self._on_change, on_lost=lambda session, reason: None
            )
            stack.push_async_callback(session.close)
            # What a cancelled task sends to its server.
            stack.push_async_callback(self._background.wait, self._config.timeout)
            try:
                await session.start(self._version)
            except TransportError as error:
                raise self._unreachable(error.disconnect, transport.stderr_tail()) from None
            self._session = session
            stack.callback(self._forget)
            await self._set_log_level(session)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()

    def _forget(self) -> None:
        self._session = None

    @property
    def server_info(self) -> ServerInfo:
        """The server's name, version, instructions and capabilities, and the negotiated protocol version."""
        return self._connected().server_info

    async def list_tools(self) -> list[ToolDefinition]:
        """All tools of the server."""
        found = (read_definition(entry) for entry in await self._list("tools"))
        return [definition for definition in found if definition is not None]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        progress_handler: ProgressHandler | None = None,
        raise_on_error: bool = True,
    ) -> ToolResult:
        """Call a tool. A failure raises `ToolError`, or with `raise_on_error=False` is a result like any other.

        Cancelling the task that awaits it cancels the call at the server.
        """
        try:
            params = {"name": name, "arguments": _as_object(arguments)}
            wire = await self._request("tools/call", params, about=name, timeout=timeout, progress=progress_handler)
        except ToolError as error:
            if raise_on_error or error.code in _NO_ANSWER:
                raise
            return results.failed(error)
        result = results.tool_result(wire)
        if raise_on_error:
            result.raise_error()
        return result

    async def list_prompts(self) -> list[PromptDefinition]:
        """All prompts of the server."""
        return [results.prompt_definition(entry) for entry in await self._list("prompts")]

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> PromptResult:
        """The messages of a prompt."""
        params = {"name": name, "arguments": _as_object(arguments)}
        return results.prompt_result(await self._request("prompts/get", params, about=name, timeout=timeout))

    async def list_resources(self) -> list[ResourceDefinition]:
        """All resources of the server, without templates."""
        return [results.resource_definition(entry) for entry in await self._list("resources")]

    async def list_resource_templates(self) -> list[ResourceDefinition]:
        """All resource templates of the server."""
        return [results.resource_definition(entry) for entry in await self._list("resources/templates", "resources")]

    async def read_resource(self, uri: str, *, timeout: float | None = None) -> ResourceResult:
        """What a resource holds."""
        return results.resource_result(await self._request("resources/read", {"uri": uri}, about=uri, timeout=timeout))

    async def subscribe(self, uri: str) -> None:
        """Have `change_handler` called when a resource changes."""
        await self._connected().subscribe(uri)

    async def unsubscribe(self, uri: str) -> None:
        """End a subscription."""
        await self._connected().unsubscribe(uri)

    async def complete(
        self,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        template: str | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> Completion:
        """Values for an argument of a prompt, or of a resource template, that begin with `value`.

        `arguments` are those that are known already.
        """
        if (prompt is None) == (template is None):
            raise ValueError("Name either a prompt or a template.")
        ref = {"type": "ref/prompt", "name": prompt} if template is None else {"type": "ref/resource", "uri": template}
        params: JsonObject = {"ref": ref, "argument": {"name": argument, "value": value}}
        if arguments:
            params["context"] = {"arguments": dict(arguments)}
        return results.completion(await self._request("completion/complete", params))

    async def ping(self) -> None:
        """Wait for a sign of life of the server."""
        method = "server/discover" if self.server_info.is_stateless else "ping"
        await self._request(method, {})

    async def _list(self, kind: str, capability: str | None = None) -> list[JsonObject]:
        if not self.server_info.offers(capability or kind):
            return []

        async def ask(params: JsonObject) -> bytes:
            return await self._send(f"{kind}/list", params)

        return (await read_list(kind, self._config, ask)).entries

    async def _request(
        self,
        method: str,
        params: JsonObject,
        *,
        about: str = "",
        timeout: float | None = None,
        progress: ProgressHandler | None = None,
    ) -> JsonObject:
        body = await self._send(method, params, about=about, timeout=timeout, progress=progress)
        try:
            return as_object(from_json(body))
        except ValueError as error:
            raise failures.malformed(self._config.name, about or method, str(error)) from None

    async def _send(
        self,
        method: str,
        params: JsonObject,
        *,
        about: str = "",
        timeout: float | None = None,
        progress: ProgressHandler | None = None,
    ) -> bytes:
        session = self._connected()
        context = CallContext(
            caller=HandlingCaller(self._handlers, progress), meta={} if progress is None else {"progress_token": True}
        )
        request = UpstreamRequest(method, about, encode(params)[1:-1])
        call = UpstreamCall(session, request, timeout=timeout)
        try:
            call.begin(context, lambda: None)
            found = await call.finish(context)
            if isinstance(found, ServerTask):
                config = self._config if timeout is None else replace(self._config, timeout=timeout)
                found = await FollowedTask(found, request, config, session.ask_of_task, self._background).finish(
                    context
                )
            return found.body
        except TransportError as error:
            raise self._unreachable(error.disconnect, session.connection.transport.stderr_tail()) from None
        except ToolError as error:
            if isinstance(error.__cause__, RpcError):
                raise results.refusal(error.__cause__) from None
            raise
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def _set_log_level(self, session: UpstreamSession) -> None:
        """Say which log messages to send, where that is not a part of every request."""
        has_session = not session.server_info.is_stateless
        if self._handlers.log is not None and has_session and session.server_info.offers("logging"):
            await self._request("logging/setLevel", {"level": self._handlers.log_level})

    def _connected(self) -> UpstreamSession:
        if self._session is None:
            raise RuntimeError("The client is not connected: use `async with Client(...) as client:`.")
        return self._session

    def _unreachable(self, disconnect: DisconnectReason, stderr_tail: str) -> ToolError:
        return ToolError(
            f"{self._target.name}: {disconnect.reason}{failures.quote_stderr(stderr_tail)}",
            code=ErrorCode.UPSTREAM_UNAVAILABLE,
            instruction=_NEEDS_TOKEN if disconnect.status == 401 else None,
        )


def _as_object(arguments: Mapping[str, Any] | None) -> JsonObject:
    return dict(arguments) if isinstance(arguments, Mapping) else require_object(arguments)


def _ignore(change: str) -> None:
    """Without a handler, changes are not reported."""

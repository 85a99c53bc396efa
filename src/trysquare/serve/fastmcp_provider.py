"""TrysquareProvider: any toolset as part of a FastMCP 4 server. Needs the extra `fastmcp`.

    server = FastMCP("mine", providers=[TrysquareProvider(toolset)])

Tools keep their schemas, results and argument errors; questions, progress and log lines go through FastMCP's context.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from trysquare.catalog.describe import compact_description
from trysquare.catalog.profiles import ProfileChoice, listed
from trysquare.core.call import direct_calls
from trysquare.core.consent import Approvals
from trysquare.core.context import DirectCall
from trysquare.core.handles import Handles, MemoryHandles
from trysquare.core.tool import Tool
from trysquare.core.toolset import Change, Toolset
from trysquare.serve.fastmcp_caller import active_context, is_modern
from trysquare.serve.fastmcp_components import (
    ProvidedPrompt,
    ProvidedResource,
    ProvidedTemplate,
    ProvidedTool,
    Source,
)

try:
    from fastmcp.server.providers import Provider
    from fastmcp.utilities.versions import VersionSpec
    from mcp.server.session import ServerSession
except ImportError as error:
    raise ImportError("TrysquareProvider needs FastMCP 4. Install it with: pip install 'trysquare[fastmcp]'") from error

_MOST_SESSIONS = 256


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
        direct: DirectCall | None = None,
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
        """Pass on what changes in the toolset, for as long as the server runs."""
        loop = asyncio.get_running_loop()
        changes: asyncio.Queue[Change] = asyncio.Queue()
        # A toolset may tell of a change from any thread.
        unsubscribe = self._toolset.subscribe(lambda change: _enqueue(loop, changes, change))
        telling = asyncio.create_task(self._tell(changes))
        try:
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
        """Keep the way to a client that has listed, to tell it of changes. Only a connection with a session has one."""
        context = active_context()
        if context is None or context.request_context is None or is_modern(context):
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
    match change:
        case "tools":
            await session.send_tool_list_changed()
        case "prompts":
            await session.send_prompt_list_changed()
        case "resources":
            await session.send_resource_list_changed()
        case uri:
            await session.send_resource_updated(uri)

"""Handlers of the extension for tasks: `tasks/get`, `tasks/update`, `tasks/cancel`, and calls that become tasks."""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection

from trysquare.core.call import get_tool, guard_crash
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import TaskOptions, ToolMetadata
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.protocol.methods import TaskParams, UpdateTaskParams
from trysquare.protocol.versions import TASKS_EXTENSION, has_extension
from trysquare.server.caller import Request
from trysquare.server.convert import COMPLETE, result_to_wire
from trysquare.server.handlers.tools import ToolHandlers
from trysquare.server.notifications import FollowTasks
from trysquare.server.tasks import TaskCaller, TaskRunner
from trysquare.store.tasks import StoredTasks

logger = logging.getLogger("trysquare.server")


class TaskHandlers:
    """Answers what clients ask about tasks, and calls of tools with tasks."""

    def __init__(self, toolset: Toolset, store: StoredTasks, tools: ToolHandlers) -> None:
        self._toolset = toolset
        self._tools = tools
        self.runner = TaskRunner(store, self)

    def find(self, name: str) -> Tool | None:
        """A tool, whoever may call it."""
        return self._toolset.find(name)

    def becomes_task(self, name: str, options: TaskOptions, request: Request) -> bool:
        """Whether a call may be answered with a task. Raises where it can be answered with nothing else."""
        if _declares(request):
            return True
        if options.required:
            raise _missing(f"`{name}` runs only as a task.")
        return False

    async def call(self, options: TaskOptions, metadata: ToolMetadata, request: Request) -> JsonObject | bytes:
        """Answer a call with a task, or directly where it ends soon."""
        repeats = options.repeats
        if repeats is None:
            repeats = bool(metadata.read_only or metadata.idempotent)
        answer = await self.runner.begin(options, repeats, request)
        if answer is not None:
            return answer
        if options.required:
            return result_to_wire(Result.from_error(_too_many()))
        return await self.run(TaskCaller(request), None)

    async def get(self, request: Request) -> JsonObject:
        """`tasks/get`."""
        id = _task_of(request)
        found = await self.runner.find(id, request.principal)
        if found is None:
            raise _not_found(id)
        return {"resultType": COMPLETE, **found}

    async def update(self, request: Request) -> JsonObject:
        """`tasks/update`: answers to what a task asks. Answers to what it does not ask are ignored."""
        id, params = _task_of(request), request.params
        assert isinstance(params, UpdateTaskParams)
        if not await self.runner.answer(id, request.principal, dict(params.input_responses)):
            raise _not_found(id)
        return {"resultType": COMPLETE}

    async def cancel(self, request: Request) -> JsonObject:
        """`tasks/cancel`."""
        id = _task_of(request)
        if not await self.runner.cancel(id, request.principal):
            raise _not_found(id)
        return {"resultType": COMPLETE}

    async def following(self, request: Request, ids: Collection[str]) -> FollowTasks:
        """Sends the state of those tasks that the principal has, for `subscriptions/listen`."""
        _require(request)
        visible = await self.runner.visible(ids, request.principal)
        return functools.partial(self.runner.followed, dict.fromkeys(visible, 0))

    async def run(self, caller: TaskCaller, task_id: str | None) -> JsonObject | bytes:
        """Answer the call of a task."""
        request = caller.request_context
        tool = get_tool(self._toolset, request.params.name, request.principal, request.params.arguments)
        return await self._tools.run(tool, caller, task_id)

    async def end_elsewhere(self, caller: TaskCaller, task_id: str) -> None:
        """Let the tool of a cancelled task end what it began elsewhere. A failure is in the log."""
        tool = self.find(caller.request_context.params.name)
        options = None if tool is None else tool.metadata.task
        if options is None or options.on_cancel is None:
            return
        context = self._tools.context(caller, task_id)
        try:
            await guard_crash("tasks/cancel", options.on_cancel(caller.checkpoints, context))
        except ToolError as error:
            logger.warning(
                "a cancelled task may go on elsewhere: tool=%s: %s", caller.request_context.params.name, error
            )


def _task_of(request: Request) -> str:
    _require(request)
    params: TaskParams = request.params
    return params.taskId


def _declares(request: Request) -> bool:
    return request.is_stateless and has_extension(request.capabilities, TASKS_EXTENSION)


def _require(request: Request) -> None:
    if not _declares(request):
        raise _missing("This request is part of the extension for tasks.")


def _missing(what: str) -> ToolError:
    return ToolError(
        f"{what} The client has to declare the extension `{TASKS_EXTENSION}` in the capabilities of the request.",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction="Use a client that supports tasks, in protocol version 2026-07-28.",
        fields={"capability": f"extensions.{TASKS_EXTENSION}"},
    )


def _not_found(id: str) -> NotFound:
    return NotFound(
        f"There is no task `{id[:80]}`: it expired, or it is not one of this caller.",
        code=ErrorCode.TASK_NOT_FOUND,
        instruction="Use the `taskId` that a call returned, within its `ttlMs`. Otherwise call the tool again.",
    )


def _too_many() -> ToolError:
    return ToolError(
        "This caller has too many tasks.",
        code=ErrorCode.BUDGET_EXHAUSTED,
        instruction="Wait until one of them ends, or cancel one. Then send the same call again.",
    )

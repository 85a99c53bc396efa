"""call_tool: the one way in, and the one place where a crash is caught."""

from __future__ import annotations

import functools
import logging
import secrets
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

from trysquare.core.context import CallContext, DirectCall, Principal
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.interruptions import current_task, raise_if_meant_for_caller
from trysquare.core.nearest import nearest
from trysquare.core.result import Result
from trysquare.core.schema import require_object
from trysquare.core.secrets import SecretTexts
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject

logger = logging.getLogger("trysquare.call")

T = TypeVar("T")


async def call_tool(
    toolset: Toolset, name: str, arguments: Any = None, context: CallContext | None = None
) -> Result[Any]:
    """Find a tool and call it. Every failure comes back as a `Result`; only cancellation and questions pass."""
    # Each call has a cancel flag of its own, also where one context serves several calls.
    own = CallContext() if context is None else context.for_call()
    return await _called(lambda: found_tool(toolset, require_name(name), own.principal), name, arguments, own)


def call_found(tool: Tool, name: str, arguments: Any, own: CallContext) -> Coroutine[Any, Any, Result[Any]]:
    """The same for a tool that was found by its name already, in a context that is this call's own."""
    return _called(lambda: tool, name, arguments, own)


async def _called(find: Callable[[], Tool], name: str, arguments: Any, own: CallContext) -> Result[Any]:
    task, found = current_task(), None
    try:
        found = find()
        return await found.call(require_object(arguments), own)
    except ToolError as error:
        logger.info("%s: %s", _shown(name), error.code)
        return Result.from_error(error)
    except BaseException as error:  # noqa: BLE001 - the one catch-all: no crash reaches the client or ends the server
        raise_if_meant_for_caller(error, task)
        return _crashed(name, error, None if found is None else found.input_schema, arguments)


def direct_calls(toolset: Toolset) -> DirectCall:
    """The way to a toolset's tools for prompts and other tools: `CallContext(direct=direct_calls(toolset))`."""
    return functools.partial(call_tool, toolset)


async def contained(what: str, work: Awaitable[T], *, arguments: Any = None) -> T:
    """Await the work of a prompt or resource; its crash becomes a `ToolError` that tells an incident id only."""
    task = current_task()
    try:
        return await work
    except ToolError:
        raise
    except BaseException as error:  # noqa: BLE001 - the same catch-all for what is not a tool call
        raise_if_meant_for_caller(error, task)
        incident = _logged_crash(what, error, {}, arguments)
    raise ToolError(f"{what} failed unexpectedly (incident {incident}).", code=ErrorCode.INTERNAL_ERROR)


def found_tool(toolset: Toolset, name: str, principal: Principal | None = None) -> Tool:
    """The tool of that name, or an error that names the nearest ones.

    What a principal may not use does not exist for it: the same answer, and no name of it among the nearest.
    """
    tool = toolset.find(name)
    if tool is not None and (principal is None or principal.may_use(tool.metadata.room)):
        return tool
    usable = (known for known in toolset.tools() if principal is None or principal.may_use(known.metadata.room))
    close = nearest(_shown(name), (known.name for known in usable), count=3)
    hint = f" The nearest are {', '.join(f'`{near}`' for near in close)}." if close else ""
    raise NotFound(f"There is no tool `{_shown(name)}`.{hint}", instruction="Use a name from the list of tools.")


def require_name(raw: Any) -> str:
    """The name of a tool as a text, or a clear refusal: a model may write anything in its place."""
    if isinstance(raw, str):
        return raw
    raise InvalidArguments(
        f"A tool's name is a text, not {type(raw).__name__}.",
        code=ErrorCode.VALIDATION_INVALID_REQUEST,
        instruction="Use a name from the list of tools.",
    )


def _shown(name: Any) -> str:
    text = name if isinstance(name, str) else type(name).__name__
    return text if len(text) <= 80 else text[:79] + "…"


def _crashed(name: str, error: BaseException, schema: JsonObject | None, arguments: Any) -> Result[Any]:
    incident = _logged_crash(f"Tool {_shown(name)}", error, schema or {}, arguments)
    return Result.failure(
        f"The tool failed unexpectedly (incident {incident}).",
        "crash",
        code=ErrorCode.INTERNAL_ERROR,
        instruction="Do not repeat the call unchanged. Tell the person the incident id; the log has the details.",
    )


def _logged_crash(what: str, error: BaseException, schema: JsonObject, arguments: Any) -> str:
    """Log the traceback without the values of secret arguments, and return the id of the incident."""
    incident = secrets.token_hex(4)
    given = cast(JsonObject, arguments) if isinstance(arguments, dict) else {}
    texts = SecretTexts(given, schema)
    message, values = "%s crashed (incident %s)", (what, incident)
    if not texts:
        logger.error(message, *values, exc_info=error)
    elif logger.isEnabledFor(logging.ERROR):
        record = logger.makeRecord(logger.name, logging.ERROR, __file__, 0, message, values, None, "_logged_crash")
        # As text, not as `exc_info`: a handler would write the exception's own message, secrets included.
        record.exc_text = texts.masked("".join(traceback.format_exception(error)).rstrip())
        logger.handle(record)
    return incident

"""call_tool: the one entry point, and the one catch-all."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext, FastCall, Principal
from trysquare.core.errors import (
    ErrorCode,
    InvalidArguments,
    NotFound,
    ToolError,
    raise_if_meant_for_caller,
)
from trysquare.core.json import JsonObject, as_object
from trysquare.core.output import refreshed
from trysquare.core.prompts import PROMPTS_SCOPE, Prompt, PromptMessage
from trysquare.core.redaction import SecretTexts
from trysquare.core.resources import RESOURCES_SCOPE, Resource
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset

logger = logging.getLogger("trysquare.call")

_NOTE = "Incident "
_LONGEST_REPEATED = 2_000
"""Characters of arguments that are repeated in the corrected call."""
_PACKAGE, _LIBRARY = (f"{os.path.dirname(os.path.dirname(each))}{os.sep}" for each in (__file__, asyncio.__file__))
"""Directories of this package and of Python's library."""

T = TypeVar("T")


async def call_tool(
    toolset: Toolset, name: str, arguments: Any = None, context: CallContext | None = None
) -> Result[Any]:
    """Find a tool and call it. Every failure comes back as a `Result`; only cancellation and questions pass."""
    # Each call has a cancel flag of its own, also where one context serves several calls.
    own = CallContext() if context is None else context.for_call()
    return await _call(lambda: get_tool(toolset, require_name(name), own.principal, arguments), name, arguments, own)


def call_resolved(tool: Tool, name: str, arguments: Any, own: CallContext) -> Coroutine[Any, Any, Result[Any]]:
    """Call a tool that was found already, in a context of this call's own."""
    return _call(lambda: tool, name, arguments, own)


async def _call(find: Callable[[], Tool], name: str, arguments: Any, own: CallContext) -> Result[Any]:
    task, found = asyncio.current_task(), None
    try:
        found = find()
        result = await found.call(require_object(arguments), own)
        if result.structured_for is None or result.structured_for is result.value or result.page is not None:
            return result
        return refreshed(name, result, found.output) if found.output is not None and result.success else result
    except ToolError as error:
        logger.debug("%s: %s", _display_name(name), error.code)
        return Result.from_error(error)
    except BaseException as error:  # noqa: BLE001 - the one catch-all: no crash reaches the client or ends the server
        raise_if_meant_for_caller(error, task)
        return _crashed(name, error, None if found is None else found.input_schema, arguments)


class DirectCalls:
    """Calls of a toolset's tools, and its resources, for prompts and other tools."""

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset

    def __call__(
        self, name: str, arguments: JsonObject | None, context: CallContext
    ) -> Coroutine[Any, Any, Result[Any]]:
        return call_tool(self._toolset, name, arguments, context)

    async def read_resource(self, uri: str, context: CallContext) -> Sequence[ResourceContents]:
        """Read a resource, as far as the principal may."""
        found = get_resource(self._toolset, uri, context.principal)
        return await guard_crash(f"Resource {_display_name(uri)}", found.read(uri, {}, context))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str], context: CallContext
    ) -> Sequence[PromptMessage]:
        """Render a prompt, as far as the principal may."""
        found = get_prompt(self._toolset, name, context.principal)
        return await guard_crash(f"Prompt {_display_name(name)}", found.render(dict(arguments), context))


def direct_calls(toolset: Toolset) -> FastCall:
    """Calls of a toolset's tools by prompts and other tools: `CallContext(direct=direct_calls(toolset))`."""
    return DirectCalls(toolset)


def get_resource(toolset: Toolset, uri: str, principal: Principal) -> Resource:
    """The resource at an address, or an error. Those that a principal may not use do not exist."""
    resource = toolset.find_resource(uri) if principal.may_use(RESOURCES_SCOPE) else None
    if resource is None:
        raise NotFound(
            f"There is no resource at `{uri[:200]}`.",
            code=ErrorCode.RESOURCE_NOT_FOUND,
            fields={"uri": uri},
            instruction="Use an address from the list of resources, or one of the form of a template.",
        )
    return resource


def get_prompt(toolset: Toolset, name: str, principal: Principal) -> Prompt:
    """The prompt of that name, or an error that names the nearest ones."""
    prompt = toolset.find_prompt(name) if principal.may_use(PROMPTS_SCOPE) else None
    if prompt is not None:
        return prompt
    visible = toolset.prompts() if principal.may_use(PROMPTS_SCOPE) else ()
    hint = _did_you_mean(name, (known.name for known in visible))
    raise NotFound(f"Unknown prompt `{_display_name(name)}`.{hint}", code=ErrorCode.PROMPT_NOT_FOUND)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = closest_names(name, known, count=3)
    return f" Did you mean {' or '.join(f'`{near}`' for near in close)}?" if close else ""


async def guard_crash(what: str, work: Awaitable[T], *, arguments: Any = None) -> T:
    """Await the work of a prompt or resource; its crash becomes a `ToolError` with an incident id only."""
    task = asyncio.current_task()
    try:
        return await work
    except ToolError:
        raise
    except BaseException as error:  # noqa: BLE001 - the same catch-all for what is not a tool call
        raise_if_meant_for_caller(error, task)
        incident = _logged_crash(what, error, {}, arguments)
    raise ToolError(f"{what} failed unexpectedly (incident {incident}).", code=ErrorCode.INTERNAL_ERROR)


def get_tool(toolset: Toolset, name: str, principal: Principal | None = None, arguments: Any = None) -> Tool:
    """The tool of that name, or an error with the closest names and, given the arguments, the call of the closest.

    Tools that a principal may not use do not exist.
    """
    tool = toolset.find(name)
    if tool is not None and (principal is None or principal.may_use(tool.metadata.toolset)):
        return tool
    usable = (known for known in toolset.tools() if principal is None or principal.may_use(known.metadata.toolset))
    shown = _display_name(name)
    close = closest_names(shown, (known.name for known in usable), count=3)
    hint = f" Did you mean {' or '.join(f'`{near}`' for near in close)}?" if close else ""
    following = {"tool": close[0], "arguments": arguments} if close and _is_short(arguments) else None
    raise NotFound(f"Unknown tool `{shown}`.{hint}", instruction="Use a name from the list of tools.", next=following)


def _is_short(arguments: Any) -> bool:
    """Whether the arguments of a call are worth repeating."""
    return isinstance(arguments, dict) and len(repr(cast(JsonObject, arguments))) <= _LONGEST_REPEATED


def require_name(raw: Any) -> str:
    """The name of a tool, or an error: a model may send anything."""
    if isinstance(raw, str):
        return raw
    raise InvalidArguments(
        f"A tool name must be a string; got {type(raw).__name__}.",
        code=ErrorCode.VALIDATION_INVALID_REQUEST,
        instruction="Use a name from the list of tools.",
    )


def require_object(raw: Any) -> JsonObject:
    """The arguments as an object, or a clear refusal."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise InvalidArguments(
            f"Arguments must be a JSON object, not {type(raw).__name__}.",
            code=ErrorCode.VALIDATION_INVALID_REQUEST,
            instruction='Send the arguments as an object, such as {"name": "value"}.',
        )
    return cast(JsonObject, raw)


def _display_name(name: Any) -> str:
    text = name if isinstance(name, str) else type(name).__name__
    return text if len(text) <= 80 else text[:79] + "…"


def _crashed(name: str, error: BaseException, schema: JsonObject | None, arguments: Any) -> Result[Any]:
    incident = _logged_crash(f"Tool {_display_name(name)}", error, schema or {}, arguments)
    return Result.failure(
        f"The tool failed unexpectedly (incident {incident}).",
        "crash",
        code=ErrorCode.INTERNAL_ERROR,
        instruction="Do not repeat the call unchanged. Give the user the incident id; the log has the details.",
    )


def _logged_crash(what: str, error: BaseException, schema: JsonObject, arguments: Any) -> str:
    """Log a crash, unless a middleware has done so, and return the id of the incident."""
    notes: list[str] = getattr(error, "__notes__", [])
    if notes and notes[-1].startswith(_NOTE):
        # Taken off again: the same exception object may be raised by another call.
        return notes.pop().removeprefix(_NOTE)
    incident = secrets.token_hex(4)
    log_crash(logger, f"{what} crashed (incident {incident})", error, schema, arguments)
    return incident


def note_incident(error: BaseException) -> None:
    """Give an exception the id of an incident as a note; `call_tool` then takes the crash as logged."""
    error.add_note(f"{_NOTE}{secrets.token_hex(4)}")


def log_crash(log: logging.Logger, message: str, error: BaseException, schema: JsonObject, arguments: Any) -> None:
    """Log a crash with its traceback, without the values of secret arguments."""
    texts = SecretTexts(as_object(arguments), schema)
    if not texts:
        log.error("%s", message, exc_info=error)
    elif log.isEnabledFor(logging.ERROR):
        record = log.makeRecord(log.name, logging.ERROR, __file__, 0, "%s", (message,), None, "log_crash")
        # As text, not as `exc_info`: a handler would write the exception's own message, secrets included.
        record.exc_text = texts.masked(format_crash(error, whole=log.isEnabledFor(logging.DEBUG)))
        log.handle(record)


def format_crash(error: BaseException, *, whole: bool) -> str:
    """The traceback of a crash: all of it, or the frames of the tool's own code, if there are any."""
    trace = traceback.TracebackException.from_exception(error)
    hidden = 0 if whole else _drop_our_frames(trace)
    note = f"\n({hidden} frames of Trysquare left out; --debug-traceback shows them)" if hidden else ""
    return "".join(trace.format()).rstrip() + note


def _drop_our_frames(trace: traceback.TracebackException) -> int:
    """Leave only the frames after the last one of this package in a traceback; return the number of the others."""
    inner = [trace.__cause__, trace.__context__, *(trace.exceptions or ())]
    hidden = sum(_drop_our_frames(each) for each in inner if each is not None)
    last = max((at for at, frame in enumerate(trace.stack) if frame.filename.startswith(_PACKAGE)), default=-1)
    own = trace.stack[last + 1 :]
    if not own:
        # The tool's code called this package, where it failed.
        own = [frame for frame in trace.stack if not frame.filename.startswith((_PACKAGE, _LIBRARY))]
    if own and len(own) < len(trace.stack):
        hidden += len(trace.stack) - len(own)
        trace.stack[:] = own
    return hidden

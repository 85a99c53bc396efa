"""Error codes, and the exceptions of Trysquare."""

from __future__ import annotations

import asyncio
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Literal, cast

from trysquare.core.json import JsonObject
from trysquare.core.untrusted import block


class ErrorCode(StrEnum):
    """Every error code, as `FAMILY_SPECIFIC`, so that a client can branch on either part."""

    VALIDATION_MISSING_PARAM = "VALIDATION_MISSING_PARAM"
    VALIDATION_UNKNOWN_PARAM = "VALIDATION_UNKNOWN_PARAM"
    VALIDATION_INVALID_PARAM = "VALIDATION_INVALID_PARAM"
    VALIDATION_INVALID_REQUEST = "VALIDATION_INVALID_REQUEST"
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    TOOL_FAILED = "TOOL_FAILED"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    TOOL_CANCELLED = "TOOL_CANCELLED"
    PROMPT_NOT_FOUND = "PROMPT_NOT_FOUND"
    RESOURCE_NOT_FOUND = "RESOURCE_NOT_FOUND"
    HANDLE_NOT_FOUND = "HANDLE_NOT_FOUND"
    CONSENT_REQUIRED = "CONSENT_REQUIRED"
    CONSENT_REFUSED = "CONSENT_REFUSED"
    CAPABILITY_NOT_SUPPORTED = "CAPABILITY_NOT_SUPPORTED"
    UPSTREAM_UNAVAILABLE = "UPSTREAM_UNAVAILABLE"
    UPSTREAM_LOST = "UPSTREAM_LOST"
    UPSTREAM_REFUSED = "UPSTREAM_REFUSED"
    UPSTREAM_MALFORMED = "UPSTREAM_MALFORMED"
    STATE_CONFLICT = "STATE_CONFLICT"
    STATE_UNAVAILABLE = "STATE_UNAVAILABLE"
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    SESSION_NOT_STARTED = "SESSION_NOT_STARTED"
    SESSION_TERMINATED = "SESSION_TERMINATED"
    SESSION_LOST = "SESSION_LOST"
    SESSION_START_FAILED = "SESSION_START_FAILED"
    STATE_NOT_PAUSED = "STATE_NOT_PAUSED"
    STATE_NOT_RUNNING = "STATE_NOT_RUNNING"
    INTROSPECTION_EVAL_ERROR = "INTROSPECTION_EVAL_ERROR"
    INTROSPECTION_INVALID_FRAME = "INTROSPECTION_INVALID_FRAME"
    INTROSPECTION_NOT_FOUND = "INTROSPECTION_NOT_FOUND"
    EXECUTION_FAILED = "EXECUTION_FAILED"
    EXECUTION_NOT_ALLOWED = "EXECUTION_NOT_ALLOWED"
    EXECUTION_TIMEOUT = "EXECUTION_TIMEOUT"
    EXECUTION_BREAKPOINT_FAILED = "EXECUTION_BREAKPOINT_FAILED"
    EXECUTION_VARIABLE_SET_FAILED = "EXECUTION_VARIABLE_SET_FAILED"
    CONNECTION_LOST = "CONNECTION_LOST"
    CONNECTION_TIMEOUT = "CONNECTION_TIMEOUT"
    ADAPTER_NOT_FOUND = "ADAPTER_NOT_FOUND"
    ADAPTER_INSTALL_FAILED = "ADAPTER_INSTALL_FAILED"
    CONFIG_NOT_FOUND = "CONFIG_NOT_FOUND"
    CONFIG_INVALID = "CONFIG_INVALID"
    GRAMMAR_UNSUPPORTED = "GRAMMAR_UNSUPPORTED"
    GRAMMAR_REFUSED = "GRAMMAR_REFUSED"
    MODEL_UNAVAILABLE = "MODEL_UNAVAILABLE"
    MODEL_REFUSED = "MODEL_REFUSED"
    MODEL_NOT_INSTALLED = "MODEL_NOT_INSTALLED"
    MODEL_CONTEXT_FULL = "MODEL_CONTEXT_FULL"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    POLICY_DENIED = "POLICY_DENIED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    TASK_NOT_FOUND = "TASK_NOT_FOUND"
    TASK_INTERRUPTED = "TASK_INTERRUPTED"
    JOB_NOT_FOUND = "JOB_NOT_FOUND"
    JOB_NOT_RUNNING = "JOB_NOT_RUNNING"
    JOB_CANCELLED = "JOB_CANCELLED"
    FILE_NOT_FOUND = "FILE_NOT_FOUND"
    FILE_CONFLICT = "FILE_CONFLICT"
    FILE_NOT_ALLOWED = "FILE_NOT_ALLOWED"
    COMMAND_NOT_ALLOWED = "COMMAND_NOT_ALLOWED"
    COMMAND_FAILED = "COMMAND_FAILED"
    FETCH_NOT_ALLOWED = "FETCH_NOT_ALLOWED"
    FETCH_FAILED = "FETCH_FAILED"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class TrysquareError(Exception):
    """Base class of Trysquare's exceptions."""


class DeclarationError(TrysquareError):
    """A tool, prompt or resource cannot be declared or combined as written."""

    def __init__(self, message: str, *, location: str | None = None) -> None:
        self.message, self.location = message, location
        super().__init__(f"{message} ({location})" if location else message)


class ConfigurationError(TrysquareError):
    """An invalid setting: location, message, and hint."""

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message, self.where, self.hint = message, where, hint
        super().__init__(f"{f'{where}: ' if where else ''}{message}{f' {hint}' if hint else ''}")


class ToolError(TrysquareError):
    """A foreseen failure of a call: `message` for the model, and `instruction` with what to do next.

    Any other exception of a tool is a crash: `call_tool` logs the traceback and returns an incident id only.
    """

    default_code: ErrorCode = ErrorCode.TOOL_FAILED

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode | None = None,
        instruction: str | None = None,
        next: JsonObject | None = None,
        fields: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        # A part of the text may be untrusted: neither a terminal nor a model must read hidden characters.
        self.message = message = block(message)
        super().__init__(message)
        self.code = code or self.default_code
        self.instruction = instruction
        self.next = next
        self.fields: Mapping[str, Any] = fields or {}
        self.meta: Mapping[str, Any] = meta or {}
        """The `_meta` of the result, such as the label of another server."""


class InvalidArguments(ToolError):
    """The arguments of a call do not fit its tool."""

    default_code = ErrorCode.VALIDATION_INVALID_PARAM


class NotFound(ToolError):
    """What was named does not exist."""

    default_code = ErrorCode.TOOL_NOT_FOUND


class ConsentNeeded(ToolError):
    """A human has to agree before this call may run."""

    default_code = ErrorCode.CONSENT_REQUIRED


class ConsentRefused(ToolError):
    """A human was asked and did not agree."""

    default_code = ErrorCode.CONSENT_REFUSED


class QuestionDeclined(ConsentRefused):
    """The user declined to answer a question of the tool, or closed it: `action` says which."""

    def __init__(self, question: str, action: Literal["decline", "cancel"]) -> None:
        self.action = action
        did = "declined to answer" if action == "decline" else "closed the question without an answer"
        super().__init__(
            f"The user {did}: {question}", instruction="Do not ask again unless the user changes their mind."
        )


class CapabilityMissing(ToolError):
    """The tool needs a capability that this client does not have."""

    default_code = ErrorCode.CAPABILITY_NOT_SUPPORTED

    def __init__(self, capability: str) -> None:
        super().__init__(
            f"This tool needs a client with the capability `{capability}`, and this client does not declare it.",
            instruction="Do without this tool, or call it from a client that has the capability.",
            fields={"capability": capability},
        )


class NobodyToAsk(ToolError):
    """The tool asks the user, and this caller cannot."""

    default_code = ErrorCode.CAPABILITY_NOT_SUPPORTED

    def __init__(self, question: str, *, instruction: str | None = None) -> None:
        super().__init__(
            f"The tool has to ask the user, and this client cannot (it has no elicitation): {question}",
            instruction=instruction
            or "Ask the user in the conversation if the tool takes the answer as an argument; else do without the "
            "tool, or use a client that supports elicitation.",
            fields={"capability": "elicitation"},
        )


class DeadlineExceeded(ToolError):
    """The call ran longer than its tool allows."""

    default_code = ErrorCode.TOOL_TIMEOUT


class CallCancelled(ToolError):
    """The caller cancelled the call."""

    default_code = ErrorCode.TOOL_CANCELLED


class InputRequired(BaseException):
    """Unwinds a call that needs an answer of the user, in protocol versions where the client asks and calls again.

    A `BaseException`, like a cancellation, so that a tool's own `except Exception` cannot swallow the question. Only
    a server that passes the question to its client may catch it.
    """

    def __init__(self, questions: Mapping[str, Any]) -> None:
        super().__init__("the call needs an answer of the user")
        self.questions = questions


def require_extra(extra: str, *packages: str, feature: str, code: ErrorCode) -> None:
    """Raise where a package of an extra is not installed, which `feature` needs."""
    from importlib.util import find_spec

    for package in packages:
        if find_spec(package) is None:
            raise ToolError(
                f"{feature} requires the package {package}, which is not installed.",
                code=code,
                instruction=f"Install it with: pip install 'trysquare[{extra}]'",
            )


def current_task() -> asyncio.Task[Any] | None:
    """The task that runs this code, if one does."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def raise_if_meant_for_caller(error: BaseException, task: asyncio.Task[Any] | None) -> None:
    """Raise the error again unless it is a crash of the tool; `task` is the one that began the call.

    `KeyboardInterrupt`, `SystemExit` and `GeneratorExit` of a tool's own code must not end the server.
    """
    if isinstance(error, BaseExceptionGroup):
        # A task group of the tool's own wraps what its tasks raised.
        inner = list(leaves(cast(BaseExceptionGroup[BaseException], error)))
        for asked in inner:
            if isinstance(asked, InputRequired):
                raise asked
        if any(isinstance(each, asyncio.CancelledError) for each in inner) and _is_being_cancelled():
            raise error
    elif (
        isinstance(error, InputRequired)
        or (isinstance(error, asyncio.CancelledError) and _is_being_cancelled())
        or (isinstance(error, GeneratorExit) and current_task() is not task)
        or (isinstance(error, KeyboardInterrupt) and _is_from_signal(error))
    ):
        raise error


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The exceptions in a group and in the groups within it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(cast(BaseExceptionGroup[BaseException], error))
        else:
            yield error


def _is_being_cancelled() -> bool:
    """Whether this call was cancelled, and not only a task of the tool's own."""
    task = current_task()
    return task is None or task.cancelling() > 0


def _is_from_signal(error: KeyboardInterrupt) -> bool:
    """Whether Ctrl-C was pressed, rather than the exception raised by code of the tool."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handler: Any = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        # Python's own handler leaves no trace of itself: better to end than to ignore Ctrl-C.
        return True
    function = getattr(handler, "func", handler)
    code = getattr(function, "__code__", None)
    return code is not None and any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))

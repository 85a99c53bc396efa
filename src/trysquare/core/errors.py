"""Everything that can go wrong, in one tree.

    TrysquareError
    ├── DeclarationError        a tool was written wrongly; found when it is declared or a set is built
    ├── ConfigurationError      a setting is wrong; names the place and the way out
    └── ToolError               a call failed in a way that its author foresaw; the model reads the text
        ├── InvalidArguments    the arguments do not fit; carries the corrected call
        ├── NotFound            no such tool, prompt, resource or handle; carries the nearest names
        ├── ConsentNeeded       a person has to agree first; carries how they can
        ├── ConsentRefused      a person said no
        ├── CapabilityMissing   the client cannot do what the tool asks of it
        ├── NobodyToAsk         the client cannot put the tool's question to the user
        ├── DeadlineExceeded    the call ran longer than its tool may
        └── CallCancelled       the caller took the call back

    InputRequired               not a failure: the caller must fetch an answer and call again

Anything else that a tool raises is a crash: `call_tool` catches it, logs the traceback and tells the model an id only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from trysquare.core.types import JsonObject
from trysquare.core.untrusted import block


class ErrorCode(StrEnum):
    """Every error code there is, `FAMILY_SPECIFIC`, so that a client can branch on either part."""

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
    """The root of what Trysquare raises on purpose."""


class DeclarationError(TrysquareError):
    """A tool, prompt or resource cannot be declared or combined as written."""


class ConfigurationError(TrysquareError):
    """A setting is wrong. The text says where, what was expected and what to do."""

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message, self.where, self.hint = message, where, hint
        place = f"{where}: " if where else ""
        advice = f" {hint}" if hint else ""
        super().__init__(f"{place}{message}{advice}")


class ToolError(TrysquareError):
    """A foreseen failure of a call: the model reads `message`, and `instruction` says what to do next."""

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
        # Whoever wrote a part of the text, neither a terminal nor a model must read what a person cannot see.
        self.message = message = block(message)
        super().__init__(message)
        self.code = code or self.default_code
        self.instruction = instruction
        self.next = next
        self.fields: Mapping[str, Any] = fields or {}
        self.meta: Mapping[str, Any] = meta or {}
        """What stands beside the answer in its `_meta`, such as the label of another server."""


class InvalidArguments(ToolError):
    """The arguments of a call do not fit its tool."""

    default_code = ErrorCode.VALIDATION_INVALID_PARAM


class NotFound(ToolError):
    """What was named does not exist."""

    default_code = ErrorCode.TOOL_NOT_FOUND


class ConsentNeeded(ToolError):
    """A person has to agree before this call may run."""

    default_code = ErrorCode.CONSENT_REQUIRED


class ConsentRefused(ToolError):
    """A person was asked and did not agree."""

    default_code = ErrorCode.CONSENT_REFUSED


class CapabilityMissing(ToolError):
    """The tool has to ask something of the client that this client cannot do."""

    default_code = ErrorCode.CAPABILITY_NOT_SUPPORTED

    def __init__(self, capability: str) -> None:
        super().__init__(
            f"This tool needs a client with the capability `{capability}`, and this client does not declare it.",
            instruction="Do without this tool, or call it from a client that has the capability.",
            fields={"capability": capability},
        )


class NobodyToAsk(ToolError):
    """The tool asks the user something, and this caller cannot put questions to them."""

    default_code = ErrorCode.CAPABILITY_NOT_SUPPORTED

    def __init__(self, question: str, *, instruction: str | None = None) -> None:
        super().__init__(
            f"The tool has to ask the user, and this client cannot (it has no elicitation): {question}",
            instruction=instruction
            or "Ask the user in the conversation if the tool takes the answer as an argument; else do without the "
            "tool, or use a client that supports elicitation.",
        )


class DeadlineExceeded(ToolError):
    """The call ran longer than its tool allows."""

    default_code = ErrorCode.TOOL_TIMEOUT


class CallCancelled(ToolError):
    """The caller no longer wants the answer."""

    default_code = ErrorCode.TOOL_CANCELLED


class InputRequired(BaseException):
    """Unwinds a call that needs an answer from a person, in an era where the client asks and calls again.

    A `BaseException`, like a cancellation, so that a tool's own `except Exception` cannot swallow the question.
    Only a server that knows how to put the question to its client may catch it.
    """

    def __init__(self, questions: Mapping[str, Any]) -> None:
        super().__init__("the call needs an answer from a person")
        self.questions = questions

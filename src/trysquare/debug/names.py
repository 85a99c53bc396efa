"""Names of the tools, their fields and actions; required arguments of an action."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import model_validator

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import as_object


class ToolName(StrEnum):
    """Names of the tools, without their prefix."""

    INIT = "init"
    SESSION_START = "session_start"
    SESSION = "session"
    EXECUTE = "execute"
    STEP = "step"
    RUN_UNTIL = "run_until"
    INSPECT = "inspect"
    VARIABLE = "variable"
    BREAKPOINT = "breakpoint"
    WATCH = "watch"
    CONFIG = "config"
    CONTEXT = "context"
    ADAPTER = "adapter"
    EXPLAIN = "explain"
    TRACE = "trace"
    WHO_WROTE = "who_wrote"
    PROBE = "probe"
    DIFF = "diff"
    DUMP = "dump"


class ExecutionStatus(StrEnum):
    """State of a program in a result."""

    STARTING = "initialized"
    RUNNING = "running"
    STOPPED_AT_BREAKPOINT = "stopped_at_breakpoint"
    STOPPED_AT_EXCEPTION = "stopped_at_exception"
    STOPPED_AFTER_STEP = "stopped_after_step"
    PAUSED = "paused"
    TERMINATED = "terminated"


class Field(StrEnum):
    """Fields of a result."""

    SUMMARY = "summary"
    DATA = "data"
    NEXT_STEPS = "next_steps"
    SESSION_ID = "session_id"
    EXECUTION_STATE = "execution_state"
    CODE_SNAPSHOT = "code_snapshot"
    LOCATION = "location"
    LOCALS = "locals"
    BEFORE = "before"
    CHANGED = "changed"
    STACK_DEPTH = "stack_depth"
    WATCH = "watch"
    TIMING = "timing"
    TRUNCATED = "truncated"
    EXCEPTION = "exception"
    OUTPUT = "output"


BreakpointAction: TypeAlias = Literal[
    "set", "remove", "list", "clear_all", "watch", "unwatch", "exceptions", "function"
]
WatchAction: TypeAlias = Literal["set", "remove", "list"]
StepAction: TypeAlias = Literal["over", "into", "out", "back"]
InspectTarget: TypeAlias = Literal["locals", "globals", "stack", "threads", "expression", "output", "all"]


class ActionArguments(ToolArguments):
    """Arguments with an `action`. The schema shows one name for each; `also` maps accepted synonyms to it."""

    also: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def with_usual_action(cls, given: Any) -> Any:
        arguments = as_object(given)
        action = arguments.get("action")
        if isinstance(action, str) and action in cls.also:
            return {**arguments, "action": cls.also[action]}
        return given


def require_argument(value: str | None, name: str, instruction: str | None = None) -> str:
    """The value of an argument, or an error where it is missing."""
    if value:
        return value
    raise InvalidArguments(
        f"Missing argument `{name}`.", code=ErrorCode.VALIDATION_MISSING_PARAM, instruction=instruction
    )

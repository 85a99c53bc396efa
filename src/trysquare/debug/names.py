"""The words of the debugger's tools, each written once."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias


class ToolName(StrEnum):
    """The tools, before their prefix."""

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
    """Where a program stands, as a result tells it."""

    STARTING = "initialized"
    RUNNING = "running"
    STOPPED_AT_BREAKPOINT = "stopped_at_breakpoint"
    STOPPED_AT_EXCEPTION = "stopped_at_exception"
    STOPPED_AFTER_STEP = "stopped_after_step"
    PAUSED = "paused"
    TERMINATED = "terminated"


class Field(StrEnum):
    """The fields of a result."""

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


Language: TypeAlias = Literal["python", "javascript", "typescript", "c", "cpp", "rust", "go", "java", "ruby"]
BreakpointAction: TypeAlias = Literal[
    "set", "remove", "list", "clear_all", "watch", "unwatch", "exceptions", "function"
]
WatchAction: TypeAlias = Literal["set", "remove", "list"]
StepAction: TypeAlias = Literal["over", "into", "out", "back"]
InspectTarget: TypeAlias = Literal["locals", "globals", "stack", "threads", "expression", "output", "all"]

"""Debugger: the operations of every debugger, its events and its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.net.rpc import ConnectionLost

StepKind: TypeAlias = Literal["over", "into", "out", "back"]
Access: TypeAlias = Literal["read", "write", "readWrite"]
OutputStream: TypeAlias = Literal["stdout", "stderr", "console"]
EvaluateFor: TypeAlias = Literal["watch", "repl", "hover", "clipboard"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """A breakpoint as the debugger set it: its actual line, or why it is not set."""

    verified: bool = False
    id: int | None = None
    line: int | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakpointSpec:
    """A line to stop at, and when. With `log_message` it prints instead of stopping."""

    file: str
    line: int
    column: int | None = None
    condition: str | None = None
    hit_condition: str | None = None
    log_message: str | None = None
    guarded: bool = True
    """Whether its expressions may only read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionBreakpoint:
    name: str
    condition: str | None = None
    hit_condition: str | None = None
    guarded: bool = True
    bound: Bound = Bound()


@dataclass(frozen=True, kw_only=True, slots=True)
class DataBreakpoint:
    """A value to stop at when it is written or read. `data_id` is the debugger's id of it."""

    data_id: str
    access: Access = "write"
    condition: str | None = None
    bound: Bound = Bound()


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A stack frame. `id` is valid until the program continues."""

    id: int
    name: str
    file: str | None
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Thread:
    id: int
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """A set of variables of a frame: locals, globals, registers."""

    name: str
    kind: Literal["locals", "globals", "other"]
    reference: int
    expensive: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Variable:
    """A value as the debugger shows it. `reference` gives access to its parts and is never shown to a model."""

    name: str
    value: str
    type: str | None = None
    reference: int = 0
    indexed: int = 0
    size: str = ""
    """Its full size, such as `1000 items`, where the debugger reports it."""
    is_cut: bool = False
    shows_all: bool = False
    """Whether secrets need no masking here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExceptionInfo:
    type: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopped:
    reason: str
    """breakpoint, step, exception, pause, entry, goto, data breakpoint, function breakpoint …"""
    thread: int
    text: str = ""


class Resumed:
    """The program continued."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exited:
    """The program ended. Both a code and a signal mean that the debugger does not distinguish the two."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""
    """Set where the connection was lost, and the program may still run."""

    @staticmethod
    def with_status(status: int | None) -> Exited:
        """The end by an exit status, where a negative one is a signal."""
        return Exited(signal=-status) if status is not None and status < 0 else Exited(code=status)

    def __str__(self) -> str:
        if self.signal is not None:
            either = "" if self.code is None else f"exit code {self.code} or "
            return f"{either}killed by signal {self.signal}"
        return f"exit code {self.code}" if self.code is not None else self.reason or "exit code unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    stream: OutputStream
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakpointMoved:
    """The debugger bound, moved or removed a breakpoint, such as when a module was loaded."""

    bound: Bound


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildStarted:
    """The program started a process or thread, whose debugger waits for a connection."""

    arguments: JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionFailed:
    location: str
    reason: str


class RequestFailed(Exception):
    """The debugger refused a request. `message` is the debugger's own text."""

    def __init__(self, command: str, message: str) -> None:
        super().__init__(message)
        self.command, self.message = command, message


DEBUGGER_ERRORS = (RequestFailed, ConnectionLost, TimeoutError)


class NotReadable(Exception):
    """An expression cannot be read without running code of the program."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disconnected:
    reason: str


Event: TypeAlias = Stopped | Resumed | Exited | Output | BreakpointMoved | ChildStarted | ConditionFailed | Disconnected
Listener: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    conditions: bool = False
    hit_conditions: bool = False
    log_points: bool = False
    function_breakpoints: bool = False
    data_breakpoints: bool = False
    exception_filters: tuple[str, ...] = ()
    goto: bool = False
    step_back: bool = False
    terminate: bool = False
    exception_info: bool = False
    columns: bool = True
    """Whether it can stop in the middle of a line."""


def unsupported(message: str, instruction: str) -> ToolError:
    return ToolError(message, code=ErrorCode.CAPABILITY_NOT_SUPPORTED, instruction=instruction)


def require_capable(capabilities: Capabilities, spec: BreakpointSpec, language: str) -> None:
    """Refuse what the debugger would silently ignore."""
    wanted = {
        "column": (spec.column, capabilities.columns),
        "condition": (spec.condition, capabilities.conditions),
        "hit_condition": (spec.hit_condition, capabilities.hit_conditions),
        "log_message": (spec.log_message, capabilities.log_points),
    }
    for name, (given, is_supported) in wanted.items():
        if given is not None and not is_supported:
            plain = name == "column" or not capabilities.conditions
            raise unsupported(
                f"The debugger of {language} does not support `{name}` in a breakpoint.",
                f"Set the breakpoint without `{name}`." if plain else "Use a `condition`, or stop there and inspect.",
            )


class Debugger(Protocol):
    """A debugger of one program. Its listener receives the events."""

    shows_secrets: bool

    @property
    def capabilities(self) -> Capabilities: ...

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        """Replace all breakpoints of a file."""
        ...

    async def set_function_breakpoints(self, wanted: Sequence[FunctionBreakpoint]) -> list[Bound]:
        raise RequestFailed("setFunctionBreakpoints", "Not supported.")

    async def set_data_breakpoints(self, wanted: Sequence[DataBreakpoint]) -> list[Bound]:
        raise RequestFailed("setDataBreakpoints", "Not supported.")

    async def data_id(self, name: str, *, reference: int, frame: int | None) -> str | None:
        """The debugger's id of a value that can be watched, or None."""
        return None

    async def set_exception_breakpoints(self, filters: Sequence[str]) -> None: ...

    async def start(self) -> None:
        """Let the program run, after all breakpoints are set."""

    async def resume(self, thread: int) -> None: ...

    async def step(self, kind: StepKind, thread: int) -> None: ...

    async def pause(self, thread: int) -> None: ...

    async def goto(self, file: str, line: int, thread: int) -> None:
        raise RequestFailed("goto", "Not supported.")

    async def threads(self) -> list[Thread]: ...

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        """Some frames, innermost first, and how many there are in all; a count of 0 means all."""
        ...

    async def scopes(self, frame: int) -> list[Scope]: ...

    def locals_reference(self, frame: int) -> int | None:
        """The reference of a frame's locals where it is available without a request to the debugger."""
        return None

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]: ...

    async def readable(self, variable: Variable, frame: int | None = None) -> Variable:
        """The value for a reader, with the parts that its text lacks. `frame` is the one whose name it is, if it is."""
        return variable

    async def read(self, expression: str, frame: int) -> Variable:
        """The value of an expression without running code of the program. Raises `NotReadable`."""
        ...

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        """The value of an expression, whatever its side effects."""
        ...

    async def assign(self, expression: str, value: str, frame: int) -> Variable: ...

    async def exception(self, thread: int) -> ExceptionInfo | None: ...

    async def disconnect(self, *, kill: bool) -> None:
        """Detach from the program: end it, or leave it running."""

"""Debugger: what every debugger can be asked, whatever language is behind it, and the values it answers with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError

StepKind: TypeAlias = Literal["over", "into", "out", "back"]
OutputStream: TypeAlias = Literal["stdout", "stderr", "console"]
EvaluateFor: TypeAlias = Literal["watch", "repl", "hover", "clipboard"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakpointSpec:
    """A place to stop, and when. `log_message` makes it tell instead of stop."""

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
    """A function to stop in when it is entered."""

    name: str
    condition: str | None = None
    hit_condition: str | None = None
    guarded: bool = True
    """Whether its condition may only read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataBreakpoint:
    """A value to stop at when it is written or read. `data_id` is the debugger's own name for it."""

    data_id: str
    access: Literal["read", "write", "readWrite"] = "write"
    condition: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """What the debugger made of a breakpoint: where it really is, or why it is nowhere."""

    verified: bool
    id: int | None = None
    line: int | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One level of a stack. `id` is good until the program runs on."""

    id: int
    name: str
    file: str | None
    line: int
    column: int = 0
    is_library: bool = False
    """Whether the debugger takes it for code that is not the user's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Thread:
    """A thread of the program."""

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
    """A value as the debugger shows it. `reference` leads to its parts and is never shown to a model."""

    name: str
    value: str
    type: str | None = None
    reference: int = 0
    path: str | None = None
    """The expression that leads to it from its frame, where the debugger knows one."""
    indexed: int = 0
    named: int = 0
    size: str = ""
    """How large it really is, such as `1000 items`, where the debugger tells."""
    is_cut: bool = False
    """Whether the text is only the beginning of the value."""
    shows_all: bool = False
    """Whether its secrets are masked already, or are to be shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExceptionInfo:
    """The exception at which the program stopped."""

    type: str
    message: str
    stack: str = ""
    chain: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopped:
    """The program stands still."""

    reason: str
    """breakpoint, step, exception, pause, entry, goto, data breakpoint, function breakpoint …"""
    thread: int
    text: str = ""
    hit: tuple[int, ...] = ()
    all_threads: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed:
    """The program runs on."""

    thread: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Exited:
    """The program has ended. Where the code is unknown, the process itself has to be asked.

    Both a code and a signal mean that it was one of the two, and the debugger does not tell which.
    """

    code: int | None = None
    signal: int | None = None

    @staticmethod
    def with_status(status: int | None) -> Exited:
        """An end as many debuggers tell it: a negative status is a signal."""
        return Exited(signal=-status) if status is not None and status < 0 else Exited(code=status)


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """Something that the program or its debugger wrote."""

    stream: OutputStream
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakpointMoved:
    """The debugger bound, moved or lost a breakpoint by itself, such as when a module was loaded."""

    bound: Bound


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildStarted:
    """The program started another one, whose debugger waits to be spoken to."""

    arguments: dict[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionFailed:
    """A breakpoint's condition has no truth where it was asked for."""

    place: str
    why: str


class NotReadable(Exception):
    """An expression has no value unless code of the program's runs. The text says which."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """The debugger itself is gone."""

    reason: str


Event: TypeAlias = Stopped | Resumed | Exited | Output | BreakpointMoved | ChildStarted | ConditionFailed | Lost
Listener: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Abilities:
    """What this debugger can do beyond the common."""

    conditions: bool = False
    hit_conditions: bool = False
    log_points: bool = False
    function_breakpoints: bool = False
    data_breakpoints: bool = False
    exception_filters: tuple[str, ...] = ()
    set_variable: bool = False
    set_expression: bool = False
    goto: bool = False
    step_back: bool = False
    terminate: bool = False
    exception_info: bool = False
    restart_frame: bool = False
    columns: bool = True
    """Whether it can stop in the middle of a line."""


def require_able(abilities: Abilities, spec: BreakpointSpec, language: str) -> None:
    """Refuse what the debugger would pass over in silence."""
    if spec.column is not None and not abilities.columns:
        raise ToolError(
            f"The debugger of {language} stops at lines, and knows no columns.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Set the breakpoint without a column.",
        )
    wanted = {
        "condition": (spec.condition, abilities.conditions),
        "hit_condition": (spec.hit_condition, abilities.hit_conditions),
        "log_message": (spec.log_message, abilities.log_points),
    }
    for name, (given, can) in wanted.items():
        if given is not None and not can:
            raise ToolError(
                f"The debugger of {language} knows no `{name}`.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction="Use a `condition`, or stop there and look."
                if abilities.conditions
                else "Set a plain breakpoint there.",
            )


class Debugger(Protocol):
    """A debugger on one program. Events come to the listener it was made with."""

    shows_secrets: bool

    @property
    def abilities(self) -> Abilities: ...

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        """Put these breakpoints into a file, in place of all that were in it."""
        ...

    async def set_function_breakpoints(self, wanted: Sequence[FunctionBreakpoint]) -> list[Bound]: ...

    async def set_data_breakpoints(self, wanted: Sequence[DataBreakpoint]) -> list[Bound]: ...

    async def data_id(self, name: str, *, reference: int, frame: int | None) -> str | None:
        """The debugger's name for a value that can be watched, or None where it cannot."""
        ...

    async def set_exception_breakpoints(self, filters: Sequence[str]) -> None: ...

    async def start(self) -> None:
        """Say that all breakpoints are set, so that the program may run."""
        ...

    async def resume(self, thread: int) -> None: ...

    async def step(self, kind: StepKind, thread: int) -> None: ...

    async def pause(self, thread: int) -> None: ...

    async def goto(self, file: str, line: int, thread: int) -> None: ...

    async def threads(self) -> list[Thread]: ...

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        """Some frames, innermost first, and how many there are in all; a count of 0 means all."""
        ...

    async def scopes(self, frame: int) -> list[Scope]: ...

    def locals_reference(self, frame: int) -> int | None:
        """The reference of a frame's locals where it is known without a question; `scopes` tells it everywhere."""
        ...

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]: ...

    async def read(self, expression: str, frame: int) -> Variable:
        """The value of an expression, without running code of the program's; `NotReadable` where that takes some."""
        ...

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        """The value of an expression, whatever it does to the program."""
        ...

    async def assign(self, expression: str, value: str, frame: int) -> Variable: ...

    async def exception(self, thread: int) -> ExceptionInfo | None: ...

    async def source(self, file: str) -> str | None:
        """The text of a source that is no file, where the debugger has it."""
        ...

    async def disconnect(self, *, kill: bool) -> None:
        """Let go of the program: end it, or leave it running."""
        ...

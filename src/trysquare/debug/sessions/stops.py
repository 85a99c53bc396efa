"""Stop conditions of a session: exceptions, functions, data changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.debug.debugger import Bound, DataBreakpoint, Debugger, FunctionBreakpoint, unsupported

Access: TypeAlias = Literal["read", "write", "readWrite"]
_INSTEAD_OF_WATCHING = {
    "python": "Use who_wrote, trace or explain, or a breakpoint with a condition on the value.",
}
_INSTEAD = "Use a breakpoint with a condition on the value at the lines that may change it."


class _Debugged(Protocol):
    """The part of a session that is used here."""

    language: str

    @property
    def debugger(self) -> Debugger: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """A value at which the program stops when it is written or read."""

    expression: str
    wanted: DataBreakpoint
    bound: Bound


@dataclass(frozen=True, kw_only=True, slots=True)
class Entered:
    """A function at which the program stops when it is entered."""

    wanted: FunctionBreakpoint
    bound: Bound


class StopConditions:
    """Stop conditions of one session. Each change sends all of a kind, as debuggers require."""

    def __init__(self, session: _Debugged) -> None:
        self._session = session
        self._filters: tuple[str, ...] | None = None
        self._functions: dict[str, Entered] = {}
        self._watched: dict[str, Watched] = {}

    @property
    def exception_filters(self) -> tuple[str, ...] | None:
        """The exception filters; None for the adapter's own choice."""
        return self._filters

    @property
    def functions(self) -> Mapping[str, Entered]:
        return self._functions

    @property
    def watched(self) -> Mapping[str, Watched]:
        return self._watched

    async def stop_at_exceptions(self, filters: Sequence[str]) -> None:
        """Stop at exceptions that match these filters of the debugger, and at no others."""
        known = self._session.debugger.capabilities.exception_filters
        unknown = [each for each in filters if each not in known]
        if unknown:
            raise InvalidArguments(
                f"Unknown exception filter `{', '.join(unknown)}` for the debugger of {self._session.language}.",
                code=ErrorCode.VALIDATION_INVALID_PARAM if known else ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction=f"Use any of {', '.join(known)}." if known else "Set a breakpoint where it is raised.",
            )
        await self._session.debugger.set_exception_breakpoints(filters)
        self._filters = tuple(filters)

    async def stop_at_function(self, wanted: FunctionBreakpoint) -> Bound:
        """Stop when a function is entered."""
        if not self._session.debugger.capabilities.function_breakpoints:
            raise unsupported(
                f"The debugger of {self._session.language} does not support function breakpoints.",
                "Set a breakpoint at the function's first line.",
            )
        self._functions[wanted.name] = Entered(wanted=wanted, bound=Bound(verified=False))
        await self._send_functions()
        return self._functions[wanted.name].bound

    async def remove_function(self, name: str) -> None:
        """Remove the breakpoint of a function."""
        if self._functions.pop(name, None) is None:
            raise InvalidArguments(f"No breakpoint at a function `{name}`.")
        await self._send_functions()

    async def watch(
        self, expression: str, *, frame: int | None, access: Access = "write", condition: str | None = None
    ) -> Bound:
        """Stop when a value is written or read. `frame` is the id of the frame that has its name."""
        language = self._session.language
        instruction = _INSTEAD_OF_WATCHING.get(language, _INSTEAD)
        if not self._session.debugger.capabilities.data_breakpoints:
            raise unsupported(f"The debugger of {language} does not support data breakpoints.", instruction)
        identity = await self._data_id(expression, frame)
        if identity is None:
            raise unsupported(f"The debugger cannot watch `{expression}` here.", instruction)
        wanted = DataBreakpoint(data_id=identity, access=access, condition=condition)
        self._watched[expression] = Watched(expression=expression, wanted=wanted, bound=Bound(verified=False))
        await self._send_watched()
        return self._watched[expression].bound

    async def unwatch(self, expression: str) -> None:
        """Stop watching a value."""
        if self._watched.pop(expression, None) is None:
            raise InvalidArguments(f"`{expression}` is not watched.")
        await self._send_watched()

    async def clear(self) -> int:
        """Remove the function and data breakpoints, and return how many there were."""
        functions, self._functions = self._functions, {}
        watched, self._watched = self._watched, {}
        if functions:
            await self._send_functions()
        if watched:
            await self._send_watched()
        return len(functions) + len(watched)

    async def copy_from(self, earlier: StopConditions) -> None:
        """Copy the conditions of another session, but not its watched values: they are addresses in its memory."""
        if earlier.exception_filters is not None:
            await self.stop_at_exceptions(earlier.exception_filters)
        for entered in earlier.functions.values():
            await self.stop_at_function(entered.wanted)

    async def _data_id(self, name: str, frame: int | None) -> str | None:
        """The debugger's id of a value: by the scope that has it, or as an expression."""
        debugger = self._session.debugger
        for scope in [] if frame is None else await debugger.scopes(frame):
            if scope.kind != "other" and (found := await debugger.data_id(name, reference=scope.reference, frame=None)):
                return found
        return await debugger.data_id(name, reference=0, frame=frame)

    async def _send_functions(self) -> None:
        wanted = [each.wanted for each in self._functions.values()]
        bound = await self._session.debugger.set_function_breakpoints(wanted)
        for each, made in zip(wanted, bound, strict=False):
            self._functions[each.name] = Entered(wanted=each, bound=made)

    async def _send_watched(self) -> None:
        watched = list(self._watched.values())
        bound = await self._session.debugger.set_data_breakpoints([each.wanted for each in watched])
        for each, made in zip(watched, bound, strict=False):
            self._watched[each.expression] = replace(each, bound=made)

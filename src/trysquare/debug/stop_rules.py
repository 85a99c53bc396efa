"""StopRules: what a program stops at beside lines: exceptions, functions, and values that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.debug.debugger import Bound, DataBreakpoint, Debugger, FunctionBreakpoint

Access: TypeAlias = Literal["read", "write", "readWrite"]
_INSTEAD_OF_WATCHING = {
    "python": "Use trace or explain, which know who wrote a value, or a breakpoint with a condition on it.",
}
_INSTEAD = "Use a breakpoint with a condition on the value at the lines that may change it."


class _Debugged(Protocol):
    """The part of a session that is needed here."""

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


class StopRules:
    """The rules of one session. Each change is sent whole, since debuggers take all rules of a kind at once."""

    def __init__(self, session: _Debugged) -> None:
        self._session = session
        self._filters: tuple[str, ...] | None = None
        self._functions: dict[str, Entered] = {}
        self._watched: dict[str, Watched] = {}

    @property
    def exception_filters(self) -> tuple[str, ...] | None:
        """At which exceptions it stops; None where nobody said, so that the engine's own choice holds."""
        return self._filters

    @property
    def functions(self) -> Mapping[str, Entered]:
        return self._functions

    @property
    def watched(self) -> Mapping[str, Watched]:
        return self._watched

    async def stop_at_exceptions(self, filters: Sequence[str]) -> None:
        """Stop at exceptions of these kinds, in the debugger's words for them, and at no others."""
        known = self._session.debugger.abilities.exception_filters
        unknown = [each for each in filters if each not in known]
        if unknown:
            raise InvalidArguments(
                f"The debugger of {self._session.language} knows no exceptions `{', '.join(unknown)}`.",
                code=ErrorCode.VALIDATION_INVALID_PARAM if known else ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction=f"Use some of {', '.join(known)}." if known else "Set a breakpoint where it is raised.",
            )
        await self._session.debugger.set_exception_breakpoints(filters)
        self._filters = tuple(filters)

    async def stop_at_function(self, wanted: FunctionBreakpoint) -> Bound:
        """Stop whenever a function is entered."""
        if not self._session.debugger.abilities.function_breakpoints:
            raise ToolError(
                f"The debugger of {self._session.language} cannot stop at a function by its name.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction="Set a breakpoint at the function's first line.",
            )
        self._functions[wanted.name] = Entered(wanted=wanted, bound=Bound(verified=False))
        await self._send_functions()
        return self._functions[wanted.name].bound

    async def forget_function(self, name: str) -> None:
        """Stop no more where a function is entered."""
        if self._functions.pop(name, None) is None:
            raise InvalidArguments(f"There is no breakpoint at a function `{name}`.")
        await self._send_functions()

    async def watch(
        self, expression: str, *, frame: int | None, access: Access = "write", condition: str | None = None
    ) -> Bound:
        """Stop when a value is written or read. `frame` is the debugger's number of the frame that knows its name."""
        debugger = self._session.debugger
        identity = None
        if debugger.abilities.data_breakpoints:
            identity = await self._identity(expression, frame)
        if identity is None:
            language = self._session.language
            can = debugger.abilities.data_breakpoints
            raise ToolError(
                f"`{expression}` cannot be watched here."
                if can
                else f"The debugger of {language} cannot watch a value.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction=_INSTEAD_OF_WATCHING.get(language, _INSTEAD),
            )
        wanted = DataBreakpoint(data_id=identity, access=access, condition=condition)
        self._watched[expression] = Watched(expression=expression, wanted=wanted, bound=Bound(verified=False))
        await self._send_watched()
        return self._watched[expression].bound

    async def unwatch(self, expression: str) -> None:
        """Watch a value no more."""
        if self._watched.pop(expression, None) is None:
            raise InvalidArguments(f"`{expression}` is not watched.")
        await self._send_watched()

    async def clear(self) -> int:
        """Forget the functions and the watched values, and tell how many they were."""
        count = len(self._functions) + len(self._watched)
        had_functions, had_watched = bool(self._functions), bool(self._watched)
        self._functions, self._watched = {}, {}
        if had_functions:
            await self._send_functions()
        if had_watched:
            await self._send_watched()
        return count

    async def take_over(self, earlier: StopRules) -> None:
        """Set what another session had set. Watched values are not: they were places in its memory."""
        if earlier.exception_filters is not None:
            await self.stop_at_exceptions(earlier.exception_filters)
        for entered in earlier.functions.values():
            await self.stop_at_function(entered.wanted)

    async def _identity(self, name: str, frame: int | None) -> str | None:
        """The debugger's own name for a value: by the scope that has it, or as an expression."""
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
            self._watched[each.expression] = Watched(expression=each.expression, wanted=each.wanted, bound=made)

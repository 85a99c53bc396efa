"""Lifespans: what a module opens once for a server, such as a pool or a client, and closes at its end.

They are opened by whatever opens the toolset, and shared by all that use it on the same event loop.
"""

from __future__ import annotations

import asyncio
import collections.abc
import contextlib
import inspect
import logging
import traceback
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import PydanticUserError, TypeAdapter

from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError, ToolError
from trysquare.core.hints import declaring, function_name, hints_of, location_of, written_function
from trysquare.core.injection import NOT_REPLACED, Dependency, Source, plain_type, plan_dependency

logger = logging.getLogger("trysquare.lifespan")

_OURS = str(Path(__file__).parent.parent)
_YIELDING = (
    collections.abc.AsyncGenerator, collections.abc.AsyncIterator, collections.abc.AsyncIterable,
    collections.abc.Generator, collections.abc.Iterator, collections.abc.Iterable,
    contextlib.AbstractAsyncContextManager, contextlib.AbstractContextManager,
)  # fmt: skip
_UNKNOWN: Any = object()
"""The type of what a lifespan yields, where it is not annotated."""


class LifespanFailed(ToolError):
    """A lifespan could not be opened or closed. The message has the lines of the author's own code."""

    def __init__(self, lifespan: Lifespan, verb: str, error: BaseException) -> None:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        frames = "".join(f"\n  {line}" for line in author_frames(error) or [lifespan.location or ""])
        super().__init__(f"The lifespan `{lifespan.name}` failed to {verb}: {reason}{frames}".rstrip())


def author_frames(error: BaseException) -> list[str]:
    """The frames of an error that are neither ours nor those of contextlib, outermost first."""
    return [
        f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_OURS) and frame.filename != contextlib.__file__
    ]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lifespan:
    """One function that opens something, and what it yields."""

    name: str
    function: Callable[..., Any]
    yields: Any
    """The type of what it yields; `_UNKNOWN` without an annotation, None for nothing that a parameter can name."""
    location: str | None

    async def enter(self, stack: AsyncExitStack, arguments: dict[str, Any]) -> Any:
        """Open it; the stack closes it."""
        if inspect.isasyncgenfunction(self.function):
            return await stack.enter_async_context(asynccontextmanager(self.function)(**arguments))
        if inspect.isgeneratorfunction(self.function):
            return stack.enter_context(contextmanager(self.function)(**arguments))
        made: Any = self.function(**arguments)
        if inspect.isawaitable(made):
            made = await made
        if hasattr(made, "__aenter__"):
            return await stack.enter_async_context(made)
        if hasattr(made, "__enter__"):
            return stack.enter_context(made)
        raise TypeError(f"it returned `{type(made).__name__}`; let it yield, so that it can close what it opened")


class _Opened:
    """Open lifespans on one event loop. One task enters and leaves them, whoever opens first and closes last."""

    def __init__(self, lifespans: Lifespans) -> None:
        self.values: dict[Lifespan, Any] = {}
        self.users = 0
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(lifespans), name="trysquare-lifespan")

    @property
    def is_closing(self) -> bool:
        return not self.users

    async def wait_ready(self) -> None:
        """Wait until all are open, or raise what one of them raised."""
        await asyncio.wait((self._ready, self._task), return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()

    async def wait_closed(self) -> None:
        await asyncio.wait((self._task,))

    async def close(self) -> BaseException | None:
        """Close all of them, and return what one of them raised as it closed."""
        if not self._ready.done():
            self._task.cancel()
        self._stop.set()
        await self.wait_closed()
        return self._task.exception() if self._ready.done() and not self._task.cancelled() else None

    async def _run(self, lifespans: Lifespans) -> None:
        failure: BaseException | None = None
        async with AsyncExitStack() as stack:
            try:
                await self._open(lifespans, stack)
                self._ready.set_result(None)
                await self._stop.wait()
            except (LifespanFailed, asyncio.CancelledError) as error:
                # Those that are open are left without an error: what follows their `yield` is run in any case. The
                # event loop may end before those who use them say so.
                failure = error
        if failure is not None:
            raise failure

    async def _open(self, lifespans: Lifespans, stack: AsyncExitStack) -> None:
        for lifespan in lifespans.declared():
            arguments = lifespans.arguments_of(lifespan, self.values)
            stack.push_async_exit(_NamesLifespan(lifespan))
            try:
                replaced = lifespans.replacement_of(lifespan.function)
                if isinstance(replaced, Dependency):
                    other = replace(lifespan, function=replaced.function)
                    self.values[lifespan] = await other.enter(stack, lifespans.arguments_of(other, self.values))
                elif replaced is not NOT_REPLACED:
                    self.values[lifespan] = replaced
                else:
                    self.values[lifespan] = await lifespan.enter(stack, arguments)
                    lifespans.check(lifespan, self.values)
            except (Exception, SystemExit) as error:
                raise LifespanFailed(lifespan, "open", error) from error


class _NamesLifespan:
    """Says which lifespan an error at closing comes from: it is entered before the lifespan, and left after it."""

    def __init__(self, lifespan: Lifespan) -> None:
        self._lifespan = lifespan

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, _type: Any, error: BaseException | None, _traceback: Any) -> None:
        if isinstance(error, (Exception, SystemExit)) and not isinstance(error, LifespanFailed):
            raise LifespanFailed(self._lifespan, "close", error) from error


class Lifespans:
    """The lifespans of a module, in the order in which they are declared and opened."""

    def __init__(self, owner: object) -> None:
        self._owner = owner
        self._declared: list[Lifespan] = []
        self._opened: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = weakref.WeakKeyDictionary()
        self._not_found: dict[Any, str] = {}
        """The types that parameters have and no lifespan yielded when they were declared, and a function with each."""
        self._expected: dict[Any, str] = {}
        """The types that some lifespan without an annotation has to yield."""
        self._dependencies: list[Callable[..., Any]] = []
        self._replaced: dict[Callable[..., Any], Any] = {}
        """What tests have put in the place of dependencies and lifespans."""

    def declared(self) -> tuple[Lifespan, ...]:
        """All of them."""
        return tuple(self._declared)

    def add(self, function: Callable[..., Any]) -> None:
        """Declare a lifespan: a generator function, or one that returns a context manager."""
        with declaring(function):
            lifespan = Lifespan(
                name=function_name(function),
                function=function,
                yields=_yielded_type(function),
                location=location_of(function),
            )
            if (taken_by := self._find_taken(lifespan.yields)) is not None:
                raise DeclarationError(
                    f"`{taken_by}` takes what the lifespan `{lifespan.name}` yields, and is declared before it. "
                    "Move the lifespan above it."
                )
            self._check_parameters(lifespan)
        self._declared.append(lifespan)

    def source_of_type(self, hint: Any, taken_by: str) -> Source | None:
        """Where a parameter of this type comes from."""
        lifespan = next((each for each in self._declared if _provides(each.yields, hint)), None)
        if lifespan is not None:
            return self._source(lifespan)
        if any(each.yields is _UNKNOWN for each in self._declared) and isinstance(hint, type) and not _has_schema(hint):
            self._expected.setdefault(hint, taken_by)
            return lambda context: self._value_of_type(hint)
        with contextlib.suppress(TypeError):
            self._not_found.setdefault(hint, taken_by)
        return None

    def source_of_function(self, function: Callable[..., Any]) -> Source | None:
        """Where what this function yielded is, if it is one of the lifespans."""
        lifespan = next((each for each in self._declared if each.function is function), None)
        return None if lifespan is None else self._source(lifespan)

    def register_dependency(self, function: Callable[..., Any]) -> None:
        """Remember a function that a parameter depends on."""
        if function not in self._dependencies:
            self._dependencies.append(function)

    def replacement_of(self, function: Callable[..., Any]) -> Any:
        """What stands in the place of a dependency or a lifespan; `NOT_REPLACED` for none."""
        return self._replaced.get(function, NOT_REPLACED) if self._replaced else NOT_REPLACED

    def replaceable(self) -> tuple[Callable[..., Any], ...]:
        """The functions that values can be put in the place of."""
        return (*self._dependencies, *(each.function for each in self._declared))

    @contextmanager
    def replacing(self, function: Callable[..., Any], value: Any) -> Generator[None]:
        """Put a value in the place of a dependency or lifespan for a while; `Depends(other)` runs another function."""
        if isinstance(value, Dependency) and function in self._dependencies:
            value = plan_dependency(value, self)
        before = self.replacement_of(function)
        self._replaced[function] = value
        try:
            yield
        finally:
            if before is NOT_REPLACED:
                del self._replaced[function]
            else:
                self._replaced[function] = before

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Open all of them, unless they are open on this event loop; the last one that leaves closes them."""
        if not self._declared:
            yield
            return
        loop = asyncio.get_running_loop()
        while (opened := self._opened.get(loop)) is not None and opened.is_closing:
            await opened.wait_closed()
            if self._opened.get(loop) is opened:
                del self._opened[loop]
        if opened is None:
            opened = self._opened[loop] = _Opened(self)
        opened.users += 1
        try:
            await opened.wait_ready()
        except BaseException:
            await self._leave(loop, opened)
            raise
        try:
            yield
        except BaseException:
            if (error := await self._leave(loop, opened)) is not None:
                # What ended the block comes first.
                logger.error("%s", error)
            raise
        if (error := await self._leave(loop, opened)) is not None:
            raise error

    async def _leave(self, loop: asyncio.AbstractEventLoop, opened: _Opened) -> BaseException | None:
        opened.users -= 1
        if opened.users:
            return None
        try:
            return await opened.close()
        finally:
            if self._opened.get(loop) is opened:
                del self._opened[loop]

    def arguments_of(self, lifespan: Lifespan, values: dict[Lifespan, Any]) -> dict[str, Any]:
        """What a lifespan takes: the values of earlier ones, and the object that declares it."""
        return {
            name: self._owner if source is None else values[source]
            for name, source in self._parameters(lifespan).items()
        }

    def check(self, opened: Lifespan, values: dict[Lifespan, Any]) -> None:
        """Refuse a value whose type was not known when the parameters were read, and does not fit them."""
        if opened.yields is not _UNKNOWN:
            return
        kind: type[object] = values[opened].__class__
        if (taken_by := self._not_found.get(kind)) is not None and kind not in _COMMON:
            raise TypeError(
                f"it yields a `{kind.__name__}`, and `{taken_by}` takes one as an argument. Say what it yields: "
                f"`-> AsyncIterator[{kind.__name__}]`"
            )
        if opened is self._declared[-1]:
            for hint, taken_by in self._expected.items():
                if not any(isinstance(each, hint) for each in values.values()):
                    raise TypeError(f"`{taken_by}` takes a `{hint.__name__}`, and no lifespan yields one")

    def _check_parameters(self, lifespan: Lifespan) -> None:
        if inspect.iscoroutinefunction(lifespan.function):
            raise DeclarationError(
                f"The lifespan `{lifespan.name}` returns. Let it yield what it opened, and close that afterwards."
            )
        self._parameters(lifespan)

    def _parameters(self, lifespan: Lifespan) -> dict[str, Lifespan | None]:
        """Which earlier lifespan each parameter is for; None for the object that declares them."""
        hints = hints_of(lifespan.function)
        needed: dict[str, Lifespan | None] = {}
        for name, parameter in inspect.signature(lifespan.function).parameters.items():
            hint = plain_type(hints.get(name))
            found = next((each for each in self._declared if _provides(each.yields, hint)), None)
            if found is not None or (parameter.default is parameter.empty and self._is_owner(hint)):
                needed[name] = found
            elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
                raise DeclarationError(
                    f"Nothing fills in `{name}` of the lifespan `{lifespan.name}`. "
                    "It may take what a lifespan above it yields."
                )
        return needed

    def _is_owner(self, hint: Any) -> bool:
        return hint is None or hint is Any or (isinstance(hint, type) and isinstance(self._owner, hint))

    def _find_taken(self, yields: Any) -> str | None:
        return next((by for hint, by in self._not_found.items() if _provides(yields, hint)), None)

    def _source(self, lifespan: Lifespan) -> Source:
        def value(context: CallContext) -> Any:
            replaced = self.replacement_of(lifespan.function)
            if replaced is not NOT_REPLACED and not isinstance(replaced, Dependency):
                return replaced
            return self._values(lifespan.name)[lifespan]

        return value

    def _value_of_type(self, hint: Any) -> Any:
        return next(each for each in self._values(hint.__name__).values() if isinstance(each, hint))

    def _values(self, what: str) -> dict[Lifespan, Any]:
        opened = self._opened.get(asyncio.get_running_loop())
        if opened is None:
            raise RuntimeError(
                f"the lifespan of `{what}` is not open. Open the tools around the call: "
                "`async with tools.open() as toolset:`"
            )
        return opened.values


_COMMON = frozenset({str, int, float, bool, bytes, dict, list, tuple, set, frozenset, object, NoneType})
"""Types of so many arguments that a lifespan's value is never meant."""


def _yielded_type(function: Callable[..., Any]) -> Any:
    """What a lifespan yields, by its annotation."""
    written: Any = inspect.unwrap(written_function(function))
    if inspect.isclass(written):
        enter: Any = getattr(written, "__aenter__", None) or getattr(written, "__enter__", None)
        if enter is None:
            raise DeclarationError(f"`{written.__name__}` is not a context manager. Declare a function that yields.")
        hint = hints_of(enter).get("return")
        return hint if isinstance(hint, type) else written
    hint = hints_of(written).get("return", _UNKNOWN)
    if hint is _UNKNOWN:
        return _UNKNOWN
    arguments = get_args(hint)
    if get_origin(hint) in _YIELDING:
        hint = plain_type(arguments[0]) if arguments else _UNKNOWN
    return _UNKNOWN if hint in (Any, object, *_YIELDING) else hint


def _provides(yields: Any, hint: Any) -> bool:
    """Whether what a lifespan yields is what a parameter of this type takes."""
    if yields is None or hint is None or yields is _UNKNOWN or hint in _COMMON or (get_origin(hint) or hint) in _COMMON:
        return False
    if yields == hint:
        return True
    try:
        # A base class or a protocol, unless it is also a type of JSON.
        return isinstance(hint, type) and issubclass(yields, hint) and not _has_schema(hint)
    except TypeError:
        return False


def _has_schema(hint: Any) -> bool:
    try:
        TypeAdapter(hint)
    except (PydanticUserError, ValueError, TypeError):
        return False
    return True

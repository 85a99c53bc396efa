"""Injection: parameters that are filled in for a call and stay out of its schema.

`Depends(function)`, the context, and what a lifespan yielded. A function's parameters are read once, when it is
declared, into a plan; a call follows the plan, and one without dependencies does no more than look values up.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypeAlias, Union, cast, get_args, get_origin

from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError
from trysquare.core.hints import declaring, function_name, hints_of, written_function
from trysquare.core.threads import ThreadBridge, bridged, run_in_thread

Source: TypeAlias = Callable[[CallContext], Any]
"""Looks up a value that is there already."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A function whose value a parameter gets; `Depends` makes one."""

    function: Callable[..., Any]
    use_cache: bool = True


def Depends(function: Callable[..., Any], *, use_cache: bool = True) -> Any:
    """Fill a parameter in with what a function returns: `db: Annotated[Db, Depends(open_db)]`, or as its default.

    The function may be synchronous or asynchronous. What a generator function yields is closed after the call. It may
    itself take the context, what a lifespan yields, and other dependencies. It runs once in a call, unless `use_cache`
    is False.
    """
    if not callable(function):
        kind = type(cast(object, function)).__name__
        raise DeclarationError(f"`Depends` takes a function, not `{kind}`. Write `Depends(name)` without calling it.")
    return Dependency(function, use_cache)


NOT_REPLACED: Any = object()


class ValueSources(Protocol):
    """Where values of a type come from: the lifespans of a module."""

    def source_of_type(self, hint: Any, taken_by: str) -> Source | None:
        """The source of values of this type, if there is one."""
        ...

    def source_of_function(self, function: Callable[..., Any]) -> Source | None:
        """The source of what a declared function has yielded."""
        ...

    def register_dependency(self, function: Callable[..., Any]) -> None:
        """Remember a function that a parameter depends on, so that a test can replace it."""
        ...

    def replacement_of(self, function: Callable[..., Any]) -> Any:
        """What a test has put in the place of a function: a value, or a plan to run; `NOT_REPLACED` for none."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class InjectionPlan:
    """The parameters of a function that are filled in, and from where."""

    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    dependencies: Mapping[str, DependencyPlan] = field(default_factory=dict[str, "DependencyPlan"])

    def names(self) -> set[str]:
        """The parameters that no caller gives."""
        return {*self.sources, *self.dependencies}

    def lookup(self, context: CallContext) -> dict[str, Any]:
        """The values that are there already."""
        return {name: source(context) for name, source in self.sources.items()}

    async def resolve(
        self, context: CallContext, stack: AsyncExitStack, known: dict[Callable[..., Any], Any] | None = None
    ) -> dict[str, Any]:
        """All values. What dependencies opened is closed by the stack; `known` are those of this call so far."""
        values, known = self.lookup(context), {} if known is None else known
        for name, dependency in self.dependencies.items():
            values[name] = await dependency.resolve(context, stack, known)
        return values


@dataclass(frozen=True, kw_only=True, slots=True)
class DependencyPlan:
    """How a dependency is run, and what it needs itself."""

    function: Callable[..., Any]
    plan: InjectionPlan
    use_cache: bool
    values: ValueSources | None = None

    async def resolve(self, context: CallContext, stack: AsyncExitStack, known: dict[Callable[..., Any], Any]) -> Any:
        """The value for this call."""
        if self.use_cache and self.function in known:
            return known[self.function]
        replaced = NOT_REPLACED if self.values is None else self.values.replacement_of(self.function)
        if replaced is NOT_REPLACED:
            value = await self._run(context, stack, known)
        else:
            value = await replaced._run(context, stack, known) if isinstance(replaced, DependencyPlan) else replaced
        if self.use_cache:
            known[self.function] = value
        return value

    async def _run(self, context: CallContext, stack: AsyncExitStack, known: dict[Callable[..., Any], Any]) -> Any:
        bound = await self.plan.resolve(context, stack, known)
        return await opened_value(functools.partial(self.function, **bound), stack)


async def opened_value(function: Callable[[], Any], stack: AsyncExitStack) -> Any:
    """What a function returns or yields; `stack` closes what a generator opened. Synchronous code runs in a thread."""
    written = inspect.unwrap(written_function(function))
    is_decorated = written is not written_function(function)
    if inspect.isasyncgenfunction(written):
        return await stack.enter_async_context(function() if is_decorated else asynccontextmanager(function)())
    if inspect.isgeneratorfunction(written):
        manager = function() if is_decorated else contextmanager(function)()
        stack.push_async_exit(_ThreadedExit(manager))
        return await _in_thread(manager.__enter__)
    if inspect.iscoroutinefunction(written):
        return await function()
    value = await _in_thread(function)
    return await value if inspect.isawaitable(value) else value


class _ThreadedExit:
    """Leaves a synchronous context manager in a thread, where it was entered."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def __aexit__(self, *error: Any) -> bool | None:
        return await _in_thread(functools.partial(self._manager.__exit__, *error))

    async def __aenter__(self) -> None: ...


async def _in_thread(function: Callable[[], Any]) -> Any:
    bridge = ThreadBridge(asyncio.get_running_loop())
    try:
        return await run_in_thread(lambda: bridged(bridge, function))
    except asyncio.CancelledError:
        bridge.close()
        raise


def plan_injection(
    function: Callable[..., Any],
    parameters: Mapping[str, inspect.Parameter],
    hints: Mapping[str, Any],
    values: ValueSources | None = None,
) -> InjectionPlan:
    """Find the parameters of a function that are filled in."""
    return _plan(function, parameters, hints, values, ())


def _plan(
    function: Callable[..., Any],
    parameters: Mapping[str, inspect.Parameter],
    hints: Mapping[str, Any],
    values: ValueSources | None,
    path: tuple[Callable[..., Any], ...],
) -> InjectionPlan:
    sources: dict[str, Source] = {}
    dependencies: dict[str, DependencyPlan] = {}
    for name, parameter in parameters.items():
        hint = hints.get(name)
        dependency = _dependency(hint, parameter.default)
        if dependency is None:
            source = _source(hint, function_name(function), values)
        else:
            source = None if values is None else values.source_of_function(dependency.function)
        if source is not None:
            sources[name] = source
        elif dependency is not None:
            dependencies[name] = plan_dependency(dependency, values, path)
            if values is not None:
                values.register_dependency(dependency.function)
    return InjectionPlan(sources=sources, dependencies=dependencies)


def _dependency(hint: Any, default: Any) -> Dependency | None:
    if isinstance(default, Dependency):
        return default
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((part for part in metadata if isinstance(part, Dependency)), None)


def plan_dependency(
    dependency: Dependency, values: ValueSources | None, path: tuple[Callable[..., Any], ...] = ()
) -> DependencyPlan:
    """How a dependency is run. `path` are the functions that depend on it."""
    function = dependency.function
    with declaring(function):
        if function in path:
            raise DeclarationError(f"The dependency `{function_name(function)}` depends on itself.")
        parameters = inspect.signature(function).parameters
        plan = _plan(function, parameters, hints_of(function), values, (*path, function))
        for name, parameter in parameters.items():
            is_variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if name not in plan.names() and parameter.default is parameter.empty and not is_variable:
                raise DeclarationError(
                    f"Nothing fills in `{name}` of the dependency `{function_name(function)}`. Give it a default, or "
                    "annotate it with `CallContext`, with the type that a lifespan yields, or with `Depends(...)`."
                )
            if name in plan.names() and parameter.kind is parameter.POSITIONAL_ONLY:
                raise DeclarationError(f"`{function_name(function)}` takes `{name}` by position only; remove the `/`.")
    return DependencyPlan(function=function, plan=plan, use_cache=dependency.use_cache, values=values)


def _source(hint: Any, taken_by: str, values: ValueSources | None) -> Source | None:
    wanted = plain_type(hint)
    if wanted is CallContext:
        return _own_context
    return None if values is None or wanted is None else values.source_of_type(wanted, taken_by)


def _own_context(context: CallContext) -> CallContext:
    return context


def plain_type(hint: Any) -> Any:
    """The type of an annotation, without `Annotated` and `None`."""
    if get_origin(hint) is Annotated:
        return plain_type(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member is not type(None)]
        return plain_type(members[0]) if len(members) == 1 else hint
    return hint

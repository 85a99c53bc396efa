"""Tool: a frozen value with name, schema, metadata and call; `tool()` makes one of a function."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, cast

from trysquare.core.content import may_be_drawn
from trysquare.core.context import Call, CallContext
from trysquare.core.docstrings import read_docstring
from trysquare.core.errors import DeadlineExceeded, DeclarationError, ErrorCode, InputRequired, ToolError, leaves
from trysquare.core.hints import declaring, docstring_of, function_name, written_function
from trysquare.core.injection import ValueSources
from trysquare.core.iterators import (
    PLAIN_TYPES,
    collected,
    collected_stream,
    gathered,
    gathered_async,
    gathered_stream,
)
from trysquare.core.json import JsonObject
from trysquare.core.metadata import PAGE_READER, MetadataOptions, ToolMetadata, checked_options
from trysquare.core.output import Output, as_result
from trysquare.core.result import Result, jsonable
from trysquare.core.signature import Arguments, Signature, inspect_signature
from trysquare.core.threads import ThreadBridge, bridged, run_in_thread

if TYPE_CHECKING:
    from trysquare.core.consent import CheckedCall


Run: TypeAlias = "Callable[[Any, CallContext], Coroutine[Any, Any, Any]]"
"""Runs a function with checked arguments in a context."""


def function_runner(function: Callable[..., Any], signature: Signature, *, streams: bool = False) -> Run:
    """How a call runs a function, chosen once: with what is filled in, and on the event loop or in a thread.

    `streams` reports each item that a generator function yields as progress.
    """
    written, bind, dependencies = written_function(function), signature.bind, signature.injected.dependencies
    is_async = _is_async(function)
    is_streamed = streams and (inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written))

    async def run_with_dependencies(parsed: Any, context: CallContext) -> Any:
        bound, known = bind(parsed, context), dict[Callable[..., Any], Any]()
        failure: BaseException | None = None
        async with AsyncExitStack() as stack:
            try:
                for name, dependency in dependencies.items():
                    bound[name] = await dependency.resolve(context, stack, known)
                return await _run(function, bound, context, is_async=is_async, is_streamed=is_streamed)
            except BaseException as error:
                failure = error
                raise
        # A dependency that swallows an error must not turn a failure into a success.
        raise failure

    def run(parsed: Any, context: CallContext) -> Coroutine[Any, Any, Any]:
        return _run(function, bind(parsed, context), context, is_async=is_async, is_streamed=is_streamed)

    return run_with_dependencies if dependencies else run


def _is_async(function: Callable[..., Any]) -> bool:
    written = written_function(function)
    return inspect.iscoroutinefunction(written) or inspect.isasyncgenfunction(written)


async def _run(
    function: Callable[..., Any], bound: dict[str, Any], context: CallContext, *, is_async: bool, is_streamed: bool
) -> Any:
    """Run a function on the event loop, or in a thread if it is synchronous. A cancellation sets the context's flag."""
    try:
        if not is_async:
            return await _run_sync(function, bound, context, is_streamed=is_streamed)
        returned = function(**bound)
        if is_streamed:
            return await gathered_stream(returned, context)
        if inspect.isawaitable(returned):
            returned = await returned
        return returned if _is_plain(returned) else await gathered(returned, context)
    except BaseExceptionGroup as group:
        if (question := _question_in(group)) is not None:
            raise question from None
        raise
    except asyncio.CancelledError:
        context.cancel_flag.set()
        raise


def _is_plain(returned: Any) -> bool:
    """Whether what a function returned holds no iterator beyond doubt, as nearly every result does."""
    if type(returned) is Result:
        result = cast(Result[Any], returned)
        return type(result.value) in PLAIN_TYPES and not result.fields
    return type(returned) in PLAIN_TYPES


def _question_in(group: BaseExceptionGroup[BaseException]) -> InputRequired | None:
    """The questions that tasks of the function raised in a group, as one: the client is asked all of them."""
    asked = [error.questions for error in leaves(group) if isinstance(error, InputRequired)]
    return InputRequired({key: question for each in asked for key, question in each.items()}) if asked else None


async def _run_sync(
    function: Callable[..., Any], bound: dict[str, Any], context: CallContext, *, is_streamed: bool
) -> Any:
    bridge = ThreadBridge(asyncio.get_running_loop())
    try:
        # In the same thread: what a generator does while it is read is the tool's own work.
        work = functools.partial(_run_and_collect, function, bound, context, is_streamed)
        returned, has_async = await run_in_thread(lambda: bridged(bridge, work))
        if inspect.isawaitable(returned):
            returned = await returned
            return returned if _is_plain(returned) else await gathered(returned, context)
        return await gathered_async(returned, context) if has_async else returned
    except asyncio.CancelledError:
        # A thread cannot be interrupted: the tool reads `context.cancelled`.
        context.cancel_flag.set()
        bridge.close()
        raise


def _run_and_collect(
    function: Callable[..., Any], bound: dict[str, Any], context: CallContext, is_streamed: bool
) -> tuple[Any, bool]:
    returned = function(**bound)
    if is_streamed:
        return collected_stream(returned, context)
    return (returned, False) if _is_plain(returned) else collected(returned, context)


_NO_METADATA = ToolMetadata()
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """One thing that an agent can do. Middleware is a function from a Tool to a Tool with another `call`.

    Where the metadata has `consent`, the `call` of every such value asks for it, however the value was made.
    """

    name: str
    description: str
    arguments: Arguments
    call: Call
    metadata: ToolMetadata = _NO_METADATA
    title: str | None = None
    function: Callable[..., Any] | None = None
    """The function behind the tool, as it was written."""
    is_async: bool = True
    output: Output | None = field(default=None, repr=False, compare=False)
    """What its return annotation says; None for a tool without one."""
    checked: CheckedCall | None = field(default=None, repr=False, compare=False)
    """The call that asks for consent, where the tool needs it."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"Invalid tool name `{self.name}`. Use 1 to 64 letters from a to z, digits, `_`, `-` or `.`, since "
                'clients refuse others: `@tools.tool(name="other_name")`.'
            )
        consent, right = self.metadata.consent, self.metadata.right
        # In the call itself: no way to a tool leads around the consent or the right that it needs.
        known = self.checked
        if consent is not None and (known is None or known.call is not self.call or known.consent != consent):
            # Imported here, since most tools never ask.
            from trysquare.core.consent import checked_call

            checked = checked_call(self.name, self.arguments, consent, self.call, known)
            self._set_call(checked.call, checked)
        if right is not None:
            # Outside of consent, so that nobody is asked about a call that may not run.
            call = _with_right(self.call, self.name, right)
            self._set_call(call, None if self.checked is None else replace(self.checked, call=call))

    def _set_call(self, call: Call, checked: CheckedCall | None) -> None:
        # The value is frozen for everybody else.
        object.__setattr__(self, "call", call)
        object.__setattr__(self, "checked", checked)

    @property
    def input_schema(self) -> JsonObject:
        """The schema that clients see: one flat closed object."""
        return self.arguments.wire

    @property
    def output_schema(self) -> JsonObject | None:
        """The schema of its structured content, where it is listed."""
        return None if self.output is None else self.output.schema

    @property
    def may_be_paged(self) -> bool:
        """Whether a result may be too long for one answer."""
        is_short = self.output is not None and self.output.is_short
        return self.metadata.result_limit is not None and not is_short

    @property
    def reads_pages(self) -> bool:
        """Whether it is the tool that reads on in long results."""
        return self.metadata.category == PAGE_READER

    def with_call(self, call: Call) -> Tool:
        """The same tool, called another way. Where it needs consent, that is asked before `call` is."""
        return replace(self, call=call)

    def wrapped(self, call: Call, **changes: Any) -> Tool:
        """The same tool with a `call` around its own one, which does nothing but through it.

        Consent is then asked inside, where this tool asks for it, about the arguments that arrive there.
        """
        checked = None if self.checked is None else replace(self.checked, call=call)
        return replace(self, call=call, checked=checked, **changes)


def tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    values: ValueSources | None = None,
    **options: Unpack[MetadataOptions],
) -> Tool:
    """Make a tool from a function: name, description and schema come from its name, docstring and annotations.

    `values` are what the lifespans of its module yield; `Tools.tool` has them.
    """
    with declaring(function):
        final_name = name or function_name(function)
        if final_name == "<lambda>":
            raise DeclarationError('A lambda has no name. Give the tool one: `tools.tool(lambda …, name="add")`.')
        signature = inspect_signature(function, values)
        metadata = ToolMetadata(**checked_options(options))
        if metadata.consent is not None:
            # Imported here, since most tools never ask.
            from trysquare.core.consent import refuse_unknown_names

            refuse_unknown_names(metadata.consent, final_name, signature.arguments)
        output = Output(signature.returns if metadata.output_schema else Any)
        return Tool(
            name=final_name,
            title=title,
            description=description or read_docstring(docstring_of(function)).prose,
            arguments=signature.arguments,
            call=_call_of(final_name, function, signature, metadata.timeout, output),
            metadata=metadata,
            function=function,
            is_async=_is_async(function),
            output=output,
        )


def _with_right(call: Call, name: str, right: str) -> Call:
    async def checked(arguments: JsonObject, context: CallContext) -> Result[Any]:
        if not context.principal.has_right(right):
            raise ToolError(
                f"`{name}` needs the right `{right}`, and this caller does not have it. Nothing was done.",
                code=ErrorCode.PERMISSION_DENIED,
                instruction="Do not send the call again. Ask the user to have the operator of the server do it, or to "
                f"give this caller a token with the right: trysquare token create NAME --scope {right}",
                fields={"right": right},
            )
        return await call(arguments, context)

    return checked


def _call_of(
    name: str, function: Callable[..., Any], signature: Signature, timeout: float | None, output: Output
) -> Call:
    parse, run = signature.arguments.parse, function_runner(function, signature, streams=True)
    exact = output.exact

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        if timeout is not None:
            context = context.for_call(timeout=timeout)
        work = run(parse(name, arguments), context)
        returned = await (work if context.deadline is None else _within(work, context))
        # Values of plain types need no look.
        if type(returned) is exact and type(plain := jsonable(returned)) is exact:
            return Result(success=True, value=returned, structured={"result": plain}, structured_for=returned)
        if exact is not None and type(returned) is Result:
            result = cast(Result[Any], returned)
            value = result.value if result.success and result.structured is None else None
            if type(value) is exact and type(plain := jsonable(value)) is exact:
                return replace(result, structured={"result": plain}, structured_for=value)
        shown: Any = cast(Result[Any], returned).value if isinstance(returned, Result) else returned
        if may_be_drawn(shown):
            # A large picture takes long to encode, and other calls go on meanwhile.
            return await run_in_thread(functools.partial(as_result, name, returned, output))
        return as_result(name, returned, output)

    return call


async def _within(work: Coroutine[Any, Any, Any], context: CallContext) -> Any:
    """Await the work until the context's deadline."""
    clock = asyncio.timeout(context.remaining())
    try:
        async with clock:
            return await work
    except TimeoutError:
        if not clock.expired():
            raise
        raise DeadlineExceeded(
            "Timeout: the call was stopped.", instruction="Ask for less in one call, or call again later."
        ) from None

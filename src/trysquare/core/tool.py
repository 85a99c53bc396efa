"""Tool: one thing that an agent can do, as a frozen value; and `tool`, which makes one of a function."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack, cast

from trysquare.core.context import Call, CallContext
from trysquare.core.docstrings import summary_text
from trysquare.core.errors import DeadlineExceeded, DeclarationError, ErrorCode, ToolError
from trysquare.core.metadata import MetadataOptions, ToolMetadata
from trysquare.core.result import Result
from trysquare.core.running import run_async, run_sync
from trysquare.core.schema import Arguments, Signature, function_name, read_signature
from trysquare.core.types import JsonObject

if TYPE_CHECKING:
    from trysquare.core.consent_check import CheckedCall

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
    """The function behind the tool, as it was written, for those who call it directly."""
    is_async: bool = True
    output_schema: JsonObject | None = None
    checked: CheckedCall | None = field(default=None, repr=False, compare=False)
    """The call that asks for consent, where the tool needs it. It is set here and by `wrapped`."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"`{self.name}` is no tool name. Use 1 to 64 letters, digits, `_`, `-` or `.`: clients refuse others."
            )
        consent, right = self.metadata.consent, self.metadata.right
        # In the call itself: no way to a tool leads around the consent or the right that it needs.
        if consent is not None and (self.checked is None or not self.checked.covers(self.call, consent)):
            # Imported here, since most tools never ask.
            from trysquare.core.consent_check import checked_call

            checked = checked_call(self.name, self.arguments, consent, self.call, self.checked)
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
    **options: Unpack[MetadataOptions],
) -> Tool:
    """Make a tool of a function: its name, docstring and annotations say the rest."""
    final_name = name or function_name(function)
    _refuse_generator(function, final_name)
    signature = read_signature(function)
    metadata = ToolMetadata(**options)
    is_async = inspect.iscoroutinefunction(function)
    return Tool(
        name=final_name,
        title=title,
        description=description or summary_text(inspect.getdoc(function) or ""),
        arguments=signature.arguments,
        call=_calling(final_name, function, signature, is_async, metadata.timeout),
        metadata=metadata,
        function=function,
        is_async=is_async,
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


def _calling(
    name: str, function: Callable[..., Any], signature: Signature, is_async: bool, timeout: float | None
) -> Call:
    run = run_async if is_async else run_sync
    parse, bind = signature.arguments.parse, signature.bind

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        if timeout is not None:
            context = context.for_call(timeout=timeout)
        bound = bind(parse(name, arguments), context)
        if context.deadline is None:
            return _as_result(await run(function, bound, context))
        return _as_result(await _within(run(function, bound, context), context))

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
            "The call took longer than it may and was stopped.",
            instruction="Ask for less in one call, or call again later.",
        ) from None


def _as_result(returned: Any) -> Result[Any]:
    return cast(Result[Any], returned) if isinstance(returned, Result) else Result(success=True, value=returned)


def _refuse_generator(function: Callable[..., Any], name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"`{name}` yields; a tool returns once. Collect the parts and return them as a list.")

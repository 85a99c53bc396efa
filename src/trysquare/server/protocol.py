"""Protocol versions, request type, JSON-RPC errors."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, TypeAlias, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from trysquare.core.call import guard_crash
from trysquare.core.errors import CapabilityMissing, ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.text import encodable_value
from trysquare.server.notifications import NotificationHub

Request: TypeAlias = ServerRequestContext[NotificationHub, Any]
"""One request as the SDK hands it to us."""

MODERN = frozenset(MODERN_PROTOCOL_VERSIONS)


def is_stateless(request: Request) -> bool:
    """Whether the request belongs to protocol 2026-07-28: stateless, and the client asks again with its answers."""
    return request.protocol_version in MODERN


LEGACY_RESOURCE_NOT_FOUND: Final = -32002
"""Code of the session protocol (2025-11-25); since 2026-07-28 it is the one for invalid parameters."""
_CALLERS_FAULT: Final = frozenset(
    {
        ErrorCode.TOOL_NOT_FOUND,
        ErrorCode.PROMPT_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.VALIDATION_INVALID_PARAM,
        ErrorCode.VALIDATION_INVALID_REQUEST,
        ErrorCode.VALIDATION_MISSING_PARAM,
        ErrorCode.VALIDATION_UNKNOWN_PARAM,
    }
)
T = TypeVar("T")


def protocol_error(error: ToolError, *, modern: bool) -> MCPError:
    """A foreseen failure as an error of the protocol, with our code and what to do next beside the text."""
    data: dict[str, Any] = {"code": error.code.value, **error.fields}
    if error.instruction is not None:
        data["instruction"] = error.instruction
    if modern and isinstance(error, CapabilityMissing):
        data["requiredCapabilities"] = {error.fields["capability"]: {}}
    return MCPError(code=_number(error, modern), message=encodable_value(error.message), data=encodable_value(data))


async def answered(method: str, work: Awaitable[T], *, modern: bool) -> T:
    """Await the answer to a request: failures become errors of the protocol, crashes one with an incident id only."""
    try:
        return await guard_crash(method, work)
    except ToolError as error:
        raise protocol_error(error, modern=modern) from None


def missing_capability(result: Result[Any]) -> CapabilityMissing | None:
    """What a tool needed and the client did not declare, if that is why it failed."""
    capability = result.fields.get("capability")
    if result.code is not ErrorCode.CAPABILITY_NOT_SUPPORTED or not isinstance(capability, str):
        return None
    return CapabilityMissing(capability)


def _number(error: ToolError, modern: bool) -> int:
    if modern and isinstance(error, CapabilityMissing):
        return MISSING_REQUIRED_CLIENT_CAPABILITY
    if error.code is ErrorCode.RESOURCE_NOT_FOUND and not modern:
        return LEGACY_RESOURCE_NOT_FOUND
    return INVALID_PARAMS if error.code in _CALLERS_FAULT else INTERNAL_ERROR

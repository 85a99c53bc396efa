"""Errors of the protocol: what a client gets where there is no result to carry a failure."""

from __future__ import annotations

from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY

from trysquare.core.errors import CapabilityMissing, ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.types import JsonObject
from trysquare.wire.surrogates import replaced

LEGACY_RESOURCE_NOT_FOUND: Final = -32002
"""The handshake era's own code; since 2026-07-28 it is the one for invalid parameters."""
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


def protocol_error(error: ToolError, *, code: int | None = None, data: JsonObject | None = None) -> MCPError:
    """A foreseen failure as an error of the protocol, with our code and what to do next beside the text."""
    number = code or (INVALID_PARAMS if error.code in _CALLERS_FAULT else INTERNAL_ERROR)
    told: dict[str, Any] = {"code": error.code.value, **(data or {})}
    if error.instruction is not None:
        told["instruction"] = error.instruction
    return MCPError(code=number, message=replaced(error.message), data=replaced(told))


def missing_capability(result: Result[Any]) -> MCPError | None:
    """The error of the 2026-07-28 era for a tool that needs what the client did not declare, if that is what failed."""
    capability = result.fields.get("capability")
    if result.code is not ErrorCode.CAPABILITY_NOT_SUPPORTED or not isinstance(capability, str):
        return None
    error = CapabilityMissing(capability)
    required: JsonObject = {"requiredCapabilities": {capability: {}}}
    return protocol_error(error, code=MISSING_REQUIRED_CLIENT_CAPABILITY, data=required)

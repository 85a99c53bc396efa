"""Errors of the protocol: what a client gets where there is no result to carry a failure."""

from __future__ import annotations

from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from trysquare.core.errors import ErrorCode, ToolError
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

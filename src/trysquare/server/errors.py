"""Foreseen failures as JSON-RPC errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.text import encodable_value
from trysquare.protocol.messages import INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, RpcError

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


def protocol_error(error: ToolError, *, stateless: bool) -> RpcError:
    """A foreseen failure as an error of the protocol, with our code and what to do next in its data."""
    data: JsonObject = {"code": error.code.value, **error.fields}
    if error.instruction is not None:
        data["instruction"] = error.instruction
    capability = _missing(error.code, error.fields) if stateless else None
    if capability is not None:
        name, _, mode = capability.partition(".")
        data["requiredCapabilities"] = {name: {mode: {}} if mode else {}}
        return RpcError(MISSING_CAPABILITY, encodable_value(error.message), encodable_value(data))
    return RpcError(_number(error, stateless), encodable_value(error.message), encodable_value(data))


def missing_capability(result: Result[Any]) -> ToolError | None:
    """The failure of a tool that needed a client capability and did not find it; None for any other result."""
    if result.code is None or _missing(result.code, result.fields) is None:
        return None
    return ToolError(result.error or "", code=result.code, instruction=result.instruction, fields=result.fields)


def _missing(code: ErrorCode, fields: Mapping[str, Any]) -> str | None:
    capability = fields.get("capability")
    return capability if code is ErrorCode.CAPABILITY_NOT_SUPPORTED and isinstance(capability, str) else None


def _number(error: ToolError, stateless: bool) -> int:
    if error.code is ErrorCode.RESOURCE_NOT_FOUND and not stateless:
        return RESOURCE_NOT_FOUND
    return INVALID_PARAMS if error.code in _CALLERS_FAULT else INTERNAL_ERROR

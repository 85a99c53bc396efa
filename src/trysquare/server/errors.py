"""Foreseen failures as JSON-RPC errors."""

from __future__ import annotations

from typing import Any, Final

from trysquare.core.errors import CapabilityMissing, ErrorCode, ToolError
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
    if stateless and isinstance(error, CapabilityMissing):
        data["requiredCapabilities"] = {error.fields["capability"]: {}}
    return RpcError(_number(error, stateless), encodable_value(error.message), encodable_value(data))


def missing_capability(result: Result[Any]) -> CapabilityMissing | None:
    """The client capability that a tool needed and did not find, if that is why it failed."""
    capability = result.fields.get("capability")
    if result.code is not ErrorCode.CAPABILITY_NOT_SUPPORTED or not isinstance(capability, str):
        return None
    return CapabilityMissing(capability)


def _number(error: ToolError, stateless: bool) -> int:
    if stateless and isinstance(error, CapabilityMissing):
        return MISSING_CAPABILITY
    if error.code is ErrorCode.RESOURCE_NOT_FOUND and not stateless:
        return RESOURCE_NOT_FOUND
    return INVALID_PARAMS if error.code in _CALLERS_FAULT else INTERNAL_ERROR

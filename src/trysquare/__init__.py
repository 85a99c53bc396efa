"""Trysquare: the tool layer between AI agents and everything they act on."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trysquare.core.arguments import ToolArguments
    from trysquare.core.bridge import wait_for
    from trysquare.core.call import call_tool
    from trysquare.core.content import Audio, Image, ResourceContents, ResourceLink, Text
    from trysquare.core.context import Answer, CallContext, Principal
    from trysquare.core.declarations import Declarations
    from trysquare.core.errors import ConfigurationError, DeclarationError, ErrorCode, ToolError, TrysquareError
    from trysquare.core.metadata import Consent, Example, ToolMetadata
    from trysquare.core.prompt import Prompt, PromptArgument, PromptMessage, prompt
    from trysquare.core.resource import Resource, ResourceTemplate
    from trysquare.core.result import Result
    from trysquare.core.tool import Tool, tool
    from trysquare.core.toolset import ChangingToolset, CombinedToolset, FixedToolset, Toolset

__version__ = "0.1.0"

_PLACES = {
    "arguments": "ToolArguments",
    "bridge": "wait_for",
    "call": "call_tool",
    "content": "Audio Image ResourceContents ResourceLink Text",
    "context": "Answer CallContext Principal",
    "declarations": "Declarations",
    "errors": "ConfigurationError DeclarationError ErrorCode ToolError TrysquareError",
    "metadata": "Consent Example ToolMetadata",
    "prompt": "Prompt PromptArgument PromptMessage prompt",
    "resource": "Resource ResourceTemplate",
    "result": "Result",
    "tool": "Tool tool",
    "toolset": "ChangingToolset CombinedToolset FixedToolset Toolset",
}
"""The public names by their file in `core`. Each is imported when it is asked for: a start must not wait for all."""

__all__ = [
    "Answer",
    "Audio",
    "CallContext",
    "ChangingToolset",
    "CombinedToolset",
    "ConfigurationError",
    "Consent",
    "DeclarationError",
    "Declarations",
    "ErrorCode",
    "Example",
    "FixedToolset",
    "Image",
    "Principal",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceTemplate",
    "Result",
    "Text",
    "Tool",
    "ToolArguments",
    "ToolError",
    "ToolMetadata",
    "Toolset",
    "TrysquareError",
    "call_tool",
    "prompt",
    "tool",
    "wait_for",
]


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names.split():
            value = getattr(importlib.import_module(f"trysquare.core.{place}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

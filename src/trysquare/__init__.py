"""Trysquare: the tool layer between AI agents and everything they act on."""

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

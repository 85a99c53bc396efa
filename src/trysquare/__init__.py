"""Trysquare: the tool layer between AI agents and everything they act on."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.asgi import http_app
    from trysquare.client import Client, ToolResult
    from trysquare.core.apps import AppPage
    from trysquare.core.arguments import ToolArguments
    from trysquare.core.call import call_tool
    from trysquare.core.content import Audio, EmbeddedResource, File, Image, ResourceContents, ResourceLink, Text
    from trysquare.core.context import Answer, CallContext, Principal
    from trysquare.core.declarations import Declarations, Tools
    from trysquare.core.errors import (
        ConfigurationError,
        DeclarationError,
        ErrorCode,
        QuestionDeclined,
        ToolError,
        TrysquareError,
    )
    from trysquare.core.injection import Depends
    from trysquare.core.metadata import Consent, Example, Icon, TaskOptions, ToolMetadata
    from trysquare.core.prompts import Prompt, PromptArgument, PromptMessage, prompt
    from trysquare.core.requests import McpRequest, Proceed
    from trysquare.core.resources import Resource, ResourceTemplate
    from trysquare.core.result import Result
    from trysquare.core.threads import wait_for
    from trysquare.core.tool import Tool, tool
    from trysquare.core.toolset import CombinedToolset, DynamicToolset, StaticToolset, Toolset
    from trysquare.core.transform import Argument, transform_tool
    from trysquare.integrations.decorator import ExtMcpToolDecorator
    from trysquare.middleware import Middleware
    from trysquare.openapi import from_fastapi, from_openapi

__version__ = "0.1.0"

__all__ = [
    "Answer", "AppPage", "Argument", "Audio", "CallContext", "Client", "CombinedToolset", "ConfigurationError",
    "Consent", "DeclarationError", "Declarations", "Depends", "DynamicToolset", "EmbeddedResource", "ErrorCode",
    "Example", "ExtMcpToolDecorator", "File", "Icon", "Image", "McpRequest", "Middleware", "Principal", "Proceed",
    "Prompt", "PromptArgument", "PromptMessage", "QuestionDeclined", "Resource", "ResourceContents", "ResourceLink",
    "ResourceTemplate", "Result", "StaticToolset", "TaskOptions", "Text", "Tool", "ToolArguments", "ToolError",
    "ToolMetadata", "ToolResult", "Tools", "Toolset", "TrysquareError", "call_tool", "from_fastapi", "from_openapi",
    "http_app", "prompt", "tool",
    "transform_tool", "wait_for",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "asgi": "http_app",
        "client": "Client ToolResult",
        "core.apps": "AppPage",
        "core.arguments": "ToolArguments",
        "core.call": "call_tool",
        "core.content": "Audio EmbeddedResource File Image ResourceContents ResourceLink Text",
        "core.context": "Answer CallContext Principal",
        "core.declarations": "Declarations Tools",
        "core.errors": "ConfigurationError DeclarationError ErrorCode QuestionDeclined ToolError TrysquareError",
        "core.injection": "Depends",
        "core.metadata": "Consent Example Icon TaskOptions ToolMetadata",
        "core.prompts": "Prompt PromptArgument PromptMessage prompt",
        "core.requests": "McpRequest Proceed",
        "core.resources": "Resource ResourceTemplate",
        "core.result": "Result",
        "core.threads": "wait_for",
        "core.tool": "Tool tool",
        "core.transform": "Argument transform_tool",
        "core.toolset": "CombinedToolset DynamicToolset StaticToolset Toolset",
        "integrations.decorator": "ExtMcpToolDecorator",
        "middleware": "Middleware",
        "openapi": "from_fastapi from_openapi",
    },
    renamed={"ChangingToolset": "DynamicToolset", "FixedToolset": "StaticToolset"},
)

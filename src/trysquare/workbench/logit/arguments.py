"""The arguments of `logit`, one model an action."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.types import JsonObject

Prompt = Annotated[str, Field(min_length=1, max_length=100_000, description="What the model is asked")]
PresetName = Annotated[str, Field(max_length=40, description="How it samples; list_presets names them")]
Tokens = Annotated[int, Field(ge=1, le=8192, description="Most tokens of the answer")]
Grammar = Annotated[str | None, Field(max_length=100_000, description="GBNF that the text is held to")]
Schema = Annotated[JsonObject, Field(description="JSON schema that the answer fits")]


class OfferedTool(ToolArguments):
    """A tool that the model may call."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="Its name")]
    description: Annotated[str, Field(max_length=2000, description="What it does")] = ""
    parameters: Annotated[JsonObject, Field(description="JSON schema of its arguments")]


class Generate(ToolArguments):
    """Text."""

    action: Literal["generate"]
    prompt: Prompt
    preset: PresetName = "deterministic"
    grammar: Grammar = None
    max_tokens: Tokens = 256


class GenerateStructured(ToolArguments):
    """JSON."""

    action: Literal["generate_structured"]
    prompt: Prompt
    json_schema: Schema
    preset: PresetName = "json_strict"
    max_tokens: Tokens = 512


class GenerateToolCall(ToolArguments):
    """A call."""

    action: Literal["generate_tool_call"]
    prompt: Prompt
    available_tools: Annotated[list[OfferedTool], Field(min_length=1, max_length=100, description="To choose from")]
    preset: PresetName = "tool_call"
    max_tokens: Tokens = 512


class CheckConfiguration(ToolArguments):
    """Several texts, judged."""

    action: Literal["test_config"]
    test_prompts: Annotated[list[Prompt], Field(min_length=1, max_length=20, description="Each is tried")]
    preset: PresetName = "deterministic"
    grammar: Grammar = None
    json_schema: Annotated[JsonObject | None, Field(description="JSON schema that the answer fits")] = None
    iterations: Annotated[int, Field(ge=1, le=20, description="How often each is tried")] = 1
    max_tokens: Tokens = 256


class ListPresets(ToolArguments):
    """The presets."""

    action: Literal["list_presets"]


class AnalyzeVocabulary(ToolArguments):
    """The tokens of a local model."""

    action: Literal["analyze_vocabulary"]
    contains: Annotated[str | None, Field(min_length=1, max_length=100, description="Count tokens that hold it")] = None


Arguments = Generate | GenerateStructured | GenerateToolCall | CheckConfiguration | ListPresets | AnalyzeVocabulary

"""Models by specification, such as `openai:NAME@URL`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.models.anthropic import DEFAULT_URL as ANTHROPIC_URL
from trysquare.models.anthropic import open_anthropic
from trysquare.models.base import Model, ModelOptions
from trysquare.models.openai import DEFAULT_URL as OPENAI_URL
from trysquare.models.openai import open_openai_compatible
from trysquare.models.replay import open_replay

OpenedModel: TypeAlias = AbstractAsyncContextManager[Model]
Opener: TypeAlias = Callable[[str, ModelOptions, Mapping[str, str]], OpenedModel]

FORMS = (
    "openai:NAME@URL for any server with a chat completions API",
    "openai:NAME for OpenAI",
    "anthropic:NAME",
    "local:NAME for a model that `trysquare models install` installed",
    "local:FILE.gguf",
    "replay:FILE",
)


def open_model(spec: str, options: ModelOptions | None = None, env: Mapping[str, str] = os.environ) -> OpenedModel:
    """The model of a specification such as `openai:NAME@URL`, `anthropic:NAME`, `local:NAME` or `replay:FILE`."""
    kind, _, name = spec.partition(":")
    if kind not in _OPENERS or not name:
        raise ToolError(
            f"Invalid model `{spec}`.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction=f"Use one of {', '.join(FORMS)}.",
        )
    return _OPENERS[kind](name, options or ModelOptions(), env)


def _name_and_url(name: str, default: str) -> tuple[str, str]:
    model, _, url = name.partition("@")
    if url and not url.startswith(("http://", "https://")):
        raise ToolError(
            f"`{url}` is not the URL of a model's server.",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Write it with its scheme, such as openai:NAME@http://127.0.0.1:8080/v1.",
        )
    return model, url or default


def _local(name: str, options: ModelOptions, env: Mapping[str, str]) -> OpenedModel:
    # The runtime of local models is a large extra.
    from trysquare.models.local.backend import open_local

    return open_local(name, options, env)


_OPENERS: Mapping[str, Opener] = MappingProxyType(
    {
        "openai": lambda name, options, env: open_openai_compatible(*_name_and_url(name, OPENAI_URL), options, env),
        "anthropic": lambda name, options, env: open_anthropic(*_name_and_url(name, ANTHROPIC_URL), options, env),
        "local": _local,
        "replay": lambda name, options, env: open_replay(Path(name)),
    }
)

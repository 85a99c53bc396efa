"""Choosing: a model by what a person writes for it."""

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
from trysquare.models.model import Model
from trysquare.models.openai_compatible import DEFAULT_URL as OPENAI_URL
from trysquare.models.openai_compatible import open_openai_compatible
from trysquare.models.options import ModelOptions
from trysquare.models.replay import open_replay

Opened: TypeAlias = AbstractAsyncContextManager[Model]
Opener: TypeAlias = Callable[[str, ModelOptions, Mapping[str, str]], Opened]


def open_model(spec: str, options: ModelOptions | None = None, env: Mapping[str, str] = os.environ) -> Opened:
    """The model of a name such as `openai:NAME@URL`, `anthropic:NAME`, `local:NAME` or `replay:FILE`."""
    kind, separator, name = spec.partition(":")
    if not separator or kind not in _KINDS or not name:
        raise ToolError(
            f"`{spec}` names no model.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction=f"Use one of {', '.join(FORMS)}.",
        )
    return _KINDS[kind](name, options or ModelOptions(), env)


FORMS = (
    "openai:NAME@URL for any server with a chat completions API",
    "openai:NAME for OpenAI's own",
    "anthropic:NAME",
    "local:NAME for one that `trysquare models install` put here",
    "local:FILE.gguf",
    "replay:FILE",
)


def _openai(name: str, options: ModelOptions, env: Mapping[str, str]) -> Opened:
    model, url = _addressed(name, OPENAI_URL)
    return open_openai_compatible(model, url, options, env)


def _anthropic(name: str, options: ModelOptions, env: Mapping[str, str]) -> Opened:
    model, url = _addressed(name, ANTHROPIC_URL)
    return open_anthropic(model, url, options, env)


def _addressed(name: str, default: str) -> tuple[str, str]:
    """A model's name and the address of its server."""
    model, _, url = name.partition("@")
    if url and not url.startswith(("http://", "https://")):
        raise ToolError(
            f"`{url}` is no address of a model's server.",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Write it with its scheme, such as openai:NAME@http://127.0.0.1:8080/v1.",
        )
    return model, url or default


def _local(name: str, options: ModelOptions, env: Mapping[str, str]) -> Opened:
    # The runtime of local models is an extra, and large: only whoever wants one imports it.
    from trysquare.models.local import open_local

    return open_local(name, options, env)


def _replay(name: str, options: ModelOptions, env: Mapping[str, str]) -> Opened:
    return open_replay(Path(name))


_KINDS: Mapping[str, Opener] = MappingProxyType(
    {"openai": _openai, "anthropic": _anthropic, "local": _local, "replay": _replay}
)

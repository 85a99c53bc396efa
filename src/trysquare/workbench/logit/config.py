"""What a user sets for `logit`: the model that writes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.models.model import Model
from trysquare.models.options import model_options
from trysquare.settings.model import ModelsSettings

OpenModel: TypeAlias = Callable[[str], AbstractAsyncContextManager[Model]]


@dataclass(frozen=True, kw_only=True, slots=True)
class LogitConfig:
    """Which model writes: its name, and the way to open it."""

    spec: str | None
    open_model: OpenModel

    def needed_spec(self) -> str:
        """The name of the model, or the error that says how to set one."""
        if self.spec is None:
            raise ToolError(
                "No model is configured.",
                code=ErrorCode.CONFIG_NOT_FOUND,
                instruction="Tell the person to set `model`, for example to local:smollm2-135m.",
            )
        return self.spec

    def opened(self) -> AbstractAsyncContextManager[Model]:
        """The model."""
        return self.open_model(self.needed_spec())


def logit_config(spec: str | None, options: ModelsSettings) -> LogitConfig:
    """The model of the settings, opened when a call needs it."""

    def opened(name: str) -> AbstractAsyncContextManager[Model]:
        # The backends take long to import, so they are when somebody first wants one.
        from trysquare.models.choosing import open_model

        return open_model(name, model_options(**options.model_dump()))

    return LogitConfig(spec=spec, open_model=opened)

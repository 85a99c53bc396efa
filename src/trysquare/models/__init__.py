"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.models.base import (
        CallRequest,
        Constraint,
        Message,
        Model,
        ModelOptions,
        ModelRequest,
        ModelResponse,
        Sampling,
        Segment,
        ToolSpec,
        Usage,
        Walk,
        model_options,
    )
    from trysquare.models.registry import open_model

__all__ = [
    "CallRequest", "Constraint", "Message", "Model", "ModelOptions", "ModelRequest", "ModelResponse", "Sampling",
    "Segment", "ToolSpec", "Usage", "Walk", "model_options", "open_model",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "base": "CallRequest Constraint Message Model ModelOptions ModelRequest ModelResponse Sampling "
        "Segment ToolSpec Usage Walk model_options",
        "registry": "open_model",
    },
)

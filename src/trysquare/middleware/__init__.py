"""Middleware around tools. A new one is a module with a `MIDDLEWARE` (see `base.Layer`)."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.middleware.base import Middleware, MiddlewareConfig
    from trysquare.middleware.stack import MiddlewareToolset, internal_toolset, with_middleware

__all__ = ["Middleware", "MiddlewareConfig", "MiddlewareToolset", "internal_toolset", "with_middleware"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"base": "Middleware MiddlewareConfig", "stack": "MiddlewareToolset internal_toolset with_middleware"}
)

"""Middleware around tools. A new one is a module with a `MIDDLEWARE` (see `base.Layer`)."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.middleware.base import Middleware, MiddlewareConfig
    from trysquare.middleware.caching import cache_results
    from trysquare.middleware.rate_limiter import rate_limit
    from trysquare.middleware.stack import MiddlewareToolset, internal_toolset, with_middleware

__all__ = [
    "Middleware", "MiddlewareConfig", "MiddlewareToolset", "cache_results", "internal_toolset", "rate_limit",
    "with_middleware",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "base": "Middleware MiddlewareConfig",
        "caching": "cache_results",
        "rate_limiter": "rate_limit",
        "stack": "MiddlewareToolset internal_toolset with_middleware",
    },
)

"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.openapi.toolset import OpenApiToolset, from_fastapi, from_openapi

__all__ = ["OpenApiToolset", "from_fastapi", "from_openapi"]

__getattr__, __dir__ = lazy_exports(__name__, {"toolset": "OpenApiToolset from_fastapi from_openapi"})

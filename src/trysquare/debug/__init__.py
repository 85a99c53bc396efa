"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.debug.explain.explain import explain_failure
    from trysquare.debug.provider import open_debugger
    from trysquare.debug.service import DebugConfig

__all__ = ["DebugConfig", "explain_failure", "open_debugger"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "explain.explain": "explain_failure",
        "provider": "open_debugger",
        "service": "DebugConfig",
    },
)

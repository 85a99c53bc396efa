"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.debug.explain.explain import Explained, explain_failure, localize_failures
    from trysquare.debug.explain.native import explain_target
    from trysquare.debug.provider import open_debugger
    from trysquare.debug.service import DebugConfig
    from trysquare.debug.sessions.launch import read_target

__all__ = [
    "DebugConfig", "Explained", "explain_failure", "explain_target", "localize_failures", "open_debugger", "read_target"
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "explain.explain": "Explained explain_failure localize_failures",
        "explain.native": "explain_target",
        "provider": "open_debugger",
        "service": "DebugConfig",
        "sessions.launch": "read_target",
    },
)

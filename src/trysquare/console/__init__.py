"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.console.app import Console, open_console
    from trysquare.console.sessions import Sessions

__all__ = ["Console", "Sessions", "open_console"]

__getattr__, __dir__ = lazy_exports(__name__, {"app": "Console open_console", "sessions": "Sessions"})

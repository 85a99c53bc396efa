"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.settings.keys import Origin
    from trysquare.settings.load import load_settings
    from trysquare.settings.model import Settings

__all__ = ["Origin", "Settings", "load_settings"]

__getattr__, __dir__ = lazy_exports(__name__, {"keys": "Origin", "load": "load_settings", "model": "Settings"})

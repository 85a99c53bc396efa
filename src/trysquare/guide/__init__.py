"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.guide.config import GuideConfig
    from trysquare.guide.provider import open_guide

__all__ = ["GuideConfig", "open_guide"]

__getattr__, __dir__ = lazy_exports(__name__, {"config": "GuideConfig", "provider": "open_guide"})

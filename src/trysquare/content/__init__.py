"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.content.config import ContentConfig, content_config
    from trysquare.content.provider import content_probes, content_tools

__all__ = ["ContentConfig", "content_config", "content_probes", "content_tools"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"config": "ContentConfig content_config", "provider": "content_probes content_tools"}
)

"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.catalog.search import Match, ToolIndex
    from trysquare.catalog.toolset import ProfileChoice, parse_profiles, with_catalog

__all__ = ["Match", "ProfileChoice", "ToolIndex", "parse_profiles", "with_catalog"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"search": "Match ToolIndex", "toolset": "ProfileChoice parse_profiles with_catalog"}
)

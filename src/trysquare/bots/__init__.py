"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.bots.definition.check import check_bot
    from trysquare.bots.definition.loader import load_bot
    from trysquare.bots.documents.base import DocumentType
    from trysquare.bots.documents.formats import DocumentError
    from trysquare.bots.projects import BotConfig
    from trysquare.bots.provider import open_bot

__all__ = ["BotConfig", "DocumentError", "DocumentType", "check_bot", "load_bot", "open_bot"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "definition.check": "check_bot",
        "definition.loader": "load_bot",
        "documents.base": "DocumentType",
        "documents.formats": "DocumentError",
        "projects": "BotConfig",
        "provider": "open_bot",
    },
)

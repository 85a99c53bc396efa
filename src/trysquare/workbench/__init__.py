"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.workbench.provider import open_workbench
    from trysquare.workbench.workspace import WorkbenchConfig

__all__ = ["WorkbenchConfig", "open_workbench"]

__getattr__, __dir__ = lazy_exports(__name__, {"provider": "open_workbench", "workspace": "WorkbenchConfig"})

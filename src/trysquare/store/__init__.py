"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.store.approvals import StoredApprovals
    from trysquare.store.database import Database
    from trysquare.store.lazy import LazyApprovals, LazyDatabase
    from trysquare.store.location import project_state, user_state

__all__ = ["Database", "LazyApprovals", "LazyDatabase", "StoredApprovals", "project_state", "user_state"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "approvals": "StoredApprovals",
        "database": "Database",
        "lazy": "LazyApprovals LazyDatabase",
        "location": "project_state user_state",
    },
)

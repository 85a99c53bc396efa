"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.store.approvals import LazyApprovals, StoredApprovals
    from trysquare.store.approvers import Approvers
    from trysquare.store.database import Database
    from trysquare.store.lazy import LazyDatabase
    from trysquare.store.location import project_state, user_state
    from trysquare.store.secrets import Secrets, SystemSecrets

__all__ = [
    "Approvers", "Database", "LazyApprovals", "LazyDatabase", "Secrets", "StoredApprovals", "SystemSecrets",
    "project_state", "user_state",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "approvals": "LazyApprovals StoredApprovals",
        "approvers": "Approvers",
        "database": "Database",
        "lazy": "LazyDatabase",
        "location": "project_state user_state",
        "secrets": "Secrets SystemSecrets",
    },
)

"""Large results: kept aside under a handle, so that a model reads of them only what it needs.

Each lies in a file without a name, which is gone with the process that made it, however that ends. A handle belongs to
one principal and has an end; the oldest go first where there are too many.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.kept_bytes import KeptBytes

if TYPE_CHECKING:
    from trysquare.gateway.answers.views import Views

ReadOn: TypeAlias = Callable[[JsonObject], JsonObject]
"""From what to read of a large result to the whole call that does it."""

LIFETIME = 3600.0
MAX_RESULTS = 64
MAX_BYTES = 1024 * 1024 * 1024
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


@dataclass(kw_only=True, slots=True, eq=False)
class KeptResult:
    """A result that is kept aside: the whole answer of a server, or one binary piece of it."""

    handle: str
    principal: str
    server: str
    tool: str
    expires: float
    body: KeptBytes
    mime_type: str | None = None
    """Set for a binary piece, which is kept as base64."""
    views: Views | None = None
    """What is read of it, taken out of the answer when somebody first reads it."""

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return self.body.size + (0 if self.views is None else self.views.size)


class LargeResults:
    """The results that are kept aside in this process. Safe among threads."""

    def __init__(
        self,
        folder: Path,
        *,
        max_results: int = MAX_RESULTS,
        max_bytes: int = MAX_BYTES,
        lifetime: float = LIFETIME,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self._max_results, self._max_bytes = max_results, max_bytes
        self._lifetime, self._clock = lifetime, clock
        self._kept: OrderedDict[str, KeptResult] = OrderedDict()
        self._lock = threading.Lock()

    def keep(
        self, data: bytes | memoryview, *, principal: str, server: str, tool: str, mime_type: str | None = None
    ) -> KeptResult:
        """Keep bytes under a new handle."""
        kept = KeptResult(
            handle="".join(secrets.choice(_ALPHABET) for _ in range(10)),
            principal=principal,
            server=server,
            tool=tool,
            expires=self._clock() + self._lifetime,
            body=self.store((data,)),
            mime_type=mime_type,
        )
        with self._lock:
            self._kept[kept.handle] = kept
            self._make_room()
        return kept

    def views_of(self, kept: KeptResult) -> Views:
        """What is read of a result. The first time it takes a moment: call it in a thread."""
        from trysquare.gateway.answers.views import take_out_views

        if kept.views is None:
            kept.views = take_out_views(kept.body.read(), self.store, is_result=kept.mime_type is None)
        return kept.views

    def store(self, pieces: Iterable[bytes | memoryview]) -> KeptBytes:
        """Bytes on the disk, or an error that says that there is no room."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return KeptBytes(pieces, self.folder)
        except OSError as error:
            raise ToolError(
                f"The result is too large to pass on, and cannot be kept aside ({error}).",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="The call was done: do not repeat it for its effect. Tell the person to free disk space.",
                fields={"outcome": "done"},
            ) from error

    def find(self, handle: str, *, principal: str) -> KeptResult:
        """What is kept under a handle: the same error for expired, unknown and somebody else's."""
        with self._lock:
            kept = self._kept.get(handle)
            if kept is None or kept.principal != principal or kept.expires <= self._clock():
                raise NotFound(
                    f"There is no result `{handle[:40]}`: it has expired or never existed.",
                    code=ErrorCode.HANDLE_NOT_FOUND,
                    instruction="Repeat the call that produced it, if that does no harm.",
                )
            self._kept.move_to_end(handle)
            return kept

    def close(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()

    def _make_room(self) -> None:
        now = self._clock()
        for handle in [handle for handle, kept in self._kept.items() if kept.expires <= now]:
            del self._kept[handle]
        while len(self._kept) > 1 and self._is_full():
            del self._kept[self._least_needed()]

    def _least_needed(self) -> str:
        """The handle that was not used for longest, of the principal who keeps most: nobody drives out the others."""
        sizes: Counter[str] = Counter()
        for kept in self._kept.values():
            sizes[kept.principal] += kept.size
        greedy = max(sizes, key=lambda principal: sizes[principal])
        return next(handle for handle, kept in self._kept.items() if kept.principal == greedy)

    def _is_full(self) -> bool:
        total = sum(kept.size for kept in self._kept.values())
        return len(self._kept) > self._max_results or total > self._max_bytes

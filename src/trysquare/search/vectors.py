"""Vectors of texts: computed by a background thread, kept in a file by the digest of the text."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trysquare.search.encoder import Encoder, Matrix

OpenEncoder = Callable[[], "Encoder"]

_DIGEST = 16
_BATCH = 32
_MOST_QUERIES = 256
QUERY_SECONDS = 1.0
"""How long a query may take an encoder behind an address; then words alone answer."""
_REST = 30.0
"""Seconds without a further try after an encoder behind an address has failed."""
LARGEST_FILE = 64 * 1024 * 1024
"""A larger file of vectors is begun anew."""


def user_folder(variable: str, default: str, env: Mapping[str, str] = os.environ) -> Path:
    """The project's directory below one of the user's XDG directories; the specification ignores a relative path."""
    base = env.get(variable, "")
    root = Path(base) if base.startswith("/") else Path(env.get("HOME") or Path.home()) / default
    return root / "trysquare"


def models_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The directory of installed models, in the user's data directory."""
    return user_folder("XDG_DATA_HOME", ".local/share", env) / "models"


def vectors_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The directory of computed vectors, in the user's cache directory."""
    return user_folder("XDG_CACHE_HOME", ".cache", env) / "vectors"


def encoder_file(env: Mapping[str, str] = os.environ) -> Path:
    """The weights of the sentence encoder, installed or not."""
    return models_folder(env) / "minilm.npz"


class Vectors:
    """Unit vectors of texts. Nothing here waits: what is not computed yet is None, and comes later."""

    def __init__(self, open_encoder: OpenEncoder, *, folder: Path | None = None, remote: bool = False) -> None:
        self._open_encoder = open_encoder
        self._folder = folder
        self.remote = remote
        """Whether the encoder is behind an address: it may fail, and come back."""
        self._encoder: Encoder | None = None
        # With half the bits: a cosine changes by less than a thousandth.
        self._known: dict[bytes, NDArray[np.float16]] = {}
        self._queries: dict[tuple[str, ...], Matrix] = {}
        self._wanted: dict[bytes, str] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._rests_until = 0.0
        self.problem: str | None = None
        """Why there are no vectors; None while nothing has failed."""

    @property
    def busy(self) -> bool:
        """Whether something is being computed."""
        return self._thread is not None

    def request(self, texts: Iterable[str]) -> bool:
        """Have the vectors of these texts computed in the background; whether all of them are there already."""
        missing = {key: text for text in texts if (key := _key(text)) not in self._known}
        if not missing and self._encoder is not None:
            return True
        with self._changed:
            self._wanted.update(missing)
            if self._thread is None and time.monotonic() >= self._rests_until:
                self._thread = threading.Thread(target=self._work, name="trysquare-vectors", daemon=True)
                self._thread.start()
        return False

    def wait(self, timeout: float) -> bool:
        """Wait until everything requested is computed, for commands that answer once; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, timeout) and self.problem is None

    def of(self, texts: Sequence[str]) -> Matrix:
        """The vectors of texts that `request` said are there, one row each."""
        import numpy as np

        return np.stack([self._known[_key(text)] for text in texts]).astype(np.float32)

    def of_query(self, texts: tuple[str, ...]) -> Matrix | None:
        """The vectors of a query's texts, one row each, computed now; None if an address does not give them in time."""
        known = self._queries.get(texts)
        if known is not None or self._encoder is None:
            return known
        if not self.remote:
            self._encode_query(self._encoder, texts)
        elif time.monotonic() >= self._rests_until:
            # In a thread of its own: what comes too late for this answer is there for the next.
            worker = threading.Thread(target=self._try_query, args=(self._encoder, texts), daemon=True)
            worker.start()
            worker.join(QUERY_SECONDS)
            if texts not in self._queries:
                self._fail(f"no answer within {QUERY_SECONDS:g} second")
        return self._queries.get(texts)

    def _try_query(self, encoder: Encoder, texts: tuple[str, ...]) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._encode_query(encoder, texts)

    def _encode_query(self, encoder: Encoder, texts: tuple[str, ...]) -> None:
        rows = _unit_rows(encoder.encode(texts), encoder.width, len(texts))
        with self._changed:
            while len(self._queries) >= _MOST_QUERIES:
                del self._queries[next(iter(self._queries))]
            self._queries[texts] = rows

    def _work(self) -> None:
        """Load the encoder and what is stored, then compute what is wanted until nothing is."""
        try:
            encoder = self._encoder or self._open_encoder()
            self._take_stored(encoder)
            self._encoder = encoder
            while batch := self._next_batch():
                self._compute(encoder, batch)
            self.problem = None
        except (OSError, ValueError, KeyError, ImportError, MemoryError) as error:
            # Without vectors the search goes on by words; `trysquare doctor` says why.
            self._fail(str(error) or type(error).__name__)
        finally:
            with self._changed:
                self._thread = None
                self._changed.notify_all()

    def _fail(self, problem: str) -> None:
        self.problem = problem
        self._rests_until = time.monotonic() + _REST if self.remote else float("inf")

    def _next_batch(self) -> dict[bytes, str]:
        with self._changed:
            for key in [key for key in self._wanted if key in self._known]:
                del self._wanted[key]
            return dict(list(self._wanted.items())[:_BATCH])

    def _compute(self, encoder: Encoder, texts: Mapping[bytes, str]) -> None:
        rows = _unit_rows(encoder.encode(list(texts.values())), encoder.width, len(texts)).astype("<f2")
        self._known.update(zip(texts, rows, strict=True))
        if self._folder is not None:
            with contextlib.suppress(OSError):
                _append(self._file(self._folder, encoder), b"".join(map(_record, texts, rows)), _size(encoder))

    def _take_stored(self, encoder: Encoder) -> None:
        """Take the wanted vectors from the file. What is damaged is computed again."""
        import numpy as np

        if self._folder is None:
            return
        try:
            data = self._file(self._folder, encoder).read_bytes()
        except OSError:
            return
        size = _size(encoder)
        for start in range(0, len(data) - size + 1, size):
            if (key := data[start : start + _DIGEST]) in self._wanted:
                row = np.frombuffer(data[start + _DIGEST : start + size], dtype="<f2")
                if abs(float(row.astype(np.float32) @ row.astype(np.float32)) - 1.0) < _OFF_UNIT:
                    self._known[key] = row

    def _file(self, folder: Path, encoder: Encoder) -> Path:
        return folder / f"{encoder.name}-{encoder.width}.bin"


_OFF_UNIT = 0.01


def _unit_rows(rows: Matrix | Sequence[Sequence[float]], width: int, count: int) -> Matrix:
    import numpy as np

    found = np.asarray(rows, dtype=np.float32)
    if found.shape != (count, width) or not np.isfinite(found).all():
        raise ValueError(f"the encoder returned {found.shape} for {count} texts of {width} numbers each")
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), np.float32(1e-9))


def _size(encoder: Encoder) -> int:
    return _DIGEST + 2 * encoder.width


def _record(key: bytes, row: NDArray[np.float16]) -> bytes:
    return key + row.tobytes()


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=_DIGEST).digest()


def _append(path: Path, records: bytes, size: int) -> None:
    """Append whole records: what a killed process left of one is cut off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        whole = 0 if end > LARGEST_FILE else end - end % size
        if whole != end:
            file.truncate(whole)
        file.write(records)


_chosen: dict[str, Vectors | None] = {}
"""The process's vectors: every index shares them, so that an encoder is loaded once."""


def choose_vectors(vectors: Vectors | None) -> None:
    """Set what `default_vectors` returns, as the settings have it."""
    _chosen["default"] = vectors


def default_vectors() -> Vectors | None:
    """Return the chosen vectors, else those of the installed encoder, else None: then words alone are compared."""
    if "default" not in _chosen:
        _chosen["default"] = installed_vectors()
    return _chosen["default"]


def installed_vectors(env: Mapping[str, str] = os.environ) -> Vectors | None:
    """The vectors of the installed encoder, which is loaded when the first are wanted."""
    path = encoder_file(env)
    if not path.is_file():
        return None

    def open_encoder() -> Encoder:
        from trysquare.search.encoder import MiniLM

        return MiniLM(path)

    return Vectors(open_encoder, folder=vectors_folder(env))

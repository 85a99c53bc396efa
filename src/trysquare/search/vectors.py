"""Vectors of texts: computed by a background thread, kept in a file by the digest of the text."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trysquare.search.encoder import Encoder, Matrix

OpenEncoder = Callable[[], "Encoder | None"]

_DIGEST = 16
_BATCH = 32
_MOST_QUERIES = 256
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

    def __init__(self, open_encoder: OpenEncoder, *, folder: Path | None = None) -> None:
        self._open_encoder = open_encoder
        self._folder = folder
        self._encoder: Encoder | None = None
        self._known: dict[bytes, Matrix] = {}
        self._wanted: dict[bytes, str] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._failed = False
        self._query = lru_cache(maxsize=_MOST_QUERIES)(self._encode_query)

    def request(self, texts: Iterable[str]) -> bool:
        """Have the vectors of these texts computed in the background; whether all of them are there already."""
        missing = {key: text for text in texts if (key := _key(text)) not in self._known}
        if not missing and self._encoder is not None:
            return True
        with self._changed:
            self._wanted.update(missing)
            if self._thread is None and not self._failed:
                self._thread = threading.Thread(target=self._work, name="trysquare-vectors", daemon=True)
                self._thread.start()
        return False

    def wait(self, timeout: float) -> bool:
        """Wait until everything requested is computed, for commands that have answered already and would end."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, timeout) and not self._failed

    def of(self, texts: Sequence[str]) -> list[Matrix]:
        """The vectors of texts that `request` said are there."""
        return [self._known[_key(text)] for text in texts]

    def of_query(self, texts: tuple[str, ...]) -> Matrix:
        """The vectors of a query's texts, one row each, computed now."""
        return self._query(texts)

    def _encode_query(self, texts: tuple[str, ...]) -> Matrix:
        assert self._encoder is not None, "a query is encoded only after its rows"
        return self._encoder.encode(texts)

    def _work(self) -> None:
        """Load the encoder and the file, then compute what is wanted until nothing is."""
        try:
            encoder = self._encoder or self._opened()
            while encoder is not None:
                with self._changed:
                    batch = dict(list(self._wanted.items())[:_BATCH])
                    if not batch:
                        break
                self._compute(encoder, {key: text for key, text in batch.items() if key not in self._known})
                with self._changed:
                    for key in batch:
                        self._wanted.pop(key, None)
            self._failed = encoder is None
        except (OSError, ValueError, KeyError, ImportError, RuntimeError):
            # Without vectors the search goes on by words; `trysquare doctor` says why.
            self._failed = True
        finally:
            with self._changed:
                self._thread = None
                self._changed.notify_all()

    def _opened(self) -> Encoder | None:
        encoder = self._open_encoder()
        if encoder is not None:
            self._known.update(self._stored(encoder))
            self._encoder = encoder
        return encoder

    def _compute(self, encoder: Encoder, texts: Mapping[bytes, str]) -> None:
        if not texts:
            return
        rows = encoder.encode(list(texts.values()))
        self._known.update(zip(texts, rows, strict=True))
        if self._folder is not None:
            with contextlib.suppress(OSError):
                _append(self._folder / f"{encoder.name}.bin", zip(texts, rows, strict=True))

    def _stored(self, encoder: Encoder) -> dict[bytes, Matrix]:
        """The vectors of the file. A damaged or foreign one is not used."""
        import numpy as np

        if self._folder is None:
            return {}
        try:
            data = (self._folder / f"{encoder.name}.bin").read_bytes()
        except OSError:
            return {}
        size = _DIGEST + 2 * encoder.width
        found: dict[bytes, Matrix] = {}
        for start in range(0, len(data) - size + 1, size):
            row = np.frombuffer(data[start + _DIGEST : start + size], dtype="<f2").astype(np.float32)
            if abs(float(row @ row) - 1.0) < 0.01:
                found[data[start : start + _DIGEST]] = row
        return found


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=_DIGEST).digest()


def _append(path: Path, rows: Iterable[tuple[bytes, Matrix]]) -> None:
    """Append whole records: what a killed process left of one is cut off first."""
    records = [key + row.astype("<f2").tobytes() for key, row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.tell()
        whole = 0 if size > LARGEST_FILE else size - size % len(records[0])
        if whole != size:
            file.truncate(whole)
        file.write(b"".join(records))


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

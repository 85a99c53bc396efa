"""Store of secrets: the system keyring, or a file of mode 0600 where there is none."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

from trysquare.core.errors import ConfigurationError
from trysquare.store import user_state
from trysquare.store.location import prepare_folder

logger = logging.getLogger("trysquare.gateway")

SERVICE = "trysquare"
FILE = "secrets.json"


class Secrets(Protocol):
    """Named secrets. Methods may block, so they belong in a thread."""

    def read(self, name: str) -> str | None:
        """The secret of a name, or None."""

    def write(self, name: str, value: str) -> None:
        """Store or replace a secret."""

    def remove(self, name: str) -> bool:
        """Delete a secret; False if there was none."""
        ...


class SystemSecrets:
    """The user's secrets; the backend is chosen by the first use."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        self._path = user_state(env).with_name(FILE)
        self._chosen: Secrets | None = None

    def read(self, name: str) -> str | None:
        return self._backend().read(name)

    def write(self, name: str, value: str) -> None:
        backend = self._backend()
        if isinstance(backend, FileSecrets):
            logger.warning("no keyring available, storing secrets with mode 0600: file=%s", self._path)
        backend.write(name, value)

    def remove(self, name: str) -> bool:
        return self._backend().remove(name)

    def _backend(self) -> Secrets:
        if self._chosen is None:
            keyring = _working_keyring()
            self._chosen = FileSecrets(self._path) if keyring is None else KeyringSecrets(keyring)
        return self._chosen


class KeyringSecrets:
    """Secrets in a keyring of the `keyring` package."""

    def __init__(self, keyring: Any) -> None:
        self._keyring = keyring

    def read(self, name: str) -> str | None:
        with _keyring_errors():
            return self._keyring.get_password(SERVICE, name)

    def write(self, name: str, value: str) -> None:
        with _keyring_errors():
            self._keyring.set_password(SERVICE, name, value)

    def remove(self, name: str) -> bool:
        with _keyring_errors():
            if self._keyring.get_password(SERVICE, name) is None:
                return False
            self._keyring.delete_password(SERVICE, name)
        return True


class FileSecrets:
    """Secrets in a file of mode 0600, for systems without a keyring."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> str | None:
        return self._all().get(name)

    def write(self, name: str, value: str) -> None:
        with self._locked():
            self._replace({**self._all(), name: value})

    def remove(self, name: str) -> bool:
        with self._locked():
            known = self._all()
            if name not in known:
                return False
            self._replace({other: value for other, value in known.items() if other != name})
        return True

    def _all(self) -> dict[str, str]:
        try:
            found: Any = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            raise ConfigurationError(
                "The secrets file cannot be read.", where=str(self._path), hint="Delete it and sign in again."
            )
        return {str(name): str(value) for name, value in cast(dict[Any, Any], found).items()}

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Lock among processes, so that concurrent writes do not overwrite each other."""
        prepare_folder(self._path.parent)
        lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _replace(self, secrets: Mapping[str, str]) -> None:
        # mkstemp creates its file with mode 0600.
        descriptor, name = tempfile.mkstemp(prefix=f".{FILE}.", dir=self._path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(dict(secrets), file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _working_keyring() -> Any:
    """The system keyring, or None if no backend can store anything."""
    try:
        import keyring
        import keyring.backends.fail
        import keyring.backends.null
    except ImportError:
        return None
    found: Any = keyring.get_keyring()
    useless = (keyring.backends.fail.Keyring, keyring.backends.null.Keyring)
    return None if isinstance(found, useless) else found


@contextmanager
def _keyring_errors() -> Generator[None]:
    from keyring.errors import KeyringError

    try:
        yield
    except KeyringError as error:
        raise ConfigurationError(
            f"The keyring failed: {type(error).__name__}.", hint="Unlock it, then try again."
        ) from error

"""Secrets: in the keyring of the system, or where none works in a file that only its owner can read."""

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
from trysquare.store.location import prepare_folder, user_state

logger = logging.getLogger("trysquare.gateway")

SERVICE = "trysquare"
FILE = "secrets.json"


class Secrets(Protocol):
    """Named texts that must not be seen. Its calls may wait for the system, so they belong in a thread."""

    def read(self, name: str) -> str | None:
        """The secret of a name, or None where there is none."""
        ...

    def write(self, name: str, value: str) -> None:
        """Keep a secret, in place of one of the same name."""
        ...

    def remove(self, name: str) -> bool:
        """Forget a secret. False where there was none."""
        ...


class SystemSecrets:
    """The secrets of this user. Which place holds them is found out at the first use, not before."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        self._path = user_state(env).with_name(FILE)
        self._chosen: Secrets | None = None

    def read(self, name: str) -> str | None:
        """The secret of a name, or None where there is none."""
        return self._place().read(name)

    def write(self, name: str, value: str) -> None:
        """Keep a secret, in place of one of the same name."""
        place = self._place()
        if isinstance(place, FileSecrets):
            logger.warning("no keyring works here: secrets are kept in %s, readable by you alone", self._path)
        place.write(name, value)

    def remove(self, name: str) -> bool:
        """Forget a secret. False where there was none."""
        return self._place().remove(name)

    def _place(self) -> Secrets:
        if self._chosen is None:
            keyring = _working_keyring()
            self._chosen = FileSecrets(self._path) if keyring is None else KeyringSecrets(keyring)
        return self._chosen


class KeyringSecrets:
    """Secrets in a keyring of the `keyring` package."""

    def __init__(self, keyring: Any) -> None:
        self._keyring = keyring

    def read(self, name: str) -> str | None:
        """The secret of a name, or None where there is none."""
        with _keyring_errors():
            return self._keyring.get_password(SERVICE, name)

    def write(self, name: str, value: str) -> None:
        """Keep a secret, in place of one of the same name."""
        with _keyring_errors():
            self._keyring.set_password(SERVICE, name, value)

    def remove(self, name: str) -> bool:
        """Forget a secret. False where there was none."""
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
        """The secret of a name, or None where there is none."""
        return self._all().get(name)

    def write(self, name: str, value: str) -> None:
        """Keep a secret, in place of one of the same name."""
        with self._locked():
            self._replace({**self._all(), name: value})

    def remove(self, name: str) -> bool:
        """Forget a secret. False where there was none."""
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
                "The file of secrets cannot be read.", where=str(self._path), hint="Remove it and sign in again."
            )
        return {str(name): str(value) for name, value in cast(dict[Any, Any], found).items()}

    @contextmanager
    def _locked(self) -> Generator[None]:
        """One writer at a time, of all processes: two that sign in at once must not undo one another."""
        prepare_folder(self._path.parent)
        lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _replace(self, secrets: Mapping[str, str]) -> None:
        # mkstemp makes its file with mode 0600, so that the secrets are at no moment readable by others.
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
    """The keyring of this system, or None where there is none that keeps anything."""
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
            f"The keyring does not answer: {type(error).__name__}.", hint="Unlock it, then try again."
        ) from error

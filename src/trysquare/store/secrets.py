"""Store of secrets: the system keyring, or a file of mode 0600 where there is none."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from trysquare.core.errors import ConfigurationError
from trysquare.files.edit import exclusive_lock
from trysquare.store.location import prepare_folder, user_state

logger = logging.getLogger("trysquare.store")

SERVICE = "trysquare"
FILE = "secrets.json"


class Secrets:
    """Named secrets in a file of mode 0600. Methods may block, so they belong in a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> str | None:
        return self._all().get(name)

    def write(self, name: str, value: str) -> None:
        with self._locked():
            self._replace({**self._all(), name: value})

    def remove(self, name: str) -> bool:
        """Delete a secret; False if there was none."""
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
        with exclusive_lock(self._path.with_suffix(".lock")):
            yield

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


class SystemSecrets(Secrets):
    """The user's secrets: in the system keyring, or in a file where no keyring can store anything."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        super().__init__(user_state(env).with_name(FILE))
        self._has_warned = False

    def read(self, name: str) -> str | None:
        if self._keyring is None:
            return super().read(name)
        with _keyring_errors():
            return self._keyring.get_password(SERVICE, name)

    def write(self, name: str, value: str) -> None:
        if self._keyring is None:
            if not self._has_warned:
                logger.warning("no keyring available, storing secrets with mode 0600: file=%s", self._path)
                self._has_warned = True
            super().write(name, value)
            return
        with _keyring_errors():
            self._keyring.set_password(SERVICE, name, value)

    def remove(self, name: str) -> bool:
        if self._keyring is None:
            return super().remove(name)
        if self.read(name) is None:
            return False
        with _keyring_errors():
            self._keyring.delete_password(SERVICE, name)
        return True

    @cached_property
    def _keyring(self) -> Any:
        """Imported by the first use; None if no backend works."""
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

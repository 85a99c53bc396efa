"""Secrets: in the keyring where one works, else in a file that only its owner can read."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.backends.null import Keyring as NullKeyring
from keyring.errors import KeyringLocked

from trysquare import ConfigurationError
from trysquare.store import Secrets, SystemSecrets, user_state


class MemoryKeyring(KeyringBackend):
    """A keyring that works, and forgets everything with the test."""

    # Below that of no keyring, so that it is never chosen by itself, in other tests of this process.
    priority = -2  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[(service, username)] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[(service, username)]


class LockedKeyring(MemoryKeyring):
    """A keyring that nobody has opened."""

    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringLocked("s3cret details")


@pytest.fixture(autouse=True)
def restored_keyring() -> Iterator[None]:
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


def test_a_keyring_that_works_is_used_and_no_file_is_made() -> None:
    found = MemoryKeyring()
    keyring.set_keyring(found)
    secrets = SystemSecrets()
    secrets.write("github", "s3cret")
    assert secrets.read("github") == "s3cret"
    assert found.kept == {("trysquare", "github"): "s3cret"}
    assert secrets.remove("github")
    assert not secrets.remove("github")
    assert secrets.read("github") is None
    assert not user_state().with_name("secrets.json").exists()


@pytest.mark.parametrize("useless", [NoKeyring, NullKeyring])
def test_without_a_keyring_that_works_a_file_for_its_owner_alone_holds_them(
    useless: type[KeyringBackend], caplog: pytest.LogCaptureFixture
) -> None:
    keyring.set_keyring(useless())
    SystemSecrets().write("github", "s3cret")
    path = user_state().with_name("secrets.json")
    assert SystemSecrets().read("github") == "s3cret"
    assert path.stat().st_mode & 0o777 == 0o600
    assert str(path) in caplog.text
    assert "s3cret" not in caplog.text
    assert SystemSecrets().remove("github")
    assert SystemSecrets().read("github") is None


def test_reading_without_any_secret_leaves_no_trace() -> None:
    keyring.set_keyring(NoKeyring())
    assert SystemSecrets().read("github") is None
    assert not user_state().parent.exists()


def test_a_locked_keyring_is_an_error_that_says_so() -> None:
    keyring.set_keyring(LockedKeyring())
    with pytest.raises(ConfigurationError, match="Unlock it") as caught:
        SystemSecrets().read("github")
    assert "s3cret" not in str(caught.value)


def test_writers_at_the_same_time_do_not_undo_one_another(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: Secrets(path).write(f"name {number}", str(number)), range(24)))
    assert [Secrets(path).read(f"name {number}") for number in range(24)] == [str(number) for number in range(24)]
    assert sorted(os.listdir(tmp_path)) == [".gitignore", "secrets.json", "secrets.lock"]


def test_a_spoilt_file_is_an_error_and_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "secrets.json"
    path.write_text('{"a": "s3cret', encoding="utf-8")
    for act in (lambda: Secrets(path).read("a"), lambda: Secrets(path).write("b", "x")):
        with pytest.raises(ConfigurationError, match="cannot be read") as caught:
            act()
        assert "s3cret" not in str(caught.value)
    assert path.read_text(encoding="utf-8") == '{"a": "s3cret'

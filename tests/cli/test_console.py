"""`trysquare console`: what it refuses before it serves anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from trysquare.cli.main import main


@pytest.mark.parametrize("name", ["ada bob", "", "*", "ada,bob", "ada\n"])
def test_the_name_of_an_approver_is_one_word(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["console", "--project", str(tmp_path), "--passkey", name, "--no-open"]) != 0
    assert "not the name of an approver" in capsys.readouterr().err


def test_passkeys_that_cannot_be_read_are_refused_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".trysquare-passkeys").write_text("ada\n", encoding="utf-8")
    assert main(["console", "--project", str(tmp_path), "--passkey", "ada", "--no-open"]) != 0
    assert ".trysquare-passkeys:1" in capsys.readouterr().err

"""`trysquare models`: what there is, what is installed, and nothing fetched unless a person says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from trysquare.cli.main import main


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder, empty."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "trysquare" / "models"


def test_the_list_shows_what_can_be_installed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    assert capsys.readouterr().out.replace(str(data), "FOLDER") == snapshot("""\
name                installed  size     about
smollm2-135m        no         98 MB    SmolLM2 135M Instruct (Q4_1): tiny; shows the machinery, chooses badly
qwen2.5-coder-1.5b  no         1117 MB  Qwen2.5 Coder 1.5B Instruct (Q4_K_M): chooses well among a dozen tools

Models lie in FOLDER. Use one as local:NAME.
""")
    assert not data.exists()


def test_the_list_is_there_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(entry["name"], entry["installed"]) for entry in listed] == [
        ("smollm2-135m", False),
        ("qwen2.5-coder-1.5b", False),
    ]


def test_a_model_that_nobody_knows_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "install", "smollm2"]) == 1
    assert "There is no model `smollm2` to install. The nearest is `smollm2-135m`." in capsys.readouterr().err


def test_checking_finds_weights_that_are_not_the_pinned_ones(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "check"]) == 0
    assert capsys.readouterr().out == "No model is installed.\n"
    data.mkdir(parents=True)
    (data / "smollm2-135m.gguf").write_bytes(b"other")
    assert main(["models", "check"]) == 1
    assert "are not the pinned ones" in capsys.readouterr().out
    assert main(["models", "check", "qwen2.5-coder-1.5b"]) == 1
    assert "is not installed" in capsys.readouterr().out


def test_a_model_can_be_removed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.mkdir(parents=True)
    (data / "smollm2-135m.gguf").write_bytes(b"other")
    for _ in range(2):
        assert main(["models", "remove", "smollm2-135m"]) == 0
    assert capsys.readouterr().out == "smollm2-135m is removed.\nsmollm2-135m was not installed.\n"
    assert not (data / "smollm2-135m.gguf").exists()

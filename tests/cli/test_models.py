"""`trysquare models`: what there is, what is installed, and nothing fetched unless a person says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trysquare.cli.main import main


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder, empty."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "trysquare" / "models"


def test_the_list_shows_what_can_be_installed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    heading, *rows, _, place = capsys.readouterr().out.splitlines()
    assert heading.split() == ["NAME", "INSTALLED", "SIZE", "ABOUT"]
    assert [row.split()[:4] for row in rows] == [
        ["smollm2-135m", "no", "98", "MB"],
        ["qwen2.5-coder-1.5b", "no", "1117", "MB"],
        ["minilm", "no", "23", "MB"],
    ]
    assert str(data) in place
    assert "local:NAME" in place
    assert not data.exists()


def test_the_list_is_there_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(entry["name"], entry["installed"]) for entry in listed] == [
        ("smollm2-135m", False),
        ("qwen2.5-coder-1.5b", False),
        ("minilm", False),
    ]


def test_an_unknown_model_is_refused_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "install", "smollm2"]) == 1
    assert "`smollm2-135m`" in capsys.readouterr().err


def test_checking_finds_weights_that_are_not_the_pinned_ones(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "check"]) == 0
    assert capsys.readouterr().out == "No model is installed.\n"
    data.mkdir(parents=True)
    (data / "smollm2-135m.gguf").write_bytes(b"other")
    assert main(["models", "check"]) == 1
    assert "SHA-256" in capsys.readouterr().out
    assert main(["models", "check", "qwen2.5-coder-1.5b"]) == 1
    assert "is not installed" in capsys.readouterr().out


def test_a_model_can_be_removed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.mkdir(parents=True)
    (data / "smollm2-135m.gguf").write_bytes(b"other")
    for _ in range(2):
        assert main(["models", "remove", "smollm2-135m"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "Removed" in first
    assert "not installed" in second
    assert not (data / "smollm2-135m.gguf").exists()

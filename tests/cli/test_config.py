"""`trysquare config`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_the_table_shows_value_and_origin_of_each_setting(run: Run, project: Path) -> None:
    (project / "trysquare.toml").write_text('prefix = "a"\n', encoding="utf-8")
    rows = [line.split() for line in run("config", "--strict").out.splitlines()]
    assert ["prefix", "a", f"{project}/trysquare.toml:1"] in [row[:3] for row in rows]
    assert ["strict", "true", "--strict"] in [row[:3] for row in rows]
    assert ["http.port", "8000", "default"] in [row[:3] for row in rows]


def test_json_shows_the_same_and_the_variable_of_each(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRYSQUARE_HTTP_TOKENS", "secret")
    shown = run("config", "--json").json
    assert shown["settings"]["http.tokens"].pop("description")
    assert shown["settings"]["http.tokens"] == {
        "value": ["********"],
        "source": "environment",
        "place": "$TRYSQUARE_HTTP_TOKENS",
        "variable": "TRYSQUARE_HTTP_TOKENS",
    }


def test_the_choice_between_two_files_is_reported(run: Run, project: Path) -> None:
    (project / "trysquare.toml").write_text('prefix = "a"\n', encoding="utf-8")
    (project / "pyproject.toml").write_text('[tool.trysquare]\nprefix = "b"\n', encoding="utf-8")
    assert "Note: " in run("config").out


def test_showing_the_settings_leaves_no_trace(run: Run, project: Path) -> None:
    before = sorted(project.iterdir())
    run("config")
    assert sorted(project.iterdir()) == before

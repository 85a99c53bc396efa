"""Calls on a local model are measured in every way, and the answers with and without fast-forward are the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from benchmarks.local_calls import FAST, NATIVE, PLAIN, WHOLE, LocalResults, local_tables, local_targets, measure_local
from tests.models.tiny_gguf import write_tiny_gguf
from tests.support import missing_component


def test_every_way_is_measured_on_the_same_requests(tmp_path: Path) -> None:
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("gguf") is None:
        missing_component("xllamacpp or gguf", "install the extra `local` and the group `dev`")
    results = LocalResults()
    measure_local(results, str(write_tiny_gguf(tmp_path / "tiny.gguf")), requests=2, threads=1)
    assert results.asked.keys() == {FAST, PLAIN, WHOLE, NATIVE}
    [table] = local_tables(results)
    found = {row[0]: dict(zip(table.head, row, strict=True)) for row in table.rows}
    assert found[FAST]["calls that fit their schema"] == found[WHOLE]["calls that fit their schema"] == "2 of 2"
    assert found[PLAIN]["same call as the first"] == "2 of 2"
    assert len(list(local_targets(results))) == 3


def test_a_model_that_is_not_installed_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    results = LocalResults()
    measure_local(results)
    assert list(local_tables(results)) == list(local_targets(results)) == []
    assert "local is left out: Weights not found" in capsys.readouterr().err

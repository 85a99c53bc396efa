"""Tests of the notes tools, as you would write them for tools of your own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import notes_tools
import pytest
from notebook import Notebook
from notes_tools import tools

from trysquare import ErrorCode
from trysquare.testing import call


@pytest.fixture(autouse=True)
def own_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes_tools, "notebook", Notebook(folder=tmp_path))


def test_a_written_note_can_be_read_and_found() -> None:
    asyncio.run(call(tools, "write_note", title="night-train", text="Vienna at 20:05"))
    assert asyncio.run(call(tools, "read_note", title="night-train")).value == "Vienna at 20:05"
    assert asyncio.run(call(tools, "find_notes", words="vienna")).value == ["night-train"]


def test_a_note_is_not_replaced_unasked() -> None:
    asyncio.run(call(tools, "write_note", title="list", text="milk"))
    refused = asyncio.run(call(tools, "write_note", title="list", text="bread"))
    assert refused.code == ErrorCode.STATE_CONFLICT
    assert asyncio.run(call(tools, "read_note", title="list")).value == "milk"


def test_an_unknown_title_names_the_nearest() -> None:
    asyncio.run(call(tools, "write_note", title="night-train", text="Vienna"))
    failed = asyncio.run(call(tools, "read_note", title="nigth-train"))
    assert "night-train" in (failed.instruction or "")


def test_no_title_leads_out_of_the_folder() -> None:
    failed = asyncio.run(call(tools, "read_note", title="../secret"))
    assert failed.code == ErrorCode.VALIDATION_INVALID_PARAM
